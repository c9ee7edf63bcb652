//! Listens: to the kernel, to answers of probes, to SIGHUP.

use std::sync::Arc;
use std::time::Duration;

use braid_core::Time;
use braid_link::{Heard, RouteEvents};
use braid_mptcp::events::{AsyncEvents, Batch, EventKind};
use tokio::signal::unix::{SignalKind, signal};

use super::DaemonError;
use super::manager::Heard as Incoming;
use super::state::{State, now};

/// How often others get their turn before a burst of changes is taken for over.
const TURNS: usize = 4;
/// Nothing is waited for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Follows interfaces, addresses, routes and rules.
pub(super) async fn links(mut changes: RouteEvents, state: Arc<State>) {
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
                eprintln!("braid: {e}; interfaces are no longer followed");
                return;
            }
        }
    }
}

/// Follows connections and subflows.
pub(super) async fn mptcp(mut events: AsyncEvents, state: Arc<State>) {
    loop {
        match events.next().await {
            Ok(Batch::Events(all)) => {
                all.iter().for_each(|e| state.note_mptcp(e));
                let begun = |e: &&braid_mptcp::events::Event| {
                    matches!(
                        e.kind,
                        EventKind::Established | EventKind::SubflowEstablished
                    )
                };
                if all.iter().any(|e| begun(&e)) {
                    state.hurry().await;
                }
            }
            Ok(Batch::Lost) => state.note_lost(),
            Ok(Batch::Nothing) => {}
            Err(e) => {
                eprintln!("braid: {e}; its events are no longer told");
                return;
            }
        }
    }
}

/// Probes, and judges accesses.
pub(super) async fn health(mut heard: Incoming, state: Arc<State>) {
    let answers = &mut heard.answers;
    loop {
        let due = state.manager.lock().await.due();
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

/// Reads the configuration again on SIGHUP.
pub(super) fn reload(state: Arc<State>) -> Result<(), DaemonError> {
    let mut hangup = signal(SignalKind::hangup())
        .map_err(|e| DaemonError::Failed(format!("listen to SIGHUP: {e}")))?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            state.reload().await;
        }
    });
    Ok(())
}
