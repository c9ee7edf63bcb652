//! Listens: to the kernel, to answers of probes, to SIGHUP.

use std::sync::Arc;
use std::time::Duration;

use braid_core::Time;
use braid_link::{Heard, RouteEvents};
use braid_mptcp::events::{AsyncEvents, Batch, EventKind};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinSet;

use super::DaemonError;
use super::manager::Heard as Incoming;
use super::state::{State, now};

/// How often others get their turn before a burst of changes is taken for over.
const TURNS: usize = 4;
/// Nothing is waited for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Follows interfaces, addresses, routes and rules until that fails: says why.
pub(super) async fn links(mut changes: RouteEvents, state: Arc<State>) -> DaemonError {
    loop {
        match changes.next().await {
            Ok(heard) => {
                // What belongs together comes in one go: take it as one.
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                }
                if heard == Heard::Lost {
                    state.note_lost();
                }
                state.reconcile().await;
            }
            Err(e) => {
                return DaemonError::Failed(format!("{e}: interfaces cannot be followed"));
            }
        }
    }
}

/// Follows connections and subflows until that fails: says why.
pub(super) async fn mptcp(mut events: AsyncEvents, state: Arc<State>) -> DaemonError {
    loop {
        match events.next().await {
            Ok(Batch::Events(all)) => {
                all.iter().for_each(|e| state.note_mptcp(e));
                let counts = |e: &braid_mptcp::events::Event| {
                    matches!(
                        e.kind,
                        EventKind::Established
                            | EventKind::SubflowEstablished
                            | EventKind::SubflowClosed
                    )
                };
                if all.iter().any(counts) {
                    state.hurry();
                }
            }
            Ok(Batch::Lost) => state.note_lost(),
            Ok(Batch::Nothing) => {}
            Err(e) => {
                return DaemonError::Failed(format!("{e}: connections cannot be followed"));
            }
        }
    }
}

/// Probes, and judges accesses, for ever.
pub(super) async fn health(mut heard: Incoming, state: Arc<State>) -> DaemonError {
    let answers = &mut heard.answers;
    loop {
        let due = state.due().await;
        let wait = due.since(Time::from_nanos(now())).min(LONGEST);
        tokio::select! {
            biased;
            Some((address, back, at)) = answers.recv() => {
                let mut manager = state.manager.lock().await;
                manager.answer(address, back, at);
                while let Ok((address, back, at)) = answers.try_recv() {
                    manager.answer(address, back, at);
                }
            }
            Some((address, stripped)) = heard.verdicts.recv() => {
                let news = state.manager.lock().await.verdict(address, stripped);
                if news {
                    state.reconcile().await;
                }
            }
            () = state.wake.notified() => {}
            () = tokio::time::sleep(wait) => state.tick().await,
        }
    }
}

/// Listens to SIGHUP.
pub(super) fn hangups() -> Result<Signal, DaemonError> {
    signal(SignalKind::hangup()).map_err(|e| DaemonError::Failed(format!("listen to SIGHUP: {e}")))
}

/// Reads the configuration again on each SIGHUP.
pub(super) async fn reload(mut hangups: Signal, state: Arc<State>) -> DaemonError {
    while hangups.recv().await.is_some() {
        state.reload().await;
    }
    DaemonError::Failed("listen to SIGHUP: no more can come".into())
}

/// Waits for the first of those that are to go on for ever, and says why it did not.
pub(super) async fn end_of(all: &mut JoinSet<DaemonError>) -> DaemonError {
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
