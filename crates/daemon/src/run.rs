//! Runs a daemon: sets up, serves and follows until it is to end, and takes back.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use braid_api::Role;
use tokio::net::UnixListener;
use tokio::signal::unix::Signal;
use tokio::task::JoinSet;

use super::config::Config;
use super::daemon::{Daemon, hangups, on_hangups};
use super::http::{api, metrics};
use super::{DaemonError, contact, control, energy, names, proxies, registration, usage};

/// Serves in the calling thread's namespace until `stop`, which is first polled when it serves,
/// is complete.
pub(crate) async fn serve_until(
    role: Role,
    file: &Path,
    config: Config,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    // Before anything is set up: it would end the process there.
    let hangups = hangups()?;
    let listener = api::listen(control)?;
    let _remove = RemoveOnDrop(control);
    api::open_to(control, &config);
    let daemon = Arc::new(Daemon::new(role, file, config, control)?);
    let done = followed(&daemon, (listener, hangups), stop).await;
    let closed = daemon.close().await;
    done.and(closed)
    // The runtime drops what still runs, and with the last of it the engines.
}

/// Sets up, serves and follows until `stop`.
async fn followed(
    daemon: &Arc<Daemon>,
    (listener, hangups): (UnixListener, Signal),
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    daemon.start().await?;
    let mut all = JoinSet::new();
    if let Some(at) = daemon.config().metrics {
        let listener = metrics::listen(at).await?;
        all.spawn(metrics::serve(listener, Arc::clone(daemon)));
    }
    for engine in daemon.engines() {
        for task in Arc::clone(engine).tasks()? {
            all.spawn(task);
        }
    }
    if daemon.is_weighted() {
        all.spawn(control::run(Arc::clone(daemon)));
        all.spawn(control::run_probes(Arc::clone(daemon)));
    }
    all.spawn(Arc::clone(daemon).meter());
    all.spawn(names::follow(Arc::clone(daemon)));
    all.spawn(proxies::follow(Arc::clone(daemon)));
    all.spawn(contact::follow(Arc::clone(daemon)));
    all.spawn(usage::follow(Arc::clone(daemon)));
    all.spawn(energy::follow(Arc::clone(daemon)));
    all.spawn(registration::run_device(Arc::clone(daemon)));
    all.spawn(registration::run_proxy(Arc::clone(daemon)));
    all.spawn(on_hangups(hangups, Arc::clone(daemon)));
    let done = tokio::select! {
        r = api::serve(listener, Arc::clone(daemon)) => {
            r.map_err(|e| DaemonError::Failed(format!("serve the control socket: {e}")))
        }
        e = end_of(&mut all) => Err(e),
        () = stop => Ok(()),
    };
    // What is taken back afterwards is to stay so.
    all.shutdown().await;
    done
}

/// The control socket's file, removed when the daemon ends.
struct RemoveOnDrop<'a>(&'a Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// Waits for the first of those that are to go on for ever, and says why it did not.
async fn end_of(all: &mut JoinSet<DaemonError>) -> DaemonError {
    let why = match all.join_next().await {
        Some(Ok(e)) => e.to_string(),
        Some(Err(e)) => format!("a task of the daemon ended ({e}): this is a bug"),
        None => return std::future::pending().await,
    };
    DaemonError::Failed(format!(
        "{why}: the daemon ends, since it would not hear of changes: start it again (systemd \
         does), it takes over what is set"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_daemon_ends_with_the_first_of_its_tasks() {
        let begin = |ends: Option<&'static str>| {
            let mut all = JoinSet::new();
            all.spawn(std::future::pending());
            all.spawn(async move {
                match ends {
                    Some(why) => DaemonError::Failed(why.into()),
                    None => panic!("out of order"),
                }
            });
            all
        };
        let failed = end_of(&mut begin(Some("read changes: gone"))).await;
        assert!(
            failed
                .to_string()
                .starts_with("read changes: gone: the daemon ends")
        );
        assert_eq!(failed.exit_code(), 1, "the unit starts it again");
        let panicked = end_of(&mut begin(None)).await.to_string();
        assert!(panicked.contains("out of order"), "{panicked}");
    }
}
