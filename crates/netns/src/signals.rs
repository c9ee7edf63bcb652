//! Ends a run cleanly when the user or the system asks for it.

use std::io::{self, PipeReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{SigId, flag, low_level};

use crate::error::LabError;

/// While it lives, SIGINT, SIGTERM, SIGHUP and SIGQUIT set a flag and wake who
/// waits for it, instead of ending the process. A second one ends it at once,
/// with status 130; the kernel then kills the processes of the run.
#[derive(Debug)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// Readable from the first signal on: nobody ever reads from it.
    wake: PipeReader,
    ids: Vec<SigId>,
}

impl Interrupt {
    /// Starts to catch the signals.
    ///
    /// # Errors
    /// Those of making a pipe and of setting a handler.
    pub fn install() -> Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let (wake, waker) = io::pipe().context("make a pipe")?;
        let mut new = Self {
            flag,
            wake,
            ids: Vec::new(),
        };
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            let waker = waker.try_clone().context("copy a pipe")?;
            let mut add = |id: io::Result<SigId>| {
                new.ids
                    .push(id.with_context(|| format!("catch signal {signal}"))?);
                anyhow::Ok(())
            };
            // In this order: the first signal must not find the flag set.
            add(flag::register_conditional_shutdown(
                signal,
                130,
                Arc::clone(&new.flag),
            ))?;
            add(flag::register(signal, Arc::clone(&new.flag)))?;
            add(low_level::pipe::register(signal, waker))?;
        }
        Ok(new)
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        self.flag.load(Ordering::SeqCst)
    }

    /// Fails once a signal has come.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub fn check(&self) -> Result<(), LabError> {
        if self.came() {
            Err(LabError::Interrupted)
        } else {
            Ok(())
        }
    }

    /// Sleeps for `time`, or until a signal comes.
    ///
    /// # Errors
    /// [`LabError::Interrupted`].
    pub fn sleep(&self, time: Duration) -> Result<(), LabError> {
        let deadline = Instant::now() + time;
        loop {
            self.check()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let left =
                PollTimeout::try_from(left.as_micros().div_ceil(1000)).unwrap_or(PollTimeout::MAX);
            // An early return only means one more turn.
            let _ = poll(&mut [PollFd::new(self.as_fd(), PollFlags::POLLIN)], left);
        }
    }

    /// Completes once a signal has come.
    ///
    /// # Errors
    /// When the descriptor cannot be registered with the runtime.
    pub async fn notified(&self) -> io::Result<()> {
        // A copy: two that wait would be in each other's way.
        let wake = self.wake.try_clone()?;
        tokio::net::unix::pipe::Receiver::from_owned_fd(wake.into())?
            .readable()
            .await
    }
}

impl AsFd for Interrupt {
    /// Readable once a signal has come, to wait for it with other things.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Interrupt {
    fn drop(&mut self) {
        for id in self.ids.drain(..) {
            low_level::unregister(id);
        }
    }
}
