//! Messages on the emulator's control socket (HTTP and JSON, see `docs/emulator.md`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::{LinkStats, MediumStats};

/// `GET /v1/stats`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// As configured.
    pub run_id: String,
    /// `CLOCK_MONOTONIC` at which the counters of links and media start.
    pub epoch_ns: u64,
    /// Scenario time of this snapshot, nanoseconds since the epoch.
    pub now_ns: u64,
    /// By name, such as `wifi.down`.
    pub links: BTreeMap<String, LinkReport>,
    /// By name.
    pub media: BTreeMap<String, MediumStats>,
    /// How punctual the loop is, since the start of the process.
    pub lateness: LatenessStats,
    /// The loop's own cost and standing.
    pub process: ProcessStats,
}

/// One link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkReport {
    /// The model's counters.
    pub model: LinkStats,
    /// Counters of input and output around the model.
    pub io: IoStats,
}

/// Counters of a link's packets outside of the model, in wire packets unless named
/// otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IoStats {
    /// Reads that gave a packet or super-packet.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Delivered to the receiving host.
    pub written_packets: u64,
    /// Reads that were not IP, dropped.
    pub not_ip: u64,
    /// Dropped because the memory for packets in flight was used up.
    pub no_buffer: u64,
    /// Dropped because the receiving interface is down or gone.
    pub drop_down: u64,
    /// Dropped because the receiving host had no room.
    pub drop_full: u64,
    /// Refused by the receiving host as malformed.
    pub drop_refused: u64,
}

/// How punctual the loop is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatenessStats {
    /// Deliveries measured.
    pub deliveries: u64,
    /// From the time a delivery was due to the loop's turning to it, early ones as zero.
    pub mean_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// Largest.
    pub max_us: f64,
    /// The loop's own latency that is being made up for at present.
    pub compensated_us: f64,
    /// Wake-ups more than 1 ms late: pauses of the host.
    pub late_wakes: u64,
    /// Latest wake-up.
    pub max_wake_us: f64,
    /// The pauses, the first thousand.
    pub pauses: Vec<Pause>,
}

/// A time at which the host did not run the loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// When the loop should have woken, seconds since the epoch.
    pub at_s: f64,
    /// How much later it did.
    pub late_ms: f64,
}

/// The loop's own cost and standing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessStats {
    /// Processor time of the loop's thread, with the kernel's work on its behalf.
    pub cpu_s: f64,
    /// Turns of the loop.
    pub loops: u64,
    /// Resident memory of the process.
    pub rss_bytes: u64,
    /// Memory of packets in flight.
    pub buffered_bytes: u64,
    /// Whether the loop has real-time priority.
    pub fifo: bool,
    /// Whether its memory is locked.
    pub locked: bool,
}

/// `PUT /v1/epoch`: the models start afresh at that time, with new counters and
/// what waits in their queues; what is under way still arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// `CLOCK_MONOTONIC`, nanoseconds; `None`: now.
    #[serde(default)]
    pub epoch_ns: Option<u64>,
}

/// Answer to `PUT /v1/epoch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EpochSet {
    /// `CLOCK_MONOTONIC`, nanoseconds.
    pub epoch_ns: u64,
}

/// `PUT /v1/paths/{name}/carrier`: what the hosts see of a path's cable. The
/// links are not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carrier {
    /// End of the path that sees the carrier.
    pub side: Side,
    /// Whether there is a carrier.
    pub on: bool,
}

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The device.
    Device,
    /// The proxy.
    Proxy,
    /// Both.
    Both,
}

/// Query of `PUT /v1/links/{name}`, whose body is a [`crate::model::LinkChange`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// Scenario time, nanoseconds since the epoch; left out or past: at once.
    #[serde(default)]
    pub at_ns: Option<u64>,
}

/// `PUT /v1/links/{name}/mark`: the time at which so much more was handed to the link is noted
/// in its counters ([`LinkStats::marked_ns`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mark {
    /// IP-layer bytes, counted from now.
    pub bytes: u64,
}

/// Query of `GET /v1/capacity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CapacityQuery {
    /// Such as `wifi.down`.
    pub link: String,
    /// Scenario time, nanoseconds since the epoch.
    pub from_ns: u64,
    /// Scenario time, nanoseconds since the epoch.
    pub to_ns: u64,
}

/// Answer to `GET /v1/capacity`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// IP-layer bits the link could carry; `None`: no limit.
    pub bits: Option<f64>,
}

/// Body of every answer that is not a success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// Attempted action, and why it failed.
    pub error: String,
}
