//! Seeded draws of the simulation.

use std::ops::Range;
use std::time::Duration;

use braid_core::seed::{Rng, stream};
use noq_proto::{ConnectionId, ConnectionIdGenerator, InvalidCid};
use rand::RngExt;

/// A stream of draws.
#[derive(Clone, Debug)]
pub(super) struct Draws(Rng);

impl Draws {
    pub(super) fn new(seed: u64, label: &str) -> Self {
        Self(stream(seed, label))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0.random()
    }

    /// In 0..1.
    pub(super) fn unit(&mut self) -> f64 {
        self.0.random()
    }

    /// In a..b, small as often as great.
    pub(super) fn log(&mut self, a: f64, b: f64) -> f64 {
        (a.ln() + self.unit() * (b / a).ln()).exp()
    }

    /// In 0..n.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }
}

/// Connection ids from it.
#[derive(Debug)]
pub(super) struct Cids(pub(super) Draws);

impl ConnectionIdGenerator for Cids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next().to_be_bytes())
    }

    fn validate(&self, _cid: ConnectionId) -> Result<(), InvalidCid> {
        Ok(())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Returns the seeds that whoever runs a test asks for: `BRAID_SEEDS`, one, or `first..end`; so that
/// a long one can be run in parts.
///
/// # Panics
/// It is neither.
pub(super) fn asked() -> Option<Range<u64>> {
    let text = std::env::var("BRAID_SEEDS").ok()?;
    let range = match text.split_once("..") {
        Some((first, end)) => first.parse().ok().zip(end.parse().ok()),
        None => text.parse().ok().map(|one: u64| (one, one + 1)),
    };
    let (first, end) = range.unwrap_or_else(|| panic!("BRAID_SEEDS={text}: expected N or N..M"));
    Some(first..end)
}

/// Seeds that `BRAID_SEEDS` asks for, or these.
pub(super) fn asked_or(usual: impl IntoIterator<Item = u64>) -> Vec<u64> {
    match asked() {
        Some(some) => some.collect(),
        None => usual.into_iter().collect(),
    }
}
