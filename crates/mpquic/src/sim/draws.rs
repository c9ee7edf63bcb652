//! Seeded draws of the simulation.

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

/// Returns the number that whoever runs a test asks for by a variable of the environment.
pub(super) fn asked(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}
