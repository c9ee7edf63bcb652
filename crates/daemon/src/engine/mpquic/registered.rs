//! Accesses that devices register on their sessions.

use std::collections::{BTreeMap, BTreeSet};

use braid_api::registration::Request;
use braid_core::Rate;
use braid_core::class::ClassSteering;
use braid_mpquic::{Lane, PathInfo, Session};

use super::Mpquic;
use super::steered::{Steered, access};
use crate::config;
use crate::engine::{Registered, Steering};
use crate::registration::converse;
use crate::state::lock;

/// Returns the access of each path of the device's session, by the path's identifier.
pub(super) fn paths(engine: &Mpquic) -> BTreeMap<u32, String> {
    let session = engine.current.borrow().clone();
    let paths = session.and_then(|s| s.paths().ok()).unwrap_or_default();
    let of = |p: PathInfo| Some((p.id, p.access.filter(|_| p.usable)?));
    paths.into_iter().filter_map(of).collect()
}

/// Registers the accesses of this device on its session; `None` without one.
pub(super) async fn register(engine: &Mpquic, request: &Request) -> Option<Registered> {
    let session = engine.current.borrow().clone()?;
    let mut stream = match session.open().await {
        Ok(stream) => stream,
        Err(e) => return Some(Err(e.to_string())),
    };
    Some(converse(&mut stream, request).await)
}

impl Steered {
    /// Goes by the accesses of the file and those that were registered; those that are known
    /// already stay as they are steered.
    fn follow_registered(&mut self, accesses: &[config::Access]) {
        let mut all = Vec::new();
        for a in accesses {
            let known = self.accesses.iter().find(|k| k.name == a.name);
            all.push(
                known
                    .cloned()
                    .unwrap_or_else(|| access(a, braid_api::Role::Proxy)),
            );
        }
        self.accesses = all;
    }
}

impl Mpquic {
    pub(super) fn go_by_registered(&self, accesses: &[config::Access], weights: &Steering) {
        *lock(&self.accesses) = accesses.to_vec();
        let done = self.steer_by(|steered| {
            steered.follow_registered(accesses);
            steered.set_weights(&weights.weights);
            Ok(())
        });
        if let Err(e) = done {
            self.note(e.to_string());
        }
    }

    fn session(&self, token: u32) -> Option<Session> {
        lock(&self.sessions).all().remove(&token)
    }

    /// Returns the configured access of each path of a session, if it is on one.
    pub(super) fn configured_paths_of(&self, token: u32) -> BTreeMap<u32, Option<String>> {
        let paths = self.session(token).and_then(|s| s.paths().ok());
        let configured: BTreeSet<String> = {
            let accesses = lock(&self.accesses);
            let named = accesses.iter().filter(|a| a.registered.is_none());
            named.map(|a| a.name.clone()).collect()
        };
        let of = |p: PathInfo| (p.id, p.access.filter(|n| configured.contains(n)));
        paths.into_iter().flatten().map(of).collect()
    }

    /// Steers the classes of a session as its device requests.
    pub(super) fn steer_classes_of(&self, token: u32, classes: BTreeMap<u8, ClassSteering>) {
        // Streams of QUIC are all of one class.
        if self.quic.lane == Lane::Stream || !lock(&self.sessions).set_classes(token, classes) {
            return;
        }
        self.steer_anew(token);
    }

    /// Limits the downlinks of a session.
    pub(super) fn limit_accesses_of(&self, token: u32, limits: BTreeMap<String, Rate>) {
        if lock(&self.sessions).set_limits(token, limits) {
            self.steer_anew(token);
        }
    }

    /// Steers a session by what has been requested since.
    fn steer_anew(&self, token: u32) {
        if let Some(session) = self.session(token)
            && let Err(e) = self.steer(token, &session)
            && session.paths().is_ok()
        {
            self.note(e.to_string());
        }
    }

    /// Names the accesses of a session's paths, and steers them as they are steered here.
    pub(super) fn name_paths_of(&self, token: u32, names: &BTreeMap<u32, String>) {
        let Some(session) = self.session(token) else {
            return;
        };
        // It has ended meanwhile.
        if session.name_paths(names).is_err() {
            return;
        }
        if let Err(e) = self.steer(token, &session)
            && session.paths().is_ok()
        {
            self.note(e.to_string());
        }
        self.paths_changed();
    }
}
