//! The probe of an access: a small UDP datagram that the other end sends back,
//! after the echo of the performance measurement function of 3GPP TS 24.193
//! (PMFP ECHO REQUEST and RESPONSE).
//!
//! 32 bytes, numbers in network order:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | `BRPM` |
//! | 4 | version, 1 |
//! | 5 | 1: request, 2: response; 3 to 6: see [`query`] and [`packet_size`] |
//! | 6-7 | zero |
//! | 8-15 | session: drawn by the asker, so that others' answers are not taken |
//! | 16-19 | extended procedure transaction identity: counts up |
//! | 20-23 | zero |
//! | 24-31 | the asker's clock, nanoseconds; sent back as it is |

pub mod client;
pub mod contact;
pub mod packet_size;
pub mod query;
pub mod responder;
pub mod tcp;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use braid_core::Time;

/// Length of every probe, bytes.
pub const LEN: usize = 32;

const MAGIC: [u8; 4] = *b"BRPM";
const VERSION: u8 = 1;

/// The fields that every message between the ends begins with: bytes 0 to 31.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Byte 5: which message.
    pub(super) kind: u8,
    /// Session number, drawn by the asker.
    pub(super) session: u64,
    /// Counts up.
    pub(super) number: u32,
    /// The asker's clock, nanoseconds.
    pub(super) sent_ns: u64,
}

impl Head {
    /// Returns the 32 bytes on the wire.
    pub(super) fn emit(&self) -> [u8; LEN] {
        let mut b = [0; LEN];
        b[..4].copy_from_slice(&MAGIC);
        b[4] = VERSION;
        b[5] = self.kind;
        b[8..16].copy_from_slice(&self.session.to_be_bytes());
        b[16..20].copy_from_slice(&self.number.to_be_bytes());
        b[24..].copy_from_slice(&self.sent_ns.to_be_bytes());
        b
    }

    /// Reads the first 32 bytes of a datagram, and returns what follows them; `None` for
    /// whatever is not of this protocol and version.
    pub(super) fn parse(b: &[u8]) -> Option<(Self, &[u8])> {
        let (b, rest) = b.split_first_chunk::<LEN>()?;
        let zero = [b[6], b[7], b[20], b[21], b[22], b[23]];
        if b[..4] != MAGIC || b[4] != VERSION || zero != [0; 6] {
            return None;
        }
        let head = Self {
            kind: b[5],
            session: u64::from_be_bytes(*b[8..].first_chunk()?),
            number: u32::from_be_bytes(*b[16..].first_chunk()?),
            sent_ns: u64::from_be_bytes(*b[24..].first_chunk()?),
        };
        Some((head, rest))
    }
}

/// Direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// To be answered.
    Request,
    /// The answer.
    Response,
}

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Request or response.
    pub kind: Kind,
    /// Session number, drawn by the asker.
    pub session: u64,
    /// Counts up.
    pub number: u32,
    /// The asker's clock, nanoseconds.
    pub sent_ns: u64,
}

impl Probe {
    /// On the wire.
    pub fn emit(&self) -> [u8; LEN] {
        let head = Head {
            kind: match self.kind {
                Kind::Request => 1,
                Kind::Response => 2,
            },
            session: self.session,
            number: self.number,
            sent_ns: self.sent_ns,
        };
        head.emit()
    }

    /// Reads a datagram; `None` for whatever is not exactly a probe.
    pub fn parse(b: &[u8]) -> Option<Self> {
        let (head, rest) = Head::parse(b)?;
        let kind = match head.kind {
            1 => Kind::Request,
            2 => Kind::Response,
            _ => return None,
        };
        rest.is_empty().then_some(Self {
            kind,
            session: head.session,
            number: head.number,
            sent_ns: head.sent_ns,
        })
    }

    /// The answer to a request; as long as it is, so that nobody gains by sending
    /// requests in another's name.
    pub fn response(&self) -> Self {
        Self {
            kind: Kind::Response,
            ..*self
        }
    }
}

/// Answers per second to one address and port: an access of a device, which asks 25 times
/// at most.
const RATE: u32 = 100;
/// Answers per second to one address: many devices may be behind it (CGNAT, RFC 6888).
const RATE_SHARED: u32 = 10_000;
/// Addresses with their ports that are counted at one time, some 5 MB.
const COUNTED: usize = 65_536;

