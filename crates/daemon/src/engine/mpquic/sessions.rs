//! Sessions: their numbers, the weights that hold for one alone, and what is told of each.

use std::collections::{BTreeMap, BTreeSet};

use braid_api::EventKind;
use braid_core::Rate;
use braid_core::class::ClassSteering;
use braid_mpquic::{AccessChange, PathInfo, Session};
use tokio::sync::broadcast::error::RecvError;

use super::{Mpquic, api_view};
use crate::DaemonError;
use crate::engine::{ByName, Engine, Result};
use crate::state::lock;

/// Sessions by the number that requests call them by.
#[derive(Default)]
pub(super) struct Sessions {
    all: BTreeMap<u32, Session>,
    /// Weights of single sessions.
    weights: BTreeMap<u32, ByName>,
    /// Steering of classes, by their numbers, as devices have requested for their sessions.
    classes: BTreeMap<u32, BTreeMap<u8, ClassSteering>>,
    /// Greatest rates of downlinks, by the names of accesses, as devices have requested for their
    /// sessions.
    limits: BTreeMap<u32, BTreeMap<String, Rate>>,
    /// Number of the last one.
    last: u32,
}

impl Sessions {
    pub(super) fn all(&self) -> BTreeMap<u32, Session> {
        self.all.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn numbers(&self) -> BTreeSet<u32> {
        self.all.keys().copied().collect()
    }

    /// Takes all away.
    pub(super) fn take(&mut self) -> BTreeMap<u32, Session> {
        std::mem::take(&mut self.all)
    }

    /// Sets the weights of single sessions; returns those before.
    pub(super) fn set_weights(&mut self, new: BTreeMap<u32, ByName>) -> BTreeMap<u32, ByName> {
        std::mem::replace(&mut self.weights, new)
    }

    /// Sets the limits of a session's downlinks; returns whether these are others.
    pub(super) fn set_limits(&mut self, number: u32, new: BTreeMap<String, Rate>) -> bool {
        let before = match new.is_empty() {
            true => self.limits.remove(&number),
            false => self.limits.insert(number, new.clone()),
        };
        before.unwrap_or_default() != new
    }

    /// Sets the steering of classes of a session; returns whether that is another.
    pub(super) fn set_classes(&mut self, number: u32, new: BTreeMap<u8, ClassSteering>) -> bool {
        if !self.all.contains_key(&number) {
            return false;
        }
        let before = match new.is_empty() {
            true => self.classes.remove(&number),
            false => self.classes.insert(number, new.clone()),
        };
        before.unwrap_or_default() != new
    }

    fn add(&mut self, number: u32, session: Session) {
        self.all.insert(number, session);
    }

    fn remove(&mut self, number: u32) {
        self.all.remove(&number);
        self.weights.remove(&number);
        self.classes.remove(&number);
        self.limits.remove(&number);
    }

    /// Returns the number of the next session: the next that `taken` does not have.
    fn next(&mut self, taken: impl Fn(u32) -> bool) -> u32 {
        self.last = self.last.wrapping_add(1).max(1);
        while taken(self.last) || self.all.contains_key(&self.last) {
            self.last = self.last.wrapping_add(1).max(1);
        }
        self.last
    }
}

impl Mpquic {
    /// Returns the paths of every session, by its number.
    pub(super) fn paths(&self) -> Vec<(u32, Vec<PathInfo>)> {
        let sessions = lock(&self.sessions).all();
        let paths = |(t, s): (u32, Session)| Some((t, s.paths().ok()?));
        sessions.into_iter().filter_map(paths).collect()
    }

    /// Gives a session its number.
    pub(super) fn number(&self, session: &Session) -> u32 {
        let mut sessions = lock(&self.sessions);
        let token = sessions.next(|n| self.tokens.are_taken(n, self.kind()));
        sessions.add(token, session.clone());
        token
    }

    /// Follows a session that has a number until it has ended; returns why it has.
    pub(super) async fn follow(&self, token: u32, session: &Session) -> String {
        self.paths_changed();
        self.log(None, EventKind::Created { token });
        // Requests that came while it was made.
        if let Err(e) = self.steer(token, session) {
            self.note(e.to_string());
        }
        let mut events = session.events().ok();
        let why = loop {
            let change = async {
                match &mut events {
                    Some(events) => events.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = session.ended() => break ended.to_string(),
                change = change => match change {
                    Ok(change) => {
                        api_view::log(self, &change);
                        self.paths_changed();
                    }
                    Err(RecvError::Lagged(_)) => {
                        self.shared.lost();
                        self.paths_changed();
                    }
                    Err(_) => events = None,
                },
            }
        };
        lock(&self.sessions).remove(token);
        lock(&self.class_meter).end(token);
        self.paths_changed();
        self.log(None, EventKind::Closed { token });
        why
    }

    /// Steers a session as all are.
    pub(super) fn steer(&self, token: u32, session: &Session) -> Result<()> {
        let steered = lock(&self.steered).clone();
        let refused = |e: braid_mpquic::Error| DaemonError::Refused(e.to_string());
        let mut scheduling = steered.scheduling;
        if let Some(classes) = lock(&self.sessions).classes.get(&token) {
            scheduling.classes.clone_from(classes);
        }
        session.set_steering(&scheduling).map_err(refused)?;
        // Those that other devices have registered are none of it.
        let known: BTreeSet<String> = session
            .accesses()
            .map_err(refused)?
            .into_iter()
            .map(|a| a.name)
            .collect();
        let mine = || steered.accesses.iter().filter(|a| known.contains(&a.name));
        let general = mine();
        let mut weights: ByName = general.map(|a| (a.name.clone(), a.weight)).collect();
        let own = lock(&self.sessions).weights.get(&token).cloned();
        weights.extend(own.unwrap_or_default());
        // A device whose paths are on accesses of the weight 0 alone sends as it would without.
        if weights.values().any(|w| *w > 0.0) {
            let weights: Vec<_> = weights.into_iter().collect();
            session.set_weights(&weights).map_err(refused)?;
        }
        let limits = lock(&self.sessions).limits.get(&token).cloned();
        let limits = limits.unwrap_or_default();
        for a in mine() {
            let change = AccessChange {
                priority: Some(a.priority),
                backup: Some(a.backup),
                expected: Some(a.expected),
                limit: Some(limits.get(&a.name).copied().or(a.limit)),
            };
            session.set_access(&a.name, change).map_err(refused)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_gets_no_number_that_another_connection_has() {
        let mut sessions = Sessions::default();
        assert_eq!(sessions.next(|_| false), 1);
        assert_eq!(sessions.next(|n| [2, 3].contains(&n)), 4);
        assert_eq!(sessions.next(|_| false), 5, "and none that one has had");
        sessions.last = u32::MAX;
        assert_eq!(sessions.next(|_| false), 1, "0 is none");
    }
}
