//! The daemon, at the device (`braid up`) and at the proxy (`braid proxy`): it
//! sets up the engine in the network namespace that it is started in, follows
//! interfaces, repairs what the kernel leaves, and serves the control API.
//!
//! With `[manager] recover = false` it sets up once and only reports: this is
//! what the *stock* path manager does.

mod announce;
mod answerer;
mod arp;
mod before;
mod checker;
mod config;
mod connection;
mod dial;
mod endpoints;
mod engine;
mod events;
mod keep;
mod kept_file;
mod kernel;
mod kernel_api;
mod knocker;
mod log;
mod manager;
mod meter;
mod metrics;
mod prober;
mod quic;
mod reload;
mod requests;
mod route_mtu;
mod routes;
mod samples;
mod serve;
mod slow;
mod state;
mod status;
mod stock;
mod watch;
mod weights;

pub use config::{Access, Config};

use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use braid_api::{Engine as Kind, Role};
use braid_link::RouteEvents;
use braid_mptcp::diag::ClosedSockets;
use braid_mptcp::events::AsyncEvents;
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use state::State;

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
        } else {
            Self::Failed(e.to_string())
        }
    }
}

impl From<braid_link::Error> for DaemonError {
    fn from(e: braid_link::Error) -> Self {
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
    Ok(quic::identity(&files)?.pin().to_string())
}

/// Reads a configuration as a daemon of this role does, and says what it is about. It
/// changes nothing.
///
/// # Errors
/// The file cannot be read, or is wrong: [`DaemonError::Config`].
pub fn check(role: Role, config: &Path) -> Result<String, DaemonError> {
    let read = config::Config::load(config, role)?;
    let names: Vec<_> = read.accesses.iter().map(|a| a.name.as_str()).collect();
    let accesses = match names.is_empty() {
        true => "no access is named".to_owned(),
        false => format!("accesses {}", names.join(", ")),
    };
    Ok(format!("{} is right: {accesses}", config.display()))
}

/// Runs a daemon until SIGTERM (returns `false`) or SIGINT (`true`). Prints
/// `ready` on standard output when it serves.
///
/// # Errors
/// See [`DaemonError`]; its exit code is the process's.
pub fn run(role: Role, config: &Path, control: &Path) -> Result<bool, DaemonError> {
    let interrupted = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = Arc::clone(&interrupted);
    run_until(role, config, control, async move {
        let handler = |kind| signal(kind).expect("a runtime with I/O is running");
        let mut terminate = handler(SignalKind::terminate());
        let mut interrupt = handler(SignalKind::interrupt());
        let _ = io::stdout().write_all(b"ready\n");
        let _ = io::stdout().flush();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => told.store(true, std::sync::atomic::Ordering::Relaxed),
        }
    })?;
    Ok(interrupted.load(std::sync::atomic::Ordering::Relaxed))
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
    let read = Config::load(config, role)?;
    // One thread: every socket is opened in this thread's namespace.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| DaemonError::Failed(format!("start the runtime: {e}")))?;
    match read.engine {
        Kind::Mpquic => runtime.block_on(quic::serve_until(role, config, read, control, stop)),
        _ => runtime.block_on(serve_until(role, config, read, control, stop)),
    }
}

async fn serve_until(
    role: Role,
    file: &Path,
    config: Config,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    let listener = serve::listen(control)?;
    let _remove = RemoveOnDrop(control);
    // Before anything is read, so that no change falls between.
    let changes = RouteEvents::open()?;
    let kernel_events = match config.engine {
        Kind::Mptcp => Some(AsyncEvents::open()?),
        Kind::Tcp | Kind::Mpquic => None,
    };
    let engine = engine::Engine::set_up(&config, role, before::Before::beside(control))?;
    let (mut manager, heard) = manager::Manager::new(role, file, config, control)?;
    manager.watched_by(changes.hosts());
    let state = Arc::new(State::new(role, manager, engine)?);
    let done = watched(&state, listener, changes, kernel_events, heard, stop).await;
    let back = state.manager.lock().await.take_back().await;
    done.and(back)
    // The runtime drops what still runs, and with the last of it the engine.
}

/// Sets up, serves and follows until `stop`.
async fn watched(
    state: &Arc<State>,
    listener: tokio::net::UnixListener,
    changes: RouteEvents,
    kernel_events: Option<AsyncEvents>,
    heard: manager::Heard,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    state.begin().await?;
    let manages = kernel_events.is_some();
    let mut all = JoinSet::new();
    let metrics = state.manager.lock().await.config().metrics;
    if let Some(at) = metrics {
        all.spawn(metrics::serve(
            metrics::listen(at).await?,
            Arc::clone(state),
        ));
    }
    if let Some(events) = kernel_events {
        all.spawn(watch::mptcp(events, Arc::clone(state)));
    }
    if manages {
        all.spawn(slow::watch(Arc::clone(state)));
        all.spawn(announce::watch(Arc::clone(state)));
    }
    all.spawn(meter::watch(ClosedSockets::open()?, Arc::clone(state)));
    all.spawn(watch::links(changes, Arc::clone(state)));
    all.spawn(watch::health(heard, Arc::clone(state)));
    all.spawn(watch::reload(watch::hangups()?, Arc::clone(state)));
    let served = axum::serve(listener, serve::routes(Arc::clone(state)));
    tokio::select! {
        r = async { served.await } => {
            r.map_err(|e| DaemonError::Failed(format!("serve the control socket: {e}")))
        }
        e = watch::end_of(&mut all) => Err(e),
        () = stop => Ok(()),
    }
}

/// The control socket's file, removed when the daemon ends.
struct RemoveOnDrop<'a>(&'a Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
