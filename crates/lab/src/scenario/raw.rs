//! A scenario as it stands in the file. `docs/scenario.md` explains every key.

use std::sync::LazyLock;
use std::time::Duration;

use braid_core::{AccessKind, Rate};
use braid_radio::model::InFlight;
use braid_radio::model::wifi::WifiSpec;
use indexmap::IndexMap;
use serde::Deserialize;
use serde_spanned::Spanned;

use super::text::{Either, Fraction, FromText, Number, Size, Text};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawScenario {
    pub(super) name: Spanned<String>,
    pub(super) description: Option<String>,
    pub(super) duration: Spanned<Text<Duration>>,
    pub(super) warmup: Option<Spanned<Text<Duration>>>,
    pub(super) seed: Option<u64>,
    pub(super) policy: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) network: RawNetwork,
    #[serde(default)]
    pub(super) medium: IndexMap<String, Spanned<WifiSpec>>,
    #[serde(default)]
    pub(super) backhaul: IndexMap<String, Spanned<RawChange>>,
    pub(super) access: Option<Spanned<IndexMap<String, RawAccess>>>,
    pub(super) plan: Option<RawPlan>,
    #[serde(default)]
    pub(super) device: IndexMap<String, Spanned<RawDevice>>,
    #[serde(default)]
    pub(super) event: Vec<RawEvent>,
    #[serde(default)]
    pub(super) variant: Vec<RawVariant>,
    pub(super) case: Spanned<Vec<RawCase>>,
    #[serde(default)]
    pub(super) paper: Vec<RawPaper>,
}

impl RawScenario {
    /// The accesses that have a table of their own.
    pub(super) fn accesses(&self) -> &IndexMap<String, RawAccess> {
        static NONE: LazyLock<IndexMap<String, RawAccess>> = LazyLock::new(IndexMap::new);
        self.access.as_ref().map_or(&NONE, Spanned::get_ref)
    }
}

/// Accesses that follow a path plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPlan {
    pub(super) file: Option<Spanned<String>>,
    pub(super) ideal: Option<Spanned<String>>,
    pub(super) start: Option<Spanned<Text<Duration>>>,
    pub(super) kind: Option<AccessKind>,
    pub(super) power: Option<Spanned<String>>,
    #[serde(default = "nothing_said")]
    pub(super) down: Spanned<RawLink>,
    #[serde(default = "nothing_said")]
    pub(super) up: Spanned<RawLink>,
}

