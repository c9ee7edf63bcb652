//! Expected rates of the paths of QUIC: each end tells the other how much they may carry to it.

use std::collections::BTreeMap;

use noq_proto::PathId;

use super::acknowledge::MAX_PATHS;
use super::control_updates::Update;

/// Rate that the peer expects of a path: of several the one with the greatest number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Expectation {
    pub(crate) number: u64,
    /// Bytes per second; 0: not known.
    pub(crate) rate: u64,
}

impl Expectation {
    /// Takes the place of what is older.
    pub(crate) fn join(self, all: &mut BTreeMap<PathId, Self>, path: PathId) {
        let known = all.entry(path).or_insert(self);
        *known = self.max(*known);
    }
}

/// Expectations of both ends.
#[derive(Debug, Default)]
pub(super) struct Expectations {
    /// Expectations of the peer that were not taken yet.
    received: BTreeMap<PathId, Expectation>,
    /// Number of the latest that was sent.
    sent: u64,
}

impl Expectations {
    /// Returns the next update to the peer: the rate that a path of QUIC may carry to this end,
    /// bytes per second; 0 if that is not known any more.
    pub(super) fn update(&mut self, path: PathId, rate: u64) -> Update {
        self.sent += 1;
        Update::Expected(path, rate, self.sent)
    }

    /// Keeps an expectation of the peer.
    pub(super) fn receive(&mut self, path: PathId, expectation: Expectation) {
        expectation.join(&mut self.received, path);
        // There are no more paths than that; what is said of others is no use.
        if self.received.len() > MAX_PATHS {
            self.received.pop_last();
        }
    }

    /// Takes the expectations of the peer since the last call, by path.
    pub(super) fn take(&mut self) -> BTreeMap<PathId, Expectation> {
        std::mem::take(&mut self.received)
    }

    /// Returns the number of expectations that were not taken yet.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.received.len()
    }
}
