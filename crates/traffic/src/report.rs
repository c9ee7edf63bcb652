//! Events that one end of the traffic writes for its parent: JSON lines on standard output.

use std::net::SocketAddr;

use braid_core::Time;
use braid_core::stats::Percentiles;
use serde::{Deserialize, Serialize};

use super::pattern::Corruption;
use super::spec::{Role, Transport};

/// One line on standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TrafficEvent {
    /// The server listens.
    Ready {
        /// Where; with the port that the kernel chose if it was given as 0.
        address: SocketAddr,
    },
    /// The two ends have met and agree on what to do.
    Connected {
        /// This end.
        local: SocketAddr,
        /// The other end.
        peer: SocketAddr,
        /// When the payload starts, ns of `CLOCK_MONOTONIC`.
        start_ns: Time,
    },
    /// Every 100 ms: what has passed so far.
    Sample {
        /// When, ns of `CLOCK_MONOTONIC`.
        t_ns: Time,
        /// Payload received since the start, bytes.
        bytes_received: u64,
        /// Payload handed to the kernel since the start, bytes.
        bytes_sent: u64,
    },
    /// The last line.
    Report(Box<TrafficReport>),
}

/// Measurements of one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrafficReport {
    /// Role of the end.
    pub side: Role,
    /// `bulk`, `request-response`, `cbr`, `video`, `voip` or `web`.
    pub kind: String,
    /// Transport protocol.
    pub transport: Transport,
    /// Start of the payload, ns of `CLOCK_MONOTONIC`; `None`: the ends never met.
    pub start_ns: Option<Time>,
    /// Start of the measured window, ns of `CLOCK_MONOTONIC`.
    pub window_start_ns: Option<Time>,
    /// End of the measured window, ns of `CLOCK_MONOTONIC`.
    pub window_end_ns: Option<Time>,
    /// Length of the measured window, s.
    pub seconds: f64,
    /// Payload received, bytes.
    pub bytes_received: u64,
    /// Payload received in the window, bytes.
    pub window_bytes_received: u64,
    /// Payload handed to the kernel, bytes.
    pub bytes_sent: u64,
    /// Payload handed to the kernel in the window, bytes.
    pub window_bytes_sent: u64,
    /// `window_bytes_received` over `seconds`, Mbit/s.
    pub goodput_mbps: f64,
    /// No received byte differs from the one sent.
    pub intact: bool,
    /// The first byte that does.
    pub corruption: Option<Corruption>,
    /// Longest time in the window without receiving data while data was due,
    /// ms; `None` at an end to which none is due.
    pub gap_ms: Option<f64>,
    /// All such times above 50 ms, in order; the first 800.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<Gap>,
    /// Transfers of a fixed size that came to their end: time from the start
    /// until the last byte (sender: until the receiver said that it has it), s.
    pub completion_s: Option<f64>,
    /// One-way latency, ms: RTT/2 for request-response, receiver minus sender
    /// time for paced messages.
    pub latency_ms: Option<Percentiles>,
    /// Its cumulative distribution: (ms, fraction), at most 200 points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_cdf: Vec<(f64, f64)>,
    /// RTTs or latencies recorded in the window.
    pub latency_samples: u64,
    /// Paced messages.
    pub messages: Option<MessageCounts>,
    /// The video session.
    pub video: Option<VideoReport>,
    /// The pages, at the client.
    #[serde(default)]
    pub web: Option<WebReport>,
    /// The call, at an end that listens.
    #[serde(default)]
    pub voice: Option<VoiceReport>,
    /// CPU time of this process (user and system) from start to end, s.
    pub cpu_seconds: f64,
    /// Facts that the kernel states of the connection.
    pub facts: Option<SocketFacts>,
    /// Errors, in words; empty when all is well.
    pub errors: Vec<String>,
}

