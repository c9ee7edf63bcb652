//! Expected rates of the paths of QUIC: each end tells the other how much they may carry to it.

use std::collections::BTreeMap;

use noq_proto::PathId;

use super::Lane;
use super::told::Word;

/// Rate that the peer expects of a path: of several words the one with the greatest number.
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

impl Lane {
    /// Tells the peer what a path of QUIC may carry to this end, bytes per second; 0 if that
    /// is not known any more.
    pub(crate) fn expect(&mut self, path: PathId, rate: u64) {
        self.words += 1;
        let word = Word::Expected(path, rate, self.words);
        self.outgoing.told.set(word);
    }

    /// A path of QUIC has ended.
    pub(crate) fn expect_nothing(&mut self, path: PathId) {
        self.outgoing.told.forget_path(path);
    }

    /// Takes the expectations, by path, that the peer has sent since the last call.
    pub(crate) fn expected(&mut self) -> BTreeMap<PathId, Expectation> {
        std::mem::take(&mut self.expected)
    }
}
