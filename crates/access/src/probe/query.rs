//! Asks the other end about single subflows: in a download the receiver has nothing
//! outstanding, so only the sender knows that what it sends on a subflow is not acknowledged.
//!
//! A request names subflows by the receiver's token and both address ids (RFC 8684 3.2), which
//! a NAT does not change; the response is as long, with a verdict for each. The first 32 bytes
//! are those of a [probe](super), with 3 (request) or 4 (response) as byte 5. Then, for
//! each subflow, 8 bytes:
//!
//! | bytes | what |
//! |---|---|
//! | 0-3 | token of the connection at the end that is asked |
//! | 4 | address id of the asker |
//! | 5 | address id of the end that is asked |
//! | 6 | verdict: 0 in a request or unknown, 1 progresses, 2 stalled |
//! | 7 | zero |

use super::{Head, Kind};

/// Subflows in one request at most: with the headers of UDP and IPv6 fewer bytes than any path
/// carries.
pub const MOST: usize = 32;
/// Bytes of a request or response at most.
pub const LEN_MAX: usize = super::LEN + MOST * ENTRY;
const ENTRY: usize = 8;

/// A subflow, as its asker names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Subject {
    /// Token of the connection at the end that is asked.
    pub token: u32,
    /// Address id of the asker.
    pub asker_id: u8,
    /// Address id of the end that is asked.
    pub asked_id: u8,
}

/// State of a subflow at the end that is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// There is no such subflow, or nothing was asked yet.
    #[default]
    Unknown,
    /// Nothing is outstanding, or acknowledgements come.
    Progresses,
    /// Data is outstanding and retransmissions of it are not acknowledged.
    Stalled,
}

/// A request or its response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Request or response.
    pub kind: Kind,
    /// Session number, drawn by the asker.
    pub session: u64,
    /// Counts up.
    pub number: u32,
    /// Up to [`MOST`] subflows.
    pub subjects: Vec<(Subject, Verdict)>,
}

impl Query {
    /// Returns the bytes on the wire.
    pub fn emit(&self) -> Vec<u8> {
        let head = Head {
            kind: match self.kind {
                Kind::Request => 3,
                Kind::Response => 4,
            },
            session: self.session,
            number: self.number,
            sent_ns: 0,
        };
        let mut b = head.emit().to_vec();
        for (s, verdict) in self.subjects.iter().take(MOST) {
            b.extend(s.token.to_be_bytes());
            let verdict = match verdict {
                Verdict::Unknown => 0,
                Verdict::Progresses => 1,
                Verdict::Stalled => 2,
            };
            b.extend([s.asker_id, s.asked_id, verdict, 0]);
        }
        b
    }

    /// Reads a datagram; `None` for whatever is not exactly a query.
    pub fn parse(b: &[u8]) -> Option<Self> {
        let (head, rest) = Head::parse(b)?;
        let kind = match head.kind {
            3 => Kind::Request,
            4 => Kind::Response,
            _ => return None,
        };
        let (entries, odd) = rest.as_chunks::<ENTRY>();
        if !odd.is_empty() || entries.len() > MOST || head.sent_ns != 0 {
            return None;
        }
        let subject = |e: &[u8; ENTRY]| {
            let verdict = match (e[6], kind) {
                (0, _) => Verdict::Unknown,
                (1, Kind::Response) => Verdict::Progresses,
                (2, Kind::Response) => Verdict::Stalled,
                _ => return None,
            };
            let subject = Subject {
                token: u32::from_be_bytes(*e.first_chunk()?),
                asker_id: e[4],
                asked_id: e[5],
            };
            (e[7] == 0).then_some((subject, verdict))
        };
        Some(Self {
            kind,
            session: head.session,
            number: head.number,
            subjects: entries.iter().map(subject).collect::<Option<_>>()?,
        })
    }

    /// Returns the response, with the verdict on each subflow; as long as the request, so that
    /// nobody gains by sending requests in another's name.
    pub fn response(&self, verdict: impl Fn(Subject) -> Verdict) -> Self {
        let subjects = self.subjects.iter();
        Self {
            kind: Kind::Response,
            subjects: subjects.map(|(s, _)| (*s, verdict(*s))).collect(),
            ..*self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Probe;
    use proptest::prelude::*;

    fn subjects() -> impl Strategy<Value = Vec<(Subject, Verdict)>> {
        let verdict = prop::sample::select(vec![
            Verdict::Unknown,
            Verdict::Progresses,
            Verdict::Stalled,
        ]);
        let subject = any::<(u32, u8, u8)>().prop_map(|(token, asker_id, asked_id)| Subject {
            token,
            asker_id,
            asked_id,
        });
        prop::collection::vec((subject, verdict), 0..=MOST)
    }

    proptest! {
        #[test]
        fn round_trips(session: u64, number: u32, subjects in subjects()) {
            let response = Query { kind: Kind::Response, session, number, subjects };
            prop_assert_eq!(Query::parse(&response.emit()), Some(response.clone()));
            let mut request = response.clone();
            request.kind = Kind::Request;
            request.subjects.iter_mut().for_each(|(_, v)| *v = Verdict::Unknown);
            prop_assert_eq!(Query::parse(&request.emit()), Some(request.clone()));
            prop_assert_eq!(request.emit().len(), request.response(|_| Verdict::Stalled).emit().len());
            // Neither is taken for a probe, by an end that knows no queries.
            prop_assert_eq!(Probe::parse(&request.emit()), None);
        }

        #[test]
        fn garbage_is_refused(b in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(q) = Query::parse(&b) {
                prop_assert_eq!(q.emit(), b);
            }
        }

        #[test]
        fn one_wrong_byte_is_refused_or_is_another_query(
            subjects in subjects(), at in 0usize..LEN_MAX, to: u8,
        ) {
            let q = Query { kind: Kind::Response, session: 7, number: 9, subjects };
            let mut b = q.emit();
            let at = at % b.len();
            b[at] = to;
            if let Some(read) = Query::parse(&b) {
                prop_assert_eq!(read.emit(), b.clone());
            }
            b.push(0);
            prop_assert_eq!(Query::parse(&b), None);
        }
    }
}