fn nothing_said() -> Spanned<RawLink> {
    Spanned::new(0..0, RawLink::default())
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawNetwork {
    pub(super) family: Option<Family>,
    pub(super) prefix: Option<Spanned<String>>,
    pub(super) mtu: Option<Spanned<u32>>,
    pub(super) tcp_rmem: Option<Spanned<[u32; 3]>>,
    pub(super) tcp_wmem: Option<Spanned<[u32; 3]>>,
    pub(super) short_queues: Option<bool>,
    #[serde(default)]
    pub(super) module_parameters: IndexMap<Spanned<String>, i64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Family {
    #[default]
    Ipv4,
    Ipv6,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAccess {
    pub(super) kind: AccessKind,
    pub(super) medium: Option<Spanned<String>>,
    pub(super) phy_rate: Option<Spanned<Text<Rate>>>,
    pub(super) backhaul: Option<Spanned<String>>,
    pub(super) backup: Option<bool>,
    pub(super) estimator: Option<Spanned<String>>,
    pub(super) power: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) down: RawLink,
    #[serde(default)]
    pub(super) up: RawLink,
}

/// One direction of an access. Every key is optional, so that a variant or an
/// event can name only what it changes.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLink {
    pub(super) rate: Option<Spanned<RawRate>>,
    pub(super) period: Option<Text<Duration>>,
    pub(super) trace: Option<Spanned<String>>,
    pub(super) column: Option<Spanned<String>>,
    pub(super) format: Option<Spanned<String>>,
    pub(super) delay: Option<Spanned<RawDelay>>,
    pub(super) delay_trace: Option<Spanned<String>>,
    pub(super) delay_column: Option<Spanned<String>>,
    pub(super) jitter: Option<Text<Duration>>,
    pub(super) reorder: Option<bool>,
    pub(super) loss: Option<Spanned<Either<Fraction, RawBurstLoss>>>,
    pub(super) loss_trace: Option<Spanned<String>>,
    pub(super) loss_column: Option<Spanned<String>>,
    pub(super) queue: Option<Either<Text<QueueText>, RawCodel>>,
    pub(super) overhead_bytes: Option<u32>,
    pub(super) outage: Option<InFlight>,
    pub(super) mtu: Option<Spanned<u32>>,
}

pub(super) type RawRate = Either<Text<Rate>, Vec<(Text<Duration>, Text<Rate>)>>;
pub(super) type RawDelay = Either<Text<Duration>, Vec<(Text<Duration>, Text<Duration>)>>;

impl RawLink {
    /// This table with the keys that `over` names taken from `over`.
    pub(super) fn merged(&self, over: &RawLink) -> RawLink {
        let mut l = self.clone();
        macro_rules! take {
            ($($key:ident),*) => { $( if over.$key.is_some() { l.$key = over.$key.clone(); } )* };
        }
        take!(
            period,
            column,
            format,
            delay_column,
            jitter,
            reorder,
            loss_column,
            queue,
            overhead_bytes,
            outage,
            mtu
        );
        // A value and a trace are two ways to say one thing: the later one wins.
        if over.rate.is_some() || over.trace.is_some() {
            l.rate = over.rate.clone();
            l.trace = over.trace.clone();
        }
        if over.delay.is_some() || over.delay_trace.is_some() {
            l.delay = over.delay.clone();
            l.delay_trace = over.delay_trace.clone();
        }
        if over.loss.is_some() || over.loss_trace.is_some() {
            l.loss = over.loss.clone();
            l.loss_trace = over.loss_trace.clone();
        }
        l
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBurstLoss {
    pub(super) good_to_bad: Fraction,
    pub(super) bad_to_good: Fraction,
    pub(super) loss_good: Option<Fraction>,
    pub(super) loss_bad: Option<Fraction>,
}

/// A drop-tail limit: time, bytes or packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum QueueText {
    Time(Duration),
    Bytes(u64),
    Packets(u32),
}

impl FromText for QueueText {
    const EXPECTED: &'static str =
        "a queue limit in quotes, such as \"100 ms\", \"500 kB\" or \"1000 packets\"";
    fn from_text(s: &str) -> Result<Self, String> {
        if let Some(n) = s
            .trim()
            .strip_suffix("packets")
            .or(s.trim().strip_suffix("packet"))
        {
            return match n.trim().parse() {
                Ok(n) if n > 0 => Ok(Self::Packets(n)),
                _ => Err(format!("\"{s}\" is not valid: expected {}", Self::EXPECTED)),
            };
        }
        if let Ok(d) = Duration::from_text(s) {
            return Ok(Self::Time(d));
        }
        Size::from_text(s)
            .map(|b| Self::Bytes(b.0))
            .map_err(|_| format!("\"{s}\" is not valid: expected {}", Self::EXPECTED))
    }
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCodel {
    pub(super) target: Option<Text<Duration>>,
    pub(super) interval: Option<Text<Duration>>,
    pub(super) limit_packets: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDevice {
    pub(super) count: Option<u32>,
    pub(super) access: IndexMap<String, RawAccess>,
    pub(super) traffic: Option<Spanned<RawTraffic>>,
    pub(super) engine: Option<Spanned<String>>,
    pub(super) cc: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawEvent {
    pub(super) at: Spanned<Text<Duration>>,
    pub(super) access: Option<Spanned<String>>,
    pub(super) set: Option<Spanned<Either<String, RawLink>>>,
    pub(super) weights: Option<Spanned<RawWeights>>,
    pub(super) cases: Option<Vec<Spanned<String>>>,
    pub(super) direction: Option<Way>,
    pub(super) every: Option<Spanned<Text<Duration>>>,
    pub(super) times: Option<Spanned<u32>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Way {
    #[default]
    Both,
    Down,
    Up,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawVariant {
    pub(super) name: Spanned<String>,
    pub(super) duration: Option<Spanned<Text<Duration>>>,
    pub(super) warmup: Option<Spanned<Text<Duration>>>,
    pub(super) plan: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) access: IndexMap<String, Spanned<RawChange>>,
    #[serde(default)]
    pub(super) device: IndexMap<String, Spanned<RawCount>>,
}

/// Both directions of a variant's change, or of a backhaul.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawChange {
    #[serde(default)]
    pub(super) down: RawLink,
    #[serde(default)]
    pub(super) up: RawLink,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCount {
    pub(super) count: u32,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawCase {
    pub(crate) name: Spanned<String>,
    pub(crate) engine: Spanned<String>,
    pub(crate) variants: Option<Vec<Spanned<String>>>,
    pub(crate) access: Option<Spanned<String>>,
    pub(crate) accesses: Option<Vec<Spanned<String>>>,
    pub(crate) scheduler: Option<Spanned<String>>,
    pub(crate) wrr_mode: Option<Spanned<String>>,
    pub(crate) num_segments: Option<Spanned<u8>>,
    pub(crate) opportunistic: Option<Spanned<bool>>,
    pub(crate) penalise: Option<Spanned<bool>>,
    pub(crate) path_manager: Option<Spanned<String>>,
    pub(crate) lane: Option<Spanned<String>>,
    pub(crate) reinject: Option<Spanned<bool>>,
    pub(crate) resume: Option<Spanned<bool>>,
    pub(crate) acks: Option<Spanned<String>>,
    pub(crate) send_window: Option<Spanned<Text<Size>>>,
    pub(crate) expect: Option<Spanned<f64>>,
    pub(crate) expect_error_db: Option<Spanned<f64>>,
    pub(crate) expect_every: Option<Spanned<Text<Duration>>>,
    pub(crate) cc: Option<Spanned<String>>,
    pub(crate) weights: Option<Spanned<Either<String, RawWeights>>>,
    pub(crate) policy: Option<Spanned<String>>,
    pub(crate) estimator: Option<Spanned<String>>,
    pub(crate) probes: Option<Spanned<RawProbes>>,
    pub(crate) traffic: Spanned<RawTraffic>,
    pub(crate) beside: Option<Spanned<RawTraffic>>,
    pub(crate) tcp_rmem: Option<Spanned<[u32; 3]>>,
    pub(crate) tcp_wmem: Option<Spanned<[u32; 3]>>,
    pub(crate) short_queues: Option<bool>,
    pub(crate) duration: Option<Spanned<Text<Duration>>>,
    pub(crate) warmup: Option<Spanned<Text<Duration>>>,
}

/// Transfers by which the estimator `probe` knows an access.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawProbes {
    pub(super) flows: Option<u32>,
    pub(super) duration: Option<Text<Duration>>,
    pub(super) interval: Option<Text<Duration>>,
}

pub(crate) type RawWeights = IndexMap<String, Number>;

pub(crate) type RawTraffic = Either<String, RawTrafficTable>;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawTrafficTable {
    pub(super) kind: Option<Spanned<String>>,
    pub(super) from: Option<Spanned<String>>,
    pub(super) direction: Option<Way>,
    pub(super) bytes: Option<Spanned<Text<Size>>>,
    pub(super) rate: Option<Spanned<Text<Rate>>>,
    pub(super) message_bytes: Option<Spanned<u32>>,
    pub(super) request_bytes: Option<Spanned<u32>>,
    pub(super) response_bytes: Option<Spanned<u32>>,
    pub(super) transport: Option<Spanned<String>>,
    pub(super) bitrates: Option<Spanned<Vec<Text<Rate>>>>,
    pub(super) segment: Option<Spanned<Text<Duration>>>,
    pub(super) buffer: Option<Spanned<Text<Duration>>>,
    pub(super) codec: Option<Spanned<String>>,
    pub(super) jitter_buffer: Option<Spanned<Text<Duration>>>,
    pub(super) run: Option<Spanned<String>>,
    pub(super) server: Option<Spanned<String>>,
    pub(super) time_limit: Option<Spanned<Text<Duration>>>,
    pub(super) document: Option<Spanned<Text<Size>>>,
    pub(super) objects: Option<Spanned<u32>>,
    pub(super) object: Option<Spanned<Text<Size>>>,
    pub(super) pause: Option<Text<Duration>>,
}

impl RawTrafficTable {
    /// Names of the keys that are given, beside `kind` and `from`, which every kind has.
    pub(super) fn given(&self) -> impl Iterator<Item = &'static str> {
        let given = [
            ("direction", self.direction.is_some()),
            ("bytes", self.bytes.is_some()),
            ("rate", self.rate.is_some()),
            ("message_bytes", self.message_bytes.is_some()),
            ("request_bytes", self.request_bytes.is_some()),
            ("response_bytes", self.response_bytes.is_some()),
            ("transport", self.transport.is_some()),
            ("bitrates", self.bitrates.is_some()),
            ("segment", self.segment.is_some()),
            ("buffer", self.buffer.is_some()),
            ("codec", self.codec.is_some()),
            ("jitter_buffer", self.jitter_buffer.is_some()),
            ("run", self.run.is_some()),
            ("server", self.server.is_some()),
            ("time_limit", self.time_limit.is_some()),
            ("document", self.document.is_some()),
            ("objects", self.objects.is_some()),
            ("object", self.object.is_some()),
            ("pause", self.pause.is_some()),
        ];
        given.into_iter().filter(|(_, set)| *set).map(|(k, _)| k)
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPaper {
    pub(super) case: Spanned<String>,
    pub(super) field: Spanned<String>,
    pub(super) value: f64,
    pub(super) source: String,
}
