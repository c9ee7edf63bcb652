//! Rate of a link as a plain value, which a trace becomes.

use std::time::Duration;

use braid_core::Rate;
use serde::{Deserialize, Serialize};

/// Capacity over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateSpec {
    /// No limit.
    Unlimited,
    /// One rate.
    Constant(Rate),
    /// Piecewise constant: each rate holds from its time on. The first time is
    /// zero; times ascend. With `period` the pattern repeats (the period is
    /// later than the last time), else the last rate stays.
    Steps {
        /// Time since the start of the run, and the rate from then on.
        points: Vec<(Duration, Rate)>,
        /// Length of one repetition.
        period: Option<Duration>,
    },
    /// Mahimahi delivery opportunities: at each of the ascending milliseconds
    /// (repeats allowed) `packet_bytes` may leave. Repeats after the last
    /// one's millisecond.
    Opportunities {
        /// Milliseconds since the start of the run.
        ms: Vec<u64>,
        /// IP bytes per opportunity: 1500 in Mahimahi, whose own count of 1504
        /// includes the 4 bytes of its TUN device's header.
        packet_bytes: u32,
    },
}
