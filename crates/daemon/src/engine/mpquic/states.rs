//! States of the device's accesses as they change: each change is an event and a line of the log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use braid_api::{AccessState, EventKind};

use super::{Mpquic, api_view};
use crate::DaemonError;
use crate::state::lock;

/// Interval at which links are looked at; paths tell of themselves.
const EVERY: Duration = Duration::from_secs(1);

/// Tells of changes, for ever.
pub(super) async fn follow(state: Arc<Mpquic>) -> DaemonError {
    let mut known = BTreeMap::new();
    loop {
        let now = state.states();
        for (name, (is, why)) in &now {
            if known.get(name) != Some(is) {
                let what = EventKind::AccessState {
                    state: *is,
                    why: why.clone(),
                };
                state.log(Some(name.clone()), what);
            }
        }
        let now: BTreeMap<_, _> = now.into_iter().map(|(n, (s, _))| (n, s)).collect();
        if now != known
            && let Some(unbonded) = &state.unbonded
        {
            unbonded.changed.notify_one();
        }
        known = now;
        tokio::select! {
            () = state.moved.notified() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

impl Mpquic {
    /// Returns the state of each access, with the reason.
    fn states(&self) -> BTreeMap<String, (AccessState, String)> {
        let paths = self.paths();
        self.prove(&paths);
        let traffic = api_view::traffic(&paths);
        let accesses = lock(&self.accesses).clone();
        let state = |a: &crate::config::Access| {
            let view = self.view(a, &traffic);
            (a.name.clone(), (view.state, view.why))
        };
        accesses.iter().map(state).collect()
    }
}
