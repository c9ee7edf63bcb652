//! One end of the accesses as a process of its own: it sets up the engine in the
//! network namespace that it is started in, watches, and serves the control API.
//!
//! It never opens subflows again by itself after a link came back: this is what
//! the *stock* path manager does, observed and reported.

mod config;
mod engine;
mod links;
mod log;
mod serve;
mod state;

pub use config::{Access, Config};

use std::future::Future;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use braid_core::api::Engine as Kind;
use braid_mptcp::events::{AsyncEvents, Batch};
use thiserror::Error;
use tokio::signal::unix::{SignalKind, signal};

/// Why an end could not start, or refuses a request.
#[derive(Debug, Error)]
pub enum EndError {
    /// The configuration is wrong: file, line, column, what.
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

impl EndError {
    /// The exit status of a process that ends for this reason.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) => 2,
            Self::Lacking(_) => 3,
            _ => 1,
        }
    }

    fn about(self, what: &str) -> Self {
        match self {
            Self::Refused(e) => Self::Refused(format!("{what}: {e}")),
            Self::Failed(e) => Self::Failed(format!("{what}: {e}")),
            other => other,
        }
    }
}

impl From<braid_mptcp::Error> for EndError {
    fn from(e: braid_mptcp::Error) -> Self {
        if e.is_lacking() {
            Self::Lacking(e.to_string())
        } else {
            Self::Failed(e.to_string())
        }
    }
}

/// Runs an end until SIGTERM or SIGINT. Prints `ready` on standard output when it
/// serves.
///
/// # Errors
/// See [`EndError`]; its exit code is the process's.
pub fn run(config: &Path, control: &Path) -> Result<(), EndError> {
    run_until(config, control, async {
        let handler = |kind| signal(kind).expect("a runtime with I/O is running");
        let mut terminate = handler(SignalKind::terminate());
        let mut interrupt = handler(SignalKind::interrupt());
        let _ = io::stdout().write_all(b"ready\n");
        let _ = io::stdout().flush();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Runs an end in the calling thread's network namespace until `stop`, which is
/// first polled when the end serves, is complete. Then nothing of what it set up
/// is left.
///
/// # Errors
/// See [`EndError`].
pub fn run_until(
    config: &Path,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), EndError> {
    let config = Config::load(config)?;
    // One thread: every socket is opened in this thread's namespace.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| EndError::Failed(format!("start the runtime: {e}")))?;
    runtime.block_on(end(config, control, stop))
}

async fn end(
    config: Config,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), EndError> {
    let listener = serve::listen(control)?;
    let _remove = RemoveOnDrop(control);
    let (connection, handle, _) = rtnetlink::new_connection()
        .map_err(|e| EndError::Failed(format!("open a netlink socket: {e}")))?;
    tokio::spawn(connection);
    let links = links::Links::read(&handle).await?;
    let mptcp_events = match config.engine {
        Kind::Mptcp => Some(AsyncEvents::open()?),
        Kind::Tcp => None,
    };
    let engine = engine::Engine::set_up(&config, &links.indices())?;
    let state = Arc::new(state::State::new(config, engine, handle)?);

    let known = links
        .by_name
        .into_iter()
        .map(|(name, (_, up))| (name, up))
        .collect();
    let told = Arc::clone(&state);
    links::watch(move |what| told.note_link(what), known)?;
    if let Some(events) = mptcp_events {
        tokio::spawn(watch_mptcp(events, Arc::clone(&state)));
    }
    let served = axum::serve(listener, serve::routes(Arc::clone(&state)));
    tokio::select! {
        r = async { served.await } => {
            r.map_err(|e| EndError::Failed(format!("serve the control socket: {e}")))
        }
        () = stop => Ok(()),
    }
    // The runtime drops what still runs, and with the last of it the engine.
}

async fn watch_mptcp(mut events: AsyncEvents, state: Arc<state::State>) {
    loop {
        match events.next().await {
            Ok(Batch::Events(all)) => all.iter().for_each(|e| state.note_mptcp(e)),
            Ok(Batch::Lost) => state.note_lost(),
            Ok(Batch::Nothing) => {}
            Err(e) => {
                eprintln!("braid: {e}; its events are no longer told");
                return;
            }
        }
    }
}

/// The control socket's file, removed when the end ends.
struct RemoveOnDrop<'a>(&'a Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}
