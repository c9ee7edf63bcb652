//! The `traffic` key: what the applications of a case do. To add a kind, write its file and one
//! line of the list below.

mod bulk;
mod cbr;
mod command;
mod request_response;
mod video;
mod voip;
mod web;

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::diagnostic::{Problem, nearest};
use super::raw::{RawTraffic, RawTrafficTable, Way};
use super::text::Either;

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use command::Command;
pub use request_response::RequestResponse;
pub use video::Video;
pub use voip::Voip;
pub use web::Web;

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

/// `traffic` of a case, before its kind has read it.
struct Given<'a> {
    table: &'a RawTrafficTable,
    /// Place of the whole.
    span: Range<usize>,
}

impl Given<'_> {
    fn direction(&self) -> Direction {
        match self.table.direction {
            None | Some(Way::Down) => Direction::Down,
            Some(Way::Up) => Direction::Up,
            Some(Way::Both) => Direction::Both,
        }
    }
}

/// A kind of traffic, with its parameters.
trait TrafficKind: Sized {
    /// Name in a scenario and in `summary.json`.
    const NAME: &'static str;
    /// Keys that it takes beside `kind`.
    const KEYS: &'static [&'static str];

    /// Reads and checks its keys; others are not there.
    ///
    /// # Errors
    /// Where, and what was expected.
    fn parse(given: &Given<'_>) -> Result<Self, Problem>;

    /// Whether it ends by itself, so that the case's duration is only its limit.
    fn ends_by_itself(&self) -> bool {
        false
    }

    /// Direction of the measured data.
    fn direction(&self) -> Direction {
        Direction::Down
    }

    /// Whether it sends UDP datagrams.
    fn is_udp(&self) -> bool {
        false
    }

    /// Whether the wire is what limits it, so that its goodput has a ceiling.
    fn as_much_as_passes(&self) -> bool {
        false
    }

    /// Traffic of our own that does it; `None`: a program of the user's.
    fn ours(&self) -> Option<braid_traffic::Kind>;
}

/// Makes [`Traffic`] of the kinds.
macro_rules! kinds {
    ($($kind:ident,)*) => {
        /// Traffic of an application. The fields are those of `docs/traffic.md`.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "each is documented at its struct")]
        pub enum Traffic {
            $($kind($kind),)*
        }

        impl Traffic {
            /// Kinds, as written in a scenario.
            pub const KINDS: &[&str] = &[$($kind::NAME,)*];

            /// Returns the kind, as written in a scenario.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $kind::NAME,)*
                }
            }

            /// Whether it ends by itself, so that the case's duration is only its limit.
            pub fn ends_by_itself(&self) -> bool {
                match self {
                    $(Self::$kind(kind) => kind.ends_by_itself(),)*
                }
            }

            /// Direction of the measured data.
            pub fn direction(&self) -> Direction {
                match self {
                    $(Self::$kind(kind) => kind.direction(),)*
                }
            }

            /// Whether it sends UDP datagrams.
            pub fn is_udp(&self) -> bool {
                match self {
                    $(Self::$kind(kind) => kind.is_udp(),)*
                }
            }

            /// Whether the wire is what limits it, so that its goodput has a ceiling.
            pub(crate) fn as_much_as_passes(&self) -> bool {
                match self {
                    $(Self::$kind(kind) => kind.as_much_as_passes(),)*
                }
            }

            /// Traffic of our own that does it; `None`: a program of the user's.
            pub(crate) fn ours(&self) -> Option<braid_traffic::Kind> {
                match self {
                    $(Self::$kind(kind) => kind.ours(),)*
                }
            }

            /// Reads the keys of the kind of that name; `None`: there is no such kind.
            fn parse(kind: &str, given: &Given<'_>) -> Option<Result<Self, Problem>> {
                match kind {
                    $($kind::NAME => Some(read(given).map(Self::$kind)),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    Bulk,
    RequestResponse,
    Cbr,
    Video,
    Command,
    Voip,
    Web,
}

fn read<T: TrafficKind>(given: &Given<'_>) -> Result<T, Problem> {
    only(given.table, T::KEYS, T::NAME).map_err(|m| Problem::at(given.span.clone(), m))?;
    T::parse(given)
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
    let given = Given {
        table,
        span: raw.span(),
    };
    Traffic::parse(kind, &given).unwrap_or_else(|| {
        let mut m = format!(
            "unknown traffic \"{kind}\": expected one of {}",
            Traffic::KINDS.join(", ")
        );
        if let Some(n) = nearest(kind, Traffic::KINDS.iter().copied()) {
            m.push_str(&format!("; did you mean \"{n}\"?"));
        }
        Err(Problem::at(span, m))
    })
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
    match t.given().find(|k| !allowed.contains(k)) {
        None => Ok(()),
        Some(k) => Err(format!(
            "traffic \"{kind}\" has no key `{k}`: expected {}",
            allowed.join(", ")
        )),
    }
}