/// Bounds the answers to each address, and to each of its ports.
#[derive(Debug, Default)]
pub struct Limiter {
    /// The second that is counted, and the answers in it.
    second: u64,
    answered: BTreeMap<SocketAddr, u32>,
    /// Answers to all ports of an address; no more entries than in `answered`.
    shared: BTreeMap<IpAddr, u32>,
}

impl Limiter {
    /// Whether a request from `from` may be answered now.
    pub fn allows(&mut self, from: SocketAddr, now: Time) -> bool {
        let second = now.as_nanos() / 1_000_000_000;
        if second != self.second {
            self.second = second;
            self.answered.clear();
            self.shared.clear();
        }
        if !self.answered.contains_key(&from) && self.answered.len() >= COUNTED {
            return false;
        }
        let n = self.answered.entry(from).or_default();
        *n += 1;
        // Beyond its own, one port takes nothing from the others.
        if *n > RATE {
            return false;
        }
        let all = self.shared.entry(from.ip()).or_default();
        *all += 1;
        *all <= RATE_SHARED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trips(session: u64, number: u32, sent_ns: u64, request: bool) {
            let kind = if request { Kind::Request } else { Kind::Response };
            let p = Probe { kind, session, number, sent_ns };
            prop_assert_eq!(Probe::parse(&p.emit()), Some(p));
            prop_assert_eq!(p.response().emit().len(), p.emit().len());
        }

        #[test]
        fn garbage_is_refused(b in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(p) = Probe::parse(&b) {
                prop_assert_eq!(p.emit().to_vec(), b);
            }
        }

        #[test]
        fn one_wrong_byte_is_refused_or_is_another_probe(at in 0usize..LEN, to: u8) {
            let p = Probe { kind: Kind::Request, session: 7, number: 9, sent_ns: 11 };
            let mut b = p.emit();
            b[at] = to;
            if let Some(read) = Probe::parse(&b) {
                prop_assert_eq!(read.emit(), b);
            }
            for len in [LEN - 1, LEN + 1] {
                let mut other = b.to_vec();
                other.resize(len, 0);
                prop_assert_eq!(Probe::parse(&other), None);
            }
        }

        #[test]
        fn answers_are_bounded(
            requests in prop::collection::vec((0u8..2, 0u16..2, 0u64..3_000), 0..2_000),
        ) {
            let mut l = Limiter::default();
            let mut requests = requests;
            requests.sort_by_key(|r| r.2);
            let mut answered = BTreeMap::new();
            let mut asked = answered.clone();
            for (host, port, ms) in requests {
                let of = (host, port, ms / 1000);
                *asked.entry(of).or_insert(0u32) += 1;
                if l.allows(from(host, port), Time::from_nanos(ms * 1_000_000)) {
                    *answered.entry(of).or_insert(0u32) += 1;
                }
            }
            for (of, n) in asked {
                prop_assert_eq!(answered[&of], n.min(RATE));
            }
        }
    }

    fn from(host: u8, port: u16) -> SocketAddr {
        (IpAddr::from([10, 0, 0, host]), port).into()
    }

    #[test]
    fn devices_behind_one_address_are_all_answered() {
        let mut l = Limiter::default();
        // 300 devices ask each 40 ms, one floods.
        let answered = |l: &mut Limiter, port| l.allows(from(1, port), Time::ZERO);
        for _ in 0..25 {
            assert!((0..300).all(|port| answered(&mut l, port)));
            for _ in 0..1000 {
                answered(&mut l, 999);
            }
        }
    }

    #[test]
    fn neither_one_address_nor_all_of_them_get_answers_without_end() {
        let mut l = Limiter::default();
        let one = (0..=u16::MAX).filter(|port| l.allows(from(1, *port), Time::ZERO));
        assert_eq!(one.count(), RATE_SHARED as usize);
        let others = (0..200).flat_map(|host| (0..1000).map(move |port| (host, port)));
        for (host, port) in others {
            l.allows(from(host, port), Time::ZERO);
        }
        assert!(l.answered.len() <= COUNTED && l.shared.len() <= COUNTED);
        assert!(l.allows(from(201, 1), Time::from_nanos(1_000_000_000)));
    }
}
