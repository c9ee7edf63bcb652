//! The loop in simulated time, which stands still while the loop works. What
//! counts here is not to be punctual, which it is, but to make few system calls:
//! in a User-Mode Linux guest each takes 5 us of the host's time and more.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::errno::Errno;

use super::port::Read;
use super::ring::Ring;
use super::run::{COMMANDS, Loop, SIGNAL};
use super::timer::monotonic_ns;

/// Packets read from a port of which more than one came at a time lately.
const BURST: usize = 16;
/// Reads that follow a write to the same port, answers being likely there, are
/// tried again after so many writes once one found none.
const REST: u8 = 8;

/// Observed habits of a port.
#[derive(Clone, Copy, Debug, Default)]
struct Habit {
    /// There was a packet left the last time that only one was read.
    bursts: bool,
    /// When it was last read: the instant, and so whether there is a burst.
    read_at: u64,
    /// Writes to wait before the next attempt to read an answer.
    rest: u8,
}

impl Loop {
    /// [`Loop::run`] where time stands still until the loop waits.
    pub(crate) fn run_simulated(&mut self) -> Result<()> {
        // Nothing is known ahead of a link without delay.
        if self.out.slack() == 0 {
            return self.run_each();
        }
        let (bell, signals) = (self.inputs.bell.as_fd(), self.inputs.signals.as_fd());
        match Ring::new(&self.ports, bell, signals) {
            Ok(ring) => self.run_ahead(ring),
            // Packet sockets, or a kernel without times of packets.
            Err(e) => {
                eprintln!("emulator: slower, with a turn for each packet: {e}");
                self.run_each()
            }
        }
    }

    /// A turn for each packet.
    fn run_each(&mut self) -> Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 64];
        let mut habits = vec![Habit::default(); self.ports.len()];
        let mut now = monotonic_ns();
        while !self.stop {
            self.turns += 1;
            let next = self.next_event(self.out.slack());
            let wait = next.map(|t| Duration::from_nanos(t.saturating_sub(now)));
            let n = match epoll_wait(self.epoll.0.as_raw_fd(), &mut events, wait) {
                Ok(n) => Some(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => None,
                Err(e) => return Err(e).context("cannot wait for packets"),
            };
            now = match (n, next) {
                // It woke at the time that it asked for: no need to look.
                (Some(0), Some(t)) => t.max(now),
                _ => monotonic_ns().max(now),
            };
            for e in &events[..n.unwrap_or(0)] {
                match e.u64 {
                    COMMANDS => self.obey(),
                    SIGNAL => self.stop = true,
                    port => {
                        let port = port as usize;
                        if let Some(h) = habits.get_mut(port) {
                            h.bursts |= h.read_at == now;
                            h.read_at = now;
                            let most = if h.bursts { BURST } else { 1 };
                            let n = self.read_some(port, now, most);
                            habits[port].bursts = n == most && n > 1;
                        }
                    }
                }
            }
            self.catch_up(now);
            while let Some(port) = self.out.write_one(&self.ports, now) {
                self.answer(port, now, &mut habits);
            }
        }
        Ok(())
    }

    /// The answer of the kernel behind `port` to what was just written to it,
    /// such as an acknowledgement, is mostly there already.
    fn answer(&mut self, port: usize, now: u64, habits: &mut [Habit]) {
        let Some(h) = habits.get_mut(port) else {
            return;
        };
        if h.rest > 0 {
            h.rest -= 1;
            return;
        }
        h.read_at = now;
        if self.read_some(port, now, 1) == 0 {
            habits[port].rest = REST;
        } else {
            self.catch_up(now);
        }
    }

    /// Takes in up to `most` packets that wait at port `i`; says how many.
    fn read_some(&mut self, i: usize, now: u64, most: usize) -> usize {
        let Some(&link) = self.feeds.get(i) else {
            return 0;
        };
        for k in 0..most {
            match self.ports[i].read(self.out.buffers.spare()) {
                Read::Bytes(n) => self.take_in(i, link, n, now),
                Read::Empty => return k,
                Read::Gone(e) => {
                    self.give_up(i, Errno::desc(e));
                    return k;
                }
            }
        }
        most
    }
}

/// `epoll_pwait2`: waits to the nanosecond without a timer of its own.
fn epoll_wait(
    epoll: i32,
    events: &mut [libc::epoll_event],
    timeout: Option<Duration>,
) -> io::Result<usize> {
    let timeout = timeout.map(|t| libc::timespec {
        tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(t.subsec_nanos()),
    });
    let pointer = timeout
        .as_ref()
        .map_or(std::ptr::null(), std::ptr::from_ref);
    let most = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the buffer has room for `most` events, the timeout outlives the
    // call or is null, and without a signal mask its size is not looked at.
    let n = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            epoll,
            events.as_mut_ptr(),
            most,
            pointer,
            std::ptr::null::<libc::sigset_t>(),
            0usize,
        )
    };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}
