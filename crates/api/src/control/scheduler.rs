//! How an end shares its sending among the accesses.

use serde::{Deserialize, Serialize};

use braid_core::sched::WrrMode;

/// `PUT /v1/scheduler`: how this end shares its sending among the accesses. It
/// counts for connections that begin afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SchedulerChange {
    /// The packet scheduler, as the kernel calls it; what is absent stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How round robin treats full windows; counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "super::openapi::wrr_mode"))]
    pub wrr_mode: Option<WrrMode>,
    /// Segments of a turn of round robin, 1 to 255; counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub num_segments: Option<u8>,
    /// Whether a fast subflow of `minrtt` repeats what slower ones block the
    /// receive window with (opportunistic retransmission); counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opportunistic: Option<bool>,
    /// Whether the windows of those are halved (penalisation); counts at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub penalise: Option<bool>,
}

/// Scheduling that is in force at an end, in the words of its configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Scheduling {
    /// Packet scheduler that acts: the kernel's, one that eBPF brings, or Multipath QUIC's.
    pub name: String,
    /// How it treats full windows; absent where it is no round robin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, schemars(schema_with = "super::openapi::wrr_mode"))]
    pub wrr_mode: Option<WrrMode>,
    /// Whether it goes by the weights of the accesses.
    pub weights_act: bool,
    /// Congestion control of connections that begin; absent where weights take its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
}

/// Where acknowledgements of Multipath QUIC's datagram lane leave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Acks {
    /// On the path of the least round-trip time.
    #[default]
    Fastest,
    /// On each path in its turn, as when each path acknowledges for itself.
    InTurn,
}

impl Acks {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Fastest, Self::InTurn];

    /// The word that scenarios and configurations use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fastest => "fastest",
            Self::InTurn => "in-turn",
        }
    }
}

/// Carrier of the data of Multipath QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Lane {
    /// Streams of QUIC itself, as any peer of the same draft has them.
    Stream,
    /// Our own sequencing inside DATAGRAM frames (RFC 9221): every scheduler, and what is
    /// lost with an access is sent again at once.
    #[default]
    Datagram,
}

impl Lane {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Stream, Self::Datagram];

    /// The word that scenarios and configurations use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Datagram => "datagram",
        }
    }
}
