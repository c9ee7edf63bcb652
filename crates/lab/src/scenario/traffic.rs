//! The `traffic` key: what the applications of a case do.

use std::time::Duration;

use braid_core::Rate;
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::diagnostic::{Problem, nearest};
use super::raw::{RawTraffic, RawTrafficTable, Way};
use super::text::Either;

/// Direction of the data that is measured. Down is from the proxy to the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// Proxy to device.
    #[default]
    Down,
    /// Device to proxy.
    Up,
    /// Both at once.
    Both,
}

impl Direction {
    /// The word that a scenario and `summary.json` use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
            Self::Both => "both",
        }
    }
}

/// Traffic of an application. The fields are those of `docs/traffic.md`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Traffic {
    /// As much as passes, for a time or of a size.
    Bulk {
        /// Size of the transfer; without it the case's duration ends it.
        bytes: Option<u64>,
        /// Direction of the data.
        direction: Direction,
    },
    /// One small message and its answer at a time.
    RequestResponse {
        /// Bytes of a request.
        request_bytes: u32,
        /// Bytes of a response.
        response_bytes: u32,
    },
    /// Constant bit rate.
    Cbr {
        /// Payload rate.
        rate: Rate,
        /// Payload of one message.
        message_bytes: u32,
        /// UDP datagrams instead of the case's engine.
        udp: bool,
        /// Direction of the data.
        direction: Direction,
    },
    /// A video session paced by the player's buffer, downlink.
    Video {
        /// Bit rates that the player can choose from, ascending.
        bitrates: Vec<Rate>,
        /// Length of a segment.
        segment: Duration,
        /// Buffer that the player fills.
        buffer: Duration,
    },
    /// A command of the user's in the device's namespace.
    Command {
        /// The command line; `{proxy}` and `{device}` stand for addresses.
        run: String,
        /// Command line in the proxy's namespace, started before.
        server: Option<String>,
        /// When it is stopped; the case's duration by default.
        time_limit: Option<Duration>,
    },
}

impl Traffic {
    /// The kinds, as written in a scenario.
    pub const KINDS: [&'static str; 5] = ["bulk", "request-response", "cbr", "video", "command"];

    /// The kind, as written in a scenario.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::RequestResponse { .. } => "request-response",
            Self::Cbr { .. } => "cbr",
            Self::Video { .. } => "video",
            Self::Command { .. } => "command",
        }
    }

    /// Whether it ends by itself, so that the case's duration is only its limit.
    pub const fn ends_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Bulk { bytes: Some(_), .. } | Self::Command { .. }
        )
    }

    /// Direction of the measured data.
    pub const fn direction(&self) -> Direction {
        match self {
            Self::Bulk { direction, .. } | Self::Cbr { direction, .. } => *direction,
            Self::RequestResponse { .. } | Self::Video { .. } | Self::Command { .. } => {
                Direction::Down
            }
        }
    }
}

