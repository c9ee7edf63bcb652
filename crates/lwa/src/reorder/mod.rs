//! Reordering times: how long a receiver waits for a gap to be filled (t-Reordering).
//!
//! One file per policy; [`REGISTRY`] lists them. A policy hears the round trips of the links and
//! how late packets come behind later ones, and says the time to wait.

mod adaptive;
mod fixed;
mod paper;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use braid_core::Time;
use thiserror::Error;

use crate::link::Link;

/// Longest time that RRC can set for t-Reordering, where it is finite (TS 36.331).
pub const LONGEST: Duration = Duration::from_millis(750);

/// How long to wait for a gap.
pub trait ReorderingTime: fmt::Debug + Send {
    /// A probe of `link` came back after `rtt`.
    fn round_trip(&mut self, _now: Time, _link: Link, _rtt: Duration) {}

    /// A packet came `late` behind a later one; `in_time` says whether its gap was still open.
    fn late(&mut self, _now: Time, _late: Duration, _in_time: bool) {}

    /// Time to wait, from now on.
    fn time(&self, now: Time) -> Duration;
}

/// One policy of the registry.
pub struct Entry {
    /// Name in configurations; an argument follows behind a colon.
    pub name: &'static str,
    /// Argument it takes, as a usage line writes it; empty for none.
    pub argument: &'static str,
    /// One line about it.
    pub about: &'static str,
    make: fn(&str) -> Option<Box<dyn ReorderingTime>>,
}

/// Every policy.
pub const REGISTRY: &[Entry] = &[fixed::ENTRY, paper::ENTRY, adaptive::ENTRY];

/// Why a reordering time could not be made from its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("reordering time {0:?}: expected fixed:MS (at most 750), paper or adaptive")]
pub struct UnknownReordering(String);

/// Makes the policy that `text` names: `fixed:80`, `paper`, `adaptive`.
pub fn parse(text: &str) -> Result<Box<dyn ReorderingTime>, UnknownReordering> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    (REGISTRY.iter().find(|e| e.name == name))
        .and_then(|e| (e.make)(argument))
        .ok_or_else(|| UnknownReordering(text.to_owned()))
}
