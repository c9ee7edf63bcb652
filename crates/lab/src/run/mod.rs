//! Runs a scenario: every case of it in namespaces of its own, with the
//! product's own programs as children. On the real clock that happens on this
//! machine; on the virtual clock the same code runs inside of a guest, one for
//! each case and repeat.

mod best_single;
mod capacity;
mod case;
mod ceiling;
mod child;
mod daemons;
mod energy;
mod events;
pub mod guest;
pub(crate) mod journals;
mod kernel_counters;
mod kernel_features;
mod packets;
mod preflight;
mod processors;
mod program;
mod progress;
mod radio;
mod real_clock;
mod record;
mod result;
mod sampler;
mod traffic;
mod virtual_clock;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use tokio::sync::watch;

pub use progress::{Progress, for_terminal, silent};
pub use real_clock::run;
pub use record::{Outcome, remake};
pub(crate) use virtual_clock::guest_files;
pub use virtual_clock::{GuestOptions, run as run_virtual};

use self::kernel_features::Controls;
use crate::report::RunLog;
use crate::scenario::Scenario;
use braid_netns::{PortChoice, Run};

/// Name of the device that a scenario is about.
const DEVICE: &str = "cpe";

/// How to run a scenario.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How often each case is run, at least 1.
    pub repeat: u32,
    /// Where the run's files go; `None`: a new folder in `out/`.
    pub out: Option<PathBuf>,
    /// The `braid` program, which the children are started from.
    pub braid: PathBuf,
    /// The command line, for the log.
    pub command: String,
    /// How accesses are joined to the emulator.
    pub ports: PortChoice,
}

/// Context that every case of a run shares.
struct Context<'a> {
    scenario: &'a Scenario,
    options: &'a RunOptions,
    /// Names the run and holds the control sockets and configurations of its
    /// children.
    run: &'a Run,
    controls: &'a Controls,
    log: Arc<RunLog>,
    interrupt: watch::Receiver<bool>,
    /// Whether this is inside of a guest, where time is simulated.
    simulated: bool,
}

/// Becomes true at the first SIGINT, SIGTERM, SIGHUP or SIGQUIT.
fn interrupts() -> anyhow::Result<watch::Receiver<bool>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (tell, told) = watch::channel(false);
    for kind in [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ] {
        let mut signals = signal(kind).context("listen for signals")?;
        let tell = tell.clone();
        tokio::spawn(async move {
            if signals.recv().await.is_some() {
                let _ = tell.send(true);
            }
        });
    }
    Ok(told)
}

/// `uname -r`.
fn kernel_release() -> String {
    nix::sys::utsname::uname()
        .map(|u| u.release().to_string_lossy().into_owned())
        .unwrap_or_default()
}
