//! Results that a run leaves behind: the rows of `summary.json`, `timeline.csv` and
//! `events.csv`. Definitions of every field: `docs/report.md`.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use braid_core::energy::Energy;
use braid_core::stats::Percentiles;
use serde::{Deserialize, Serialize};

pub use crate::timeline::TimelineRow;

/// `summary.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Name of the scenario.
    pub scenario: String,
    /// `real` or `virtual`.
    pub clock: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// Release of the kernel that ran the engines (`uname -r`).
    pub kernel: String,
    /// Version of Braid.
    pub version: String,
    /// Start of the run, RFC 3339, UTC.
    pub started: String,
    /// Disturbance of the measurement by the host.
    pub host: Host,
    /// Names of the accesses, in the order of the scenario; empty: unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accesses: Vec<String>,
    /// One entry per case and repeat, in the order in which they ran.
    pub cases: Vec<CaseResult>,
    /// The paper's figures this scenario reproduces, to be shown beside ours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paper: Vec<PaperFigure>,
}

/// Disturbance by the host, which a real-clock run cannot exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Timer wake-ups of the emulator that came more than 1 ms late.
    pub late_wakes: u64,
    /// The latest of them, ms.
    pub max_late_ms: f64,
}

/// A number printed in a paper, for the case of this scenario that reproduces it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PaperFigure {
    /// Name of the case; where no case reproduces it, the paper's own name.
    pub case: String,
    /// Field of [`CaseResult`] that it is comparable with, e.g. `goodput_mbps`,
    /// `latency_ms.mean`, `share.wifi`; `energy_joules` is the sum of `energy`.
    pub field: String,
    /// The printed value, in the field's unit.
    pub value: f64,
    /// Where it is printed, e.g. `Navarro-Ortiz 2024, Figure 4`.
    pub source: String,
}

/// One case of a scenario, run once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CaseResult {
    /// Name of the case.
    pub name: String,
    /// `tcp`, `mptcp`, ...
    pub engine: String,
    /// Packet scheduler.
    pub scheduler: Option<String>,
    /// Lane that carries the data of Multipath QUIC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Congestion control.
    pub cc: Option<String>,
    /// Weights per access.
    pub weights: Option<BTreeMap<String, f64>>,
    /// Policy that decided the weights, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The access of a single-path case.
    pub access: Option<String>,
    /// Traffic kind: `bulk`, `request-response`, `cbr`, `video`, `command`, `voip`, `web`.
    pub traffic: String,
    /// `down`, `up` or `both`: the direction(s) of the measured data.
    pub direction: String,
    /// Number of the repetition, from 1.
    pub repeat: u32,
    /// Length of the measured time (after warm-up), s.
    pub seconds: f64,
    /// Payload received in the measured time, Mbit/s.
    pub goodput_mbps: f64,
    /// Ceiling of the goodput that the wire allows an engine with these headers, Mbit/s.
    pub ceiling_mbps: Option<f64>,
    /// Payload / IP packet with the headers of this engine, by which the ceiling is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload_fraction: Option<f64>,
    /// `goodput_mbps / ceiling_mbps`.
    pub efficiency: Option<f64>,
    /// Rate that the links of a path plan could carry together in the measured time, IP, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_mbps: Option<f64>,
    /// Rate that an ideal single path (always the best cell, no interruption) could have
    /// carried in the measured time, IP, Mbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ideal_mbps: Option<f64>,
    /// Goodput of the same traffic on the best single access, measured in this run, Mbit/s.
    pub best_single_mbps: Option<f64>,
    /// Accesses that `best_single_mbps` is the best of, where not every access was measured
    /// alone; empty: all were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured_alone: Vec<String>,
    /// IP bytes of the data direction that left each access's link, as a fraction of all.
    pub share: BTreeMap<String, f64>,
    /// IP packets of the data direction that left each access's link, as a fraction of all.
    pub packet_share: BTreeMap<String, f64>,
    /// Payload that each other device got in the measured time, Mbit/s, from the
    /// bytes on its links.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others_mbps: BTreeMap<String, f64>,
    /// Share of this device in what it and the others got together, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_of_all: Option<f64>,
    /// One-way latency, ms: RTT/2 for request-response, receiver minus sender
    /// time for paced traffic, `None` for bulk.
    pub latency_ms: Option<Percentiles>,
    /// Cumulative distribution of the latency: (ms, fraction), at most 200 points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_cdf: Vec<(f64, f64)>,
    /// Longest time in which the receiving application got nothing while data was due, ms.
    pub gap_ms: Option<f64>,
    /// Time from start until the last byte, for transfers of a fixed size, s.
    pub completion_s: Option<f64>,
    /// Bytes that TCP sent again on the same subflow; of MPQUIC, full packets that were taken
    /// for lost on any path.
    pub retransmitted_bytes: Option<u64>,
    /// Bytes that MPTCP sent again on another subflow.
    pub reinjected_bytes: Option<u64>,
    /// Whether every payload byte received was the one sent; `None` when the
    /// payload was not ours to verify (a user's command).
    pub intact: Option<bool>,
    /// Times that an end dropped data that lay beyond the window it had announced
    /// (`MPTcpExt.NoDSSInWindow`, both ends together).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_overruns: Option<u64>,
    /// Pieces that MPTCP sent again (`MPTcpExt.MPTCPRetrans`, both ends together).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reinjections: Option<u64>,
    /// CPU time of the traffic processes, s.
    pub cpu_seconds: f64,
    /// CPU time of the whole machine in the measured time, whoever used it, s;
    /// `None` on the virtual clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_cpu_seconds: Option<f64>,
    /// CPU time of the engine's process at either end in the measured time: of Multipath
    /// QUIC all its work, of the kernel's engines that of the path manager. `None` on the
    /// virtual clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine_cpu_seconds: Option<EngineCpu>,
    /// Late wake-ups of the emulator during this case.
    pub host: Host,
    /// Datagrams: what became of those due in the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Calls: how they sounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Web pages: how long they took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Pages>,
    /// Results of the traffic beside the measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BesideResult>,
    /// Video sessions: number of stalls.
    pub stalls: Option<u32>,
    /// Video sessions: total time stalled, s.
    pub stalled_s: Option<f64>,
    /// Per link outage of an access: what happened after link-up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recoveries: Vec<Recovery>,
    /// Per access whose radio has a power model: its energy over the measured time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub energy: BTreeMap<String, EnergyUse>,
    /// Per other device: the same, of all its radios that have one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others_energy: BTreeMap<String, EnergyUse>,
    /// Shared media: channel busy time and collisions over the measured time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub media: BTreeMap<String, MediumUse>,
    /// Files with the journals of its control loops, among those of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub journals: Vec<String>,
    /// Why this run of the case failed; its numbers are then not to be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Anything the reader must know: host pauses, fallback to TCP, ...
    pub notes: Vec<String>,
}