impl TrafficReport {
    /// A report of nothing yet.
    pub(crate) fn empty(side: Role, kind: &str, transport: Transport) -> Self {
        Self {
            side,
            kind: kind.to_owned(),
            transport,
            start_ns: None,
            window_start_ns: None,
            window_end_ns: None,
            seconds: 0.0,
            bytes_received: 0,
            window_bytes_received: 0,
            bytes_sent: 0,
            window_bytes_sent: 0,
            goodput_mbps: 0.0,
            intact: true,
            corruption: None,
            gap_ms: None,
            gaps: Vec::new(),
            completion_s: None,
            latency_ms: None,
            latency_cdf: Vec::new(),
            latency_samples: 0,
            messages: None,
            video: None,
            web: None,
            voice: None,
            cpu_seconds: 0.0,
            facts: None,
            errors: Vec::new(),
        }
    }
}

/// A time in which nothing was received although data was due.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Its start, ns of `CLOCK_MONOTONIC`.
    pub start_ns: Time,
    /// Its length, ms.
    pub length_ms: f64,
}

/// Counts of paced messages generated in the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MessageCounts {
    /// Messages due by the schedule.
    pub due: u64,
    /// Sender: messages handed to the kernel.
    pub sent: u64,
    /// Receiver: messages that came, each counted once.
    pub received: u64,
    /// Receiver: `due - received`.
    pub lost: u64,
    /// Receiver: messages that came more than once.
    pub duplicated: u64,
    /// Receiver: messages that came after one with a higher number.
    pub reordered: u64,
    /// Sender: the latest that a message was generated after its due time, ms:
    /// what the host did to the pacing.
    pub max_late_ms: f64,
}

/// A video session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VideoReport {
    /// From the start until playing, s; `None`: it never played.
    pub startup_s: Option<f64>,
    /// Stops of playing for want of data, after the first start.
    pub stalls: u32,
    /// Total time stopped, s.
    pub stalled_s: f64,
    /// Mean bit rate of the segments, Mbit/s.
    pub mean_bitrate_mbps: f64,
    /// Changes of the bit rate from one segment to the next.
    pub switches: u32,
    /// The segments that arrived whole; the first 300.
    pub segments: Vec<Segment>,
}

/// Pages that were asked for in the window and came whole before its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WebReport {
    /// Number of them.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From a page's request to the first byte of its document, ms.
    pub first_byte_ms: Option<Percentiles>,
    /// From a page's request to its last byte, ms.
    pub page_ms: Option<Percentiles>,
}

/// A call, as one end heard it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoiceReport {
    /// MOS of all that was due in the window (ITU-T G.107), 1 to 4.5.
    pub mos: f64,
    /// MOS of the worst 8 s; a last piece that is shorter belongs to the one before it.
    pub worst_mos: f64,
    /// Rating R of all that was due in the window.
    pub r_factor: f64,
    /// Delay from mouth to ear: that of the fastest packet, the jitter buffer, and the speech of a
    /// packet, ms.
    pub mouth_to_ear_ms: f64,
    /// Packets due in the window that were not played, lost ones and late ones, the sum of those
    /// of the stretches that are scored.
    pub unplayed: u64,
    /// Packets that came after their turn to be played.
    pub late: u64,
}

/// One segment of a video session.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// When it was asked for, s since the start.
    pub requested_s: f64,
    /// Its bit rate, Mbit/s.
    pub bitrate_mbps: f64,
    /// Its size.
    pub bytes: u64,
    /// From request to last byte, s.
    pub download_s: f64,
    /// Playing time in the buffer when it had arrived, s.
    pub buffer_s: f64,
}

/// Facts that the kernel states of a connection at its end (at the last 100 ms
/// tick, where the connection was closed by then).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SocketFacts {
    /// Congestion control in use.
    pub cc: Option<String>,
    /// MPTCP only: whether the connection fell back to TCP.
    pub fallback: Option<bool>,
    /// Payload bytes that TCP sent again, over all subflows that were seen.
    pub retransmitted_bytes: Option<u64>,
    /// MPTCP only: payload bytes sent again on another subflow.
    pub reinjected_bytes: Option<u64>,
    /// MPTCP only: subflows seen.
    pub subflows: Option<u32>,
}
