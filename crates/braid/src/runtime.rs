//! Commands that ask a daemon wait for its answer on their own thread.

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};

/// Builds the single-threaded runtime on which a command waits for a daemon's answer.
///
/// # Errors
/// The system gives no event queue.
pub(crate) fn runtime() -> Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build().context("start the runtime")
}
