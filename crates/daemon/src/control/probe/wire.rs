//! Messages of a transfer: 32 bytes each, numbers in network order, over plain TCP to the port of
//! `[probe]`.
//!
//! ```text
//! device                                   proxy
//!   | -- request (direction, flows, ...) --> |   control connection
//!   | <-- grant (token, bounds) or refusal - |
//!   | -- flow (token) ---------------------> |   on each of the flows
//!   | <== data: down, or up ===============> |
//!   | <-- report ---------------------------- |   control connection, after a transfer down
//! ```
//!
//! | bytes | meaning |
//! |---|---|
//! | 0-3 | `BRPT` |
//! | 4 | version, 1 |
//! | 5 | 1: request, 2: grant, 3: refusal, 4: flow, 5: report |
//! | 6 | request: direction, 1 down, 2 up; refusal: its reason; else zero |
//! | 7 | request and grant: flows; else zero |
//! | 8-15 | grant and flow: token; else zero |
//! | 16-23 | request and grant: length, milliseconds; report: rate, bit/s, or zero for none; else zero |
//! | 24-31 | request and grant: bytes at most; report: bytes sent; else zero |

use braid_core::Rate;
use braid_core::control::Direction;

/// Length of every message, bytes.
pub(crate) const LEN: usize = 32;

/// First byte of every message. Checks, on the same port, begin with another.
pub(crate) const FIRST: u8 = MAGIC[0];

const MAGIC: [u8; 4] = *b"BRPT";
const VERSION: u8 = 1;

/// Bounds of one transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Parallel flows.
    pub(super) flows: u8,
    /// Length, milliseconds.
    pub(super) duration_ms: u64,
    /// Bytes of all flows at most.
    pub(super) max_bytes: u64,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Asks for a transfer.
    Request(Direction, Bounds),
    /// Allows one within these bounds to the flows that show the token.
    Grant(u64, Bounds),
    /// Allows none.
    Refusal(Refusal),
    /// Begins a flow of the transfer with this token.
    Flow(u64),
    /// Result of a transfer down.
    Report {
        /// Bytes that were sent.
        bytes: u64,
        /// Rate; absent where the transfer was too short to tell.
        rate: Option<Rate>,
    },
}

/// Reason why a proxy serves no transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Proxy that serves none at all.
    Off,
    /// Address of no access that the proxy knows.
    Stranger,
    /// Address from which no connection or session of Braid comes.
    Unconnected,
    /// Result by which nothing is decided.
    Unwanted,
    /// Proxy that serves as many as it may.
    Busy,
    /// Transfer before it too short a while ago.
    Soon,
    /// Address that has had its bytes of the day.
    Spent,
    /// Access that traffic fills.
    Full,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::Off,
        Self::Stranger,
        Self::Unconnected,
        Self::Unwanted,
        Self::Busy,
        Self::Soon,
        Self::Spent,
        Self::Full,
    ];

    /// Returns the reason as a sentence for the operator of the device.
    pub(super) const fn why(self) -> &'static str {
        match self {
            Self::Off => "the proxy serves no transfers: set serve = true in its [control.probe]",
            Self::Stranger => {
                "the proxy knows no access with this address: name it in its [access.NAME]"
            }
            Self::Unconnected => {
                "the proxy has no connection from this address: it serves accesses in use alone"
            }
            Self::Unwanted => {
                "the proxy does not go by this direction: set estimator = \"probe\" in its \
                 [access.NAME] and a policy"
            }
            Self::Busy => "the proxy serves others: the next attempt is after the interval",
            Self::Soon => {
                "the proxy allows fewer transfers: lengthen the interval here, or shorten its own"
            }
            Self::Spent => "the proxy has served its bytes of the day to this address",
            Self::Full => "traffic fills the access, and tells the proxy what it carries",
        }
    }

    const fn code(self) -> u8 {
        self as u8 + 1
    }
}