/// Datagrams that were due in the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Packets {
    /// Number of them; with both directions, of both together.
    pub due: u64,
    /// Datagrams that never came.
    pub lost: u64,
    /// Datagrams that came more than once.
    pub duplicated: u64,
    /// Datagrams that came after one sent later.
    pub reordered: u64,
}

/// Quality of a call by the E-model (ITU-T G.107), at the end that hears worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Voice {
    /// Mean opinion score of the measured time, 1 to 4.5.
    pub mos: f64,
    /// Mean opinion score of the worst 8 s.
    pub worst_mos: f64,
    /// Delay from mouth to ear, ms.
    pub mouth_to_ear_ms: f64,
    /// Packets that were not played, lost or late, at both ends together.
    pub unplayed: u64,
}

/// Web pages that were asked for in the measured time and came whole in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pages {
    /// Number of them.
    pub pages: u64,
    /// From a page's request to the first byte of its document, ms.
    pub first_byte_ms: Percentiles,
    /// From a page's request to its last byte, ms.
    pub page_ms: Percentiles,
}

/// Results of the traffic beside the measured one, over the measured time of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BesideResult {
    /// Traffic kind.
    pub traffic: String,
    /// `down`, `up` or `both`.
    pub direction: String,
    /// Payload received, Mbit/s; of the direction that got less.
    pub goodput_mbps: f64,
    /// One-way latency, ms, of the slower direction.
    pub latency_ms: Option<Percentiles>,
    /// Longest time in which the receiving application got nothing while data was due, ms.
    pub gap_ms: Option<f64>,
    /// Datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<Packets>,
    /// Calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<Voice>,
    /// Web pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub web: Option<Pages>,
}

/// Energy of a radio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyUse {
    /// Energy over the measured time by the state of the radio.
    #[serde(flatten)]
    pub spent: Energy,
    /// Energy from the end of the measured time until the radio sleeps, if nothing follows, joules.
    pub tail_after_joules: f64,
}

impl EnergyUse {
    /// Returns all of it, the tail afterwards included, joules.
    pub fn total_joules(&self) -> f64 {
        self.spent.total_joules() + self.tail_after_joules
    }
}

impl AddAssign for EnergyUse {
    fn add_assign(&mut self, other: Self) {
        self.spent += other.spent;
        self.tail_after_joules += other.tail_after_joules;
    }
}

/// CPU time at either end, s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EngineCpu {
    /// At the device.
    pub device: f64,
    /// At the proxy.
    pub proxy: f64,
}

impl EngineCpu {
    /// Both together.
    pub fn sum(self) -> f64 {
        self.device + self.proxy
    }
}

/// One outage of an access and its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// The access.
    pub access: String,
    /// When the link came up, s since the start of the case.
    pub up_s: f64,
    /// From link-up until data left on it again, ms; `None`: not before the end.
    pub reuse_ms: Option<f64>,
    /// The longest time in which the application got nothing between link-down
    /// and link-up, ms.
    pub gap_ms: Option<f64>,
    /// From link-down until the device's daemon had taken the access out and its subflows had
    /// ended, ms; `None`: it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_ms: Option<f64>,
}

/// Use of a shared medium.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediumUse {
    /// Fraction of time in which the channel was busy, 0 to 1.
    pub busy: f64,
    /// Fraction of transmission rounds that collided, 0 to 1.
    pub collisions: f64,
}

/// One row of `events.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Name of the case.
    pub case: String,
    /// Number of the repetition, from 1.
    pub repeat: u32,
    /// When it was applied, s since the start of the case.
    pub t_s: f64,
    /// The access, or empty.
    pub access: String,
    /// Event in words, e.g. `down`, `rate=100 Mbit/s`, `emulator: wake 3.2 ms late`.
    pub what: String,
}
