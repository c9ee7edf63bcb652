//! Properties of a link as plain values: what a scenario describes and what
//! the emulator is told.

use std::time::Duration;

pub use braid_traces::RateSpec;
use serde::{Deserialize, Serialize};

/// One direction of one access.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkSpec {
    /// Capacity, at the IP layer.
    pub rate: RateSpec,
    /// Propagation delay, one way.
    pub delay: DelaySpec,
    /// Random addition to the delay.
    pub jitter: Option<JitterSpec>,
    /// Random loss, per wire packet.
    pub loss: LossSpec,
    /// The queue in front of the link.
    pub queue: QueueSpec,
    /// Link-layer bytes added to every packet when its time on the link is
    /// computed (not counted in reported bytes). 0 makes `rate` an IP rate.
    pub overhead_bytes: u32,
    /// Effect of an outage on packets on the link and in its queue.
    pub outage: InFlight,
    /// Longest packet that arrives, bytes at the IP layer; none if all do. Longer ones take
    /// their time on the link and are then lost without an ICMP message: a path-MTU black hole
    /// (RFC 2923, section 2.1).
    #[serde(default)]
    pub mtu: Option<u32>,
}

impl Default for LinkSpec {
    /// Unlimited, without delay or loss, with a queue of 1000 packets.
    fn default() -> Self {
        Self {
            rate: RateSpec::Unlimited,
            delay: DelaySpec::Constant(Duration::ZERO),
            jitter: None,
            loss: LossSpec::None,
            queue: QueueSpec::Packets(1000),
            overhead_bytes: 0,
            outage: InFlight::Lost,
            mtu: None,
        }
    }
}

impl LinkSpec {
    /// The longest propagation delay that it ever has, jitter apart.
    pub fn longest_delay(&self) -> Duration {
        match &self.delay {
            DelaySpec::Constant(d) => *d,
            DelaySpec::Steps { points, .. } => points.iter().map(|p| p.1).max().unwrap_or_default(),
        }
    }
}

/// Propagation delay over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelaySpec {
    /// One delay.
    Constant(Duration),
    /// Each delay holds from its time on; the last one stays, or the pattern
    /// repeats with `period`.
    Steps {
        /// Time since the start of the run, and the delay from then on.
        points: Vec<(Duration, Duration)>,
        /// Length of one repetition.
        period: Option<Duration>,
    },
}

/// Random addition to the propagation delay, per packet: normal with the given
/// standard deviation, cut off so that the total delay is never negative.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct JitterSpec {
    /// Standard deviation.
    pub deviation: Duration,
    /// Whether a packet may overtake another; otherwise it waits behind it.
    pub reorder: bool,
}

/// Random loss of wire packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossSpec {
    /// No loss.
    None,
    /// Each packet independently, with this probability (0 to 1).
    Bernoulli(f64),
    /// Gilbert-Elliott: a two-state Markov chain, stepped per packet.
    GilbertElliott {
        /// Probability per packet of going from good to bad.
        good_to_bad: f64,
        /// Probability per packet of going from bad to good.
        bad_to_good: f64,
        /// Loss probability in the good state.
        loss_good: f64,
        /// Loss probability in the bad state.
        loss_bad: f64,
    },
    /// Each packet independently, with a probability that changes: each holds from its
    /// time on; the last one stays, or the pattern repeats with `period`.
    Steps {
        /// Time since the start of the run, and the probability (0 to 1) from then on.
        points: Vec<(Duration, f64)>,
        /// Length of one repetition.
        period: Option<Duration>,
    },
}

/// The queue in front of a link. Limits never keep a lone packet out of an
/// empty queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueSpec {
    /// Drop-tail, limited in bytes.
    Bytes(u64),
    /// Drop-tail, limited in packets.
    Packets(u32),
    /// Drop-tail, limited to what the link carries in this time at its
    /// momentary rate.
    Time(Duration),
    /// CoDel (RFC 8289) with a drop-tail limit in packets.
    Codel {
        /// Acceptable standing delay (5 ms in RFC 8289).
        target: Duration,
        /// Sliding window (100 ms in RFC 8289).
        interval: Duration,
        /// Hard limit.
        limit_packets: u32,
    },
}

/// Effect of an outage on the packets that are on the link or queued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InFlight {
    /// Packets are lost, as are those that arrive during the outage.
    #[default]
    Lost,
    /// Packets on the link still arrive; the queue is held and served after the
    /// outage, and fills during it.
    Held,
}

/// A change of one link while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkChange {
    /// New capacity; bytes already in service finish at the old one.
    Rate(RateSpec),
    /// New delay for packets that leave from now on.
    Delay(DelaySpec),
    /// New jitter.
    Jitter(Option<JitterSpec>),
    /// New loss.
    Loss(LossSpec),
    /// New queue limits; packets over a smaller limit are dropped from the tail.
    Queue(QueueSpec),
    /// New path MTU, for packets that leave from now on.
    Mtu(Option<u32>),
    /// The link stops.
    Down,
    /// The link works again.
    Up,
}