pub(super) fn traffic(raw: &Spanned<RawTraffic>) -> Result<Traffic, Problem> {
    let empty = RawTrafficTable::default();
    let (table, kind, span) = match raw.get_ref() {
        Either::Short(name) => (&empty, name.as_str(), raw.span()),
        Either::Long(t) => match &t.kind {
            Some(k) => (t, k.get_ref().as_str(), k.span()),
            None => {
                return Err(Problem::at(
                    raw.span(),
                    "traffic: the key `kind` is missing",
                ));
            }
        },
    };
    let allow =
        |allowed: &[&str]| only(table, allowed, kind).map_err(|m| Problem::at(raw.span(), m));
    let direction = match table.direction {
        None | Some(Way::Down) => Direction::Down,
        Some(Way::Up) => Direction::Up,
        Some(Way::Both) => Direction::Both,
    };
    match kind {
        "bulk" => {
            allow(&["bytes", "direction"])?;
            let bytes = table.bytes.as_ref().map(|b| (b.span(), b.get_ref().0.0));
            match bytes {
                Some((span, 0)) => Err(Problem::at(
                    span,
                    "a transfer of no bytes: expected at least 1 B",
                )),
                _ => Ok(Traffic::Bulk {
                    bytes: bytes.map(|b| b.1),
                    direction,
                }),
            }
        }
        "request-response" => {
            allow(&["request_bytes", "response_bytes"])?;
            Ok(Traffic::RequestResponse {
                request_bytes: message(table.request_bytes.as_ref(), 1)?,
                response_bytes: message(table.response_bytes.as_ref(), 1)?,
            })
        }
        "cbr" => {
            allow(&["rate", "message_bytes", "transport", "direction"])?;
            let Some(rate) = &table.rate else {
                return Err(Problem::at(
                    raw.span(),
                    "traffic \"cbr\" needs a `rate`, such as \"4 Mbit/s\"",
                ));
            };
            if rate.get_ref().0 == Rate::ZERO {
                return Err(Problem::at(rate.span(), "a rate of zero sends nothing"));
            }
            let udp = match &table.transport {
                None => false,
                Some(t) => match t.get_ref().as_str() {
                    "udp" => true,
                    "stream" => false,
                    other => {
                        return Err(Problem::at(
                            t.span(),
                            format!(
                                "unknown transport \"{other}\": expected \"udp\", or \"stream\" for the case's engine"
                            ),
                        ));
                    }
                },
            };
            let message_bytes = message(table.message_bytes.as_ref(), 1200)?;
            if message_bytes < 32 || (udp && message_bytes > 1400) {
                return Err(Problem::at(
                    raw.span(),
                    "message_bytes: expected 32 or more, and 1400 at most for udp",
                ));
            }
            Ok(Traffic::Cbr {
                rate: rate.get_ref().0,
                message_bytes,
                udp,
                direction,
            })
        }
        "video" => {
            allow(&["bitrates", "segment", "buffer"])?;
            let Some(list) = &table.bitrates else {
                return Err(Problem::at(
                    raw.span(),
                    "traffic \"video\" needs `bitrates`, such as [\"4 Mbit/s\"]",
                ));
            };
            let mut bitrates: Vec<Rate> = list.get_ref().iter().map(|r| r.0).collect();
            bitrates.sort_unstable();
            if bitrates.first().is_none_or(|r| *r == Rate::ZERO) {
                return Err(Problem::at(
                    list.span(),
                    "expected one bit rate or more, none of them zero",
                ));
            }
            let time = |t: &Option<Spanned<super::text::Text<Duration>>>, default| {
                t.as_ref()
                    .map_or(Duration::from_secs(default), |t| t.get_ref().0)
            };
            let (segment, buffer) = (time(&table.segment, 2), time(&table.buffer, 12));
            if segment < Duration::from_millis(100) || buffer < segment {
                return Err(Problem::at(
                    raw.span(),
                    "expected a segment of at least 100 ms and a buffer of at least one segment",
                ));
            }
            Ok(Traffic::Video {
                bitrates,
                segment,
                buffer,
            })
        }
        "command" => {
            allow(&["run", "server", "time_limit"])?;
            let Some(run) = table
                .run
                .as_ref()
                .filter(|r| !r.get_ref().trim().is_empty())
            else {
                return Err(Problem::at(
                    raw.span(),
                    "traffic \"command\" needs `run`, such as \"iperf3 -c {proxy} -R\"",
                ));
            };
            Ok(Traffic::Command {
                run: run.get_ref().clone(),
                server: table.server.as_ref().map(|s| s.get_ref().clone()),
                time_limit: table.time_limit.as_ref().map(|t| t.get_ref().0),
            })
        }
        other => {
            let mut m = format!(
                "unknown traffic \"{other}\": expected one of {}",
                Traffic::KINDS.join(", ")
            );
            if let Some(n) = nearest(other, Traffic::KINDS) {
                m.push_str(&format!("; did you mean \"{n}\"?"));
            }
            Err(Problem::at(span, m))
        }
    }
}

fn message(raw: Option<&Spanned<u32>>, default: u32) -> Result<u32, Problem> {
    match raw {
        None => Ok(default),
        Some(v) if (1..=1 << 20).contains(v.get_ref()) => Ok(*v.get_ref()),
        Some(v) => Err(Problem::at(v.span(), "expected 1 to 1048576 bytes")),
    }
}

/// Refuses keys that the kind has no use for, so that none is silently ignored.
fn only(t: &RawTrafficTable, allowed: &[&str], kind: &str) -> Result<(), String> {
    let given = [
        ("direction", t.direction.is_some()),
        ("bytes", t.bytes.is_some()),
        ("rate", t.rate.is_some()),
        ("message_bytes", t.message_bytes.is_some()),
        ("request_bytes", t.request_bytes.is_some()),
        ("response_bytes", t.response_bytes.is_some()),
        ("transport", t.transport.is_some()),
        ("bitrates", t.bitrates.is_some()),
        ("segment", t.segment.is_some()),
        ("buffer", t.buffer.is_some()),
        ("run", t.run.is_some()),
        ("server", t.server.is_some()),
        ("time_limit", t.time_limit.is_some()),
    ];
    match given.iter().find(|(k, set)| *set && !allowed.contains(k)) {
        None => Ok(()),
        Some((k, _)) => Err(format!(
            "traffic \"{kind}\" has no key `{k}`: expected {}",
            allowed.join(", ")
        )),
    }
}
