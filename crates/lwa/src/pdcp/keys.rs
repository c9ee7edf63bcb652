//! Keys by the COUNTs that they cipher.

use thiserror::Error;

use crate::cipher::Eea2;

/// Why a key could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum KeyError {
    /// Nothing was numbered since the change before, so both would begin at the same packet.
    #[error("change the key: no packet was sent under the last key yet; send one first")]
    Unused,
    /// The end marker of the change before has not come yet.
    #[error("stage a key: the end marker of the last change has not come yet; wait for it")]
    Staged,
}

/// Keys by the first COUNT that each of them ciphers, ascending. No key means EEA0: not ciphered.
#[derive(Clone, Debug)]
pub(super) struct Keys(Vec<(u32, Option<Eea2>)>);

impl Keys {
    /// One key for all.
    pub(super) fn new(key: Option<Eea2>) -> Self {
        Keys(vec![(0, key)])
    }

    /// First COUNT of the newest key.
    pub(super) fn newest(&self) -> u32 {
        self.0.last().map_or(0, |k| k.0)
    }

    /// Uses `key` from COUNT `first` on; `first` must lie above that of every key before.
    pub(super) fn add(&mut self, first: u32, key: Option<Eea2>) {
        debug_assert!(first > self.newest());
        self.0.push((first, key));
    }

    /// Forgets keys that only cipher packets below `count`.
    pub(super) fn prune(&mut self, count: u32) {
        while self.0.len() > 1 && self.0[1].0 <= count {
            self.0.remove(0);
        }
    }

    /// Ciphers or deciphers the packet with COUNT `count`.
    pub(super) fn apply(&self, count: u32, data: &mut [u8]) {
        let key = self.0.iter().rev().find(|k| k.0 <= count);
        if let Some((_, Some(key))) = key {
            key.apply(count, data);
        }
    }
}
