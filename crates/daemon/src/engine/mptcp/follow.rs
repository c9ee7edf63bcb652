//! Follows the kernel, and the answers of probes.

use std::sync::Arc;
use std::time::Duration;

use braid_access::links::{Heard, RouteEvents};
use braid_api::{EventKind, SubflowEvent};
use braid_core::Time;
use braid_mptcp::events::{AsyncEvents, Batch, Event, EventKind as Kind};

use super::Mptcp;
use super::manager::Heard as Incoming;
use crate::DaemonError;
use crate::engine::tcp::settle;
use crate::state::now;

/// Nothing is waited for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// Follows interfaces, addresses, routes and rules until that fails: says why.
pub(super) async fn links(mut changes: RouteEvents, state: Arc<Mptcp>) -> DaemonError {
    loop {
        match changes.next().await {
            Ok(heard) => {
                settle().await;
                if heard == Heard::Lost {
                    state.shared.lost();
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
pub(super) async fn connections(mut events: AsyncEvents, state: Arc<Mptcp>) -> DaemonError {
    loop {
        match events.next().await {
            Ok(Batch::Events(all)) => {
                all.iter().for_each(|e| state.note_mptcp(e));
                state.hurry(&all);
            }
            Ok(Batch::Lost) => state.shared.lost(),
            Ok(Batch::Nothing) => {}
            Err(e) => {
                return DaemonError::Failed(format!("{e}: connections cannot be followed"));
            }
        }
    }
}

/// Probes, and judges accesses, for ever.
pub(super) async fn liveness(mut heard: Incoming, state: Arc<Mptcp>) -> DaemonError {
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

impl Mptcp {
    /// Notes an event of MPTCP.
    fn note_mptcp(&self, e: &Event) {
        let token = e.token.unwrap_or(0);
        if e.kind == Kind::Closed {
            self.forget(token);
        }
        let subflow = || SubflowEvent {
            token,
            local_id: e.local_id.unwrap_or(0),
            remote_id: e.remote_id.unwrap_or(0),
            local: e.local,
            remote: e.remote,
            backup: e.backup.unwrap_or(false),
            error: e.error,
        };
        let remote_id = e.remote_id.unwrap_or(0);
        let what = match e.kind {
            Kind::Created => EventKind::Created { token },
            Kind::Established => EventKind::Established { token },
            Kind::Closed => EventKind::Closed { token },
            Kind::SubflowEstablished => EventKind::SubflowEstablished(subflow()),
            Kind::SubflowClosed => EventKind::SubflowClosed(subflow()),
            Kind::SubflowPriority => EventKind::SubflowPriority(subflow()),
            Kind::Announced => EventKind::Announced {
                token,
                remote_id,
                address: e.remote.map(|r| r.ip()),
            },
            Kind::Removed => EventKind::Removed { token, remote_id },
            Kind::ListenerCreated | Kind::ListenerClosed | Kind::Other(_) => {
                return;
            }
        };
        let (local, remote) = (e.local.map(|a| a.ip()), e.remote.map(|a| a.ip()));
        self.shared.log(self.sockets.access_of(local, remote), what);
    }
}
