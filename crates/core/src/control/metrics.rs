//! Metrics of one path, the same for every engine.

use serde::{Deserialize, Serialize};

use super::Direction;
use crate::{Rate, Time};

/// State of one path at one moment, as its sender counts it. A path is a subflow of Multipath
/// TCP or a path of Multipath QUIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathMetrics {
    /// Name of the access that carries the path.
    pub access: String,
    /// Number of the path, unique at this end for the life of the process.
    pub path: u64,
    /// Direction in which the counted data goes.
    pub direction: Direction,
    /// Moment at which the path began.
    #[serde(rename = "began_ns")]
    pub began: Time,
    /// Payload that the peer has acknowledged since the path began, bytes; never falls.
    pub delivered_bytes: u64,
    /// Payload declared lost since the path began, bytes; never falls.
    pub lost_bytes: u64,
    /// Payload sent and neither acknowledged nor lost, bytes.
    pub in_flight_bytes: u64,
    /// Payload that waits at the sender for this path, bytes.
    pub queued_bytes: u64,
    /// Obstacle that kept the path from delivering more since the sample before.
    pub limited_by: LimitedBy,
    /// Delivery rate as the engine itself computes it; absent where it does not. For readers:
    /// estimators count bytes, because rates of paths over different times do not add up.
    #[serde(
        default,
        rename = "delivery_bps",
        skip_serializing_if = "Option::is_none"
    )]
    pub delivery_rate: Option<Rate>,
    /// Smoothed round-trip time, microseconds; absent before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub srtt_us: Option<u64>,
    /// Least round-trip time, microseconds; absent before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rtt_us: Option<u64>,
}

/// Obstacle that kept a path, or the paths of an access, from delivering more.
///
/// The order is that of evidence: of several paths over one access the first obstacle counts,
/// because one path that fills the access shows what it can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// Nothing but the path: its congestion window was full after slow start.
    Nothing,
    /// The scheduler: data waited, the window had room, other paths were given the data.
    Scheduler,
    /// The peer's receive window.
    PeerWindow,
    /// Slow start: the window was full but says nothing about the path yet.
    SlowStart,
    /// The application had no more data.
    Application,
}