impl Message {
    /// Returns the 32 bytes on the wire.
    pub(super) fn emit(&self) -> [u8; LEN] {
        let mut b = [0; LEN];
        b[..4].copy_from_slice(&MAGIC);
        b[4] = VERSION;
        let mut bounds = |bounds: &Bounds| {
            b[7] = bounds.flows;
            b[16..24].copy_from_slice(&bounds.duration_ms.to_be_bytes());
            b[24..].copy_from_slice(&bounds.max_bytes.to_be_bytes());
        };
        match self {
            Self::Request(direction, of) => {
                bounds(of);
                b[5] = 1;
                b[6] = match direction {
                    Direction::Down => 1,
                    Direction::Up => 2,
                };
            }
            Self::Grant(token, of) => {
                bounds(of);
                b[5] = 2;
                b[8..16].copy_from_slice(&token.to_be_bytes());
            }
            Self::Refusal(reason) => (b[5], b[6]) = (3, reason.code()),
            Self::Flow(token) => {
                b[5] = 4;
                b[8..16].copy_from_slice(&token.to_be_bytes());
            }
            Self::Report { bytes, rate } => {
                b[5] = 5;
                let rate = rate.map_or(0, Rate::as_bps);
                b[16..24].copy_from_slice(&rate.to_be_bytes());
                b[24..].copy_from_slice(&bytes.to_be_bytes());
            }
        }
        b
    }

    /// Reads a message; `None` for whatever is none of this version.
    pub(super) fn parse(b: &[u8; LEN]) -> Option<Self> {
        let number = |at: usize| Some(u64::from_be_bytes(*b[at..].first_chunk()?));
        let token = number(8)?;
        let bounds = Bounds {
            flows: b[7],
            duration_ms: number(16)?,
            max_bytes: number(24)?,
        };
        let read = match b[5] {
            1 => {
                let direction = match b[6] {
                    1 => Direction::Down,
                    2 => Direction::Up,
                    _ => return None,
                };
                Self::Request(direction, bounds)
            }
            2 => Self::Grant(token, bounds),
            3 => Self::Refusal(*Refusal::ALL.iter().find(|r| r.code() == b[6])?),
            4 => Self::Flow(token),
            5 => Self::Report {
                bytes: bounds.max_bytes,
                rate: Some(Rate::from_bps(bounds.duration_ms)).filter(|r| r.as_bps() > 0),
            },
            _ => return None,
        };
        // All that this version does not use is zero.
        (read.emit() == *b).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> impl Strategy<Value = Message> {
        let bounds = any::<(u8, u64, u64)>().prop_map(|(flows, duration_ms, max_bytes)| Bounds {
            flows,
            duration_ms,
            max_bytes,
        });
        let direction = prop::sample::select(Direction::ALL.to_vec());
        prop_oneof![
            (direction, bounds.clone()).prop_map(|(d, b)| Message::Request(d, b)),
            (any::<u64>(), bounds).prop_map(|(t, b)| Message::Grant(t, b)),
            prop::sample::select(Refusal::ALL.to_vec()).prop_map(Message::Refusal),
            any::<u64>().prop_map(Message::Flow),
            (any::<u64>(), prop::option::of(1u64..)).prop_map(|(bytes, rate)| Message::Report {
                bytes,
                rate: rate.map(Rate::from_bps),
            }),
        ]
    }

    proptest! {
        #[test]
        fn round_trips(message in messages()) {
            prop_assert_eq!(Message::parse(&message.emit()), Some(message));
        }

        #[test]
        fn garbage_is_refused(b: [u8; LEN]) {
            if let Some(read) = Message::parse(&b) {
                prop_assert_eq!(read.emit(), b);
            }
        }

        #[test]
        fn one_wrong_byte_is_refused_or_is_another_message(
            message in messages(), at in 0usize..LEN, to: u8,
        ) {
            let mut b = message.emit();
            b[at] = to;
            match Message::parse(&b) {
                Some(read) => prop_assert_eq!(read.emit(), b),
                None => prop_assert!(b != message.emit()),
            }
        }
    }

    #[test]
    fn every_reason_is_another() {
        let codes: std::collections::BTreeSet<u8> = Refusal::ALL.iter().map(|r| r.code()).collect();
        assert_eq!(codes.len(), Refusal::ALL.len());
        assert!(!codes.contains(&0));
    }
}
