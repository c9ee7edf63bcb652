//! The daemon, at the device (`braid up`) and at the proxy (`braid proxy`): it
//! sets up the engine in the network namespace that it is started in, follows
//! interfaces, repairs what the kernel leaves, and serves the control API.
//!
//! With `[manager] recover = false` it sets up once and only reports: this is
//! what the *stock* path manager does.

mod accesses;
mod arp;
mod blocking;
mod config;
mod contact;
mod control;
mod converter;
mod daemon;
mod ebpf;
mod energy;
mod engine;
mod http;
mod interfaces;
mod json_file;
mod kernel;
mod lan;
mod log;
mod meter;
mod mptcp_check;
mod names;
mod places;
mod proxies;
mod registration;
mod responder;
mod run;
mod scheduling;
mod shared;
mod signals;
mod state;
mod takeover;
mod usage;

pub use config::{Access, Config};

use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use braid_api::Role;
use braid_api::diagnostic::Problem;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};

/// Why a daemon could not start, or refuses a request.
#[derive(Debug, Error)]
pub enum DaemonError {
    /// The configuration is wrong: file, line, column, what; or what a request
    /// brings is.
    #[error("{0}")]
    Config(String),
    /// The machine lacks something: what, and the line that enables it.
    #[error("{0}")]
    Lacking(String),
    /// Something failed.
    #[error("{0}")]
    Failed(String),
    /// A request names something that does not exist.
    #[error("{0}")]
    Unknown(String),
    /// A request cannot be fulfilled as things are.
    #[error("{0}")]
    Refused(String),
}

impl DaemonError {
    /// The exit status of a process that ends for this reason.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Lacking(_) => 3,
            _ => 1,
        }
    }
}

impl From<braid_mptcp::Error> for DaemonError {
    fn from(e: braid_mptcp::Error) -> Self {
        if e.is_lacking() {
            Self::Lacking(e.to_string())
        } else if e.is_misnamed() {
            Self::Config(e.to_string())
        } else {
            Self::Failed(e.to_string())
        }
    }
}

impl From<braid_access::Error> for DaemonError {
    fn from(e: braid_access::Error) -> Self {
        Self::Failed(e.to_string())
    }
}

/// The key that an end of Multipath QUIC makes for itself, as others pin it; it is made
/// if it is not there.
///
/// # Errors
/// See [`DaemonError`].
pub fn key(role: Role) -> Result<String, DaemonError> {
    let files = config::quic::Files::of(role);
    Ok(engine::identity(&files)?.pin().to_string())
}

/// Configuration that is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Sentence that says so, and what the configuration is about.
    pub summary: String,
    /// Obstacles as the machine is now, each with file, line and column.
    pub warnings: Vec<String>,
}

/// Reads a configuration as a daemon of this role does, and says what it is about and what of
/// it cannot work on this machine. It changes nothing.
///
/// # Errors
/// The file cannot be read, or is wrong: [`DaemonError::Config`], every fault a line.
pub fn check(role: Role, config: &Path) -> Result<Checked, DaemonError> {
    let (read, text) = config::Config::load_with_text(config, role)?;
    let found = config::machine::judge(&read, role, &config::machine::Machine::look());
    let told = |all: Vec<Problem>| -> Vec<String> {
        let one = |p: Problem| p.in_file(config.to_owned(), &text).to_string();
        all.into_iter().map(one).collect()
    };
    if !found.errors.is_empty() {
        return Err(DaemonError::Config(told(found.errors).join("\n")));
    }
    let names: Vec<_> = read.accesses.iter().map(|a| a.name.as_str()).collect();
    let accesses = match names.is_empty() {
        true => "no access is named".to_owned(),
        false => format!("accesses {}", names.join(", ")),
    };
    let unbonded = match read.steers(role) {
        None => "",
        Some(true) => "; what is not bonded leaves by those that work",
        Some(false) => "; what is not bonded leaves as the system's routes say",
    };
    Ok(Checked {
        summary: format!("{} is right: {accesses}{unbonded}", config.display()),
        warnings: told(found.warnings),
    })
}

/// Takes back what a daemon of this device leaves for the time without it, in the calling thread's
/// network namespace: the kill switch of `[lan]`. Says what it did.
///
/// # Errors
/// A daemon runs and serves at `control`; or the kernel refuses.
pub fn down(control: &Path) -> Result<String, DaemonError> {
    if std::os::unix::net::UnixStream::connect(control).is_ok() {
        return Err(DaemonError::Refused(format!(
            "a daemon serves at {}: stop it first (systemctl stop braid)",
            control.display()
        )));
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| DaemonError::Failed(format!("start a runtime: {e}")))?;
    runtime.block_on(lan::take_back())
}

/// Runs a daemon until SIGTERM (returns `false`), SIGINT or SIGQUIT (`true`). Prints
/// `ready` on standard output when it serves.
///
/// # Errors
/// See [`DaemonError`]; its exit code is the process's.
pub fn run(role: Role, config: &Path, control: &Path) -> Result<bool, DaemonError> {
    allow_descriptors();
    let interrupted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = Arc::clone(&interrupted);
    // From before anything is set up: what comes meanwhile ends it, in order, once that is done.
    run_until_told(role, config, control, move || {
        let handler = |kind| signal(kind).expect("a runtime with I/O is running");
        let (mut terminate, mut interrupt, mut quit) = signals::held_back(|| {
            (
                handler(SignalKind::terminate()),
                handler(SignalKind::interrupt()),
                handler(SignalKind::quit()),
            )
        });
        async move {
            let _ = io::stdout().write_all(b"ready\n");
            let _ = io::stdout().flush();
            let by_hand = tokio::select! {
                _ = terminate.recv() => false,
                _ = interrupt.recv() => true,
                _ = quit.recv() => true,
            };
            told.store(by_hand, std::sync::atomic::Ordering::Relaxed);
        }
    })?;
    Ok(interrupted.load(std::sync::atomic::Ordering::Relaxed))
}

/// Lets this process have as many descriptors as its hard limit allows: each connection of a host
/// takes one, and the usual soft limit is 1024, for programs that call select(2).
fn allow_descriptors() {
    let limit = Resource::RLIMIT_NOFILE;
    if let Ok((soft, hard)) = getrlimit(limit)
        && soft < hard
        && let Err(e) = setrlimit(limit, hard, hard)
    {
        tracing::warn!("{soft} descriptors at most (RLIMIT_NOFILE): raise it to {hard}: {e}");
    }
}

/// Runs a daemon in the calling thread's network namespace until `stop`, which
/// is first polled when it serves, is complete. Then nothing of what it set up
/// is left but what live connections need.
///
/// # Errors
/// See [`DaemonError`].
pub fn run_until(
    role: Role,
    config: &Path,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    run_until_told(role, config, control, || stop)
}

/// Runs a daemon as [`run_until`] does, until the future of `stop`, which is called in the
/// runtime before anything is set up.
fn run_until_told<F: Future<Output = ()> + Send + 'static>(
    role: Role,
    config: &Path,
    control: &Path,
    stop: impl FnOnce() -> F,
) -> Result<(), DaemonError> {
    let read = Config::load(config, role)?;
    // One thread: every socket is opened in this thread's namespace.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| DaemonError::Failed(format!("start the runtime: {e}")))?;
    runtime.block_on(async { run::serve_until(role, config, read, control, stop()).await })
}
