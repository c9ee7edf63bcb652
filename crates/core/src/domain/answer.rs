//! Answers of DNS (RFC 1035 4): the name that was asked for, and its addresses.
//!
//! An answer is what any resolver sends, so that nothing in it is taken on trust. Addresses count
//! that belong to the name of the question, or to one that its aliases lead to within the answer: else
//! an answer to one question could speak for another name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Records of an answer at most that are read; more are ignored.
const MAX_RECORDS: usize = 128;
/// Aliases that are followed at most.
const MAX_ALIASES: usize = 8;
/// Octets of a name at most, with the lengths of its labels (RFC 1035 2.3.4).
const MAX_NAME: usize = 255;
/// Types of records: RFC 1035 3.2.2, RFC 3596 2.1.
const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
/// Class of the Internet.
const IN: u16 = 1;
/// Bits of the flags: a response, its operation, and its code.
const RESPONSE: u16 = 0x8000;
const OPERATION: u16 = 0x7800;
const CODE: u16 = 0x000f;

/// Answer to a question for addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Name of the question, in small letters, without the dot at its end. Octets of a label that are no
    /// letters of a host's name are written as in RFC 1035 5.1, such as `\046`.
    pub name: String,
    /// Its addresses, and for how long each is valid: the least of its record and the aliases that lead
    /// there.
    pub addresses: Vec<(IpAddr, Duration)>,
}

/// Reason why octets are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DnsError {
    /// Octets end too early.
    #[error("it ends too early")]
    Short,
    /// Message is a question, of another operation, or says that something failed.
    #[error("it is no answer")]
    NoAnswer,
    /// Message has no question for names of the Internet, or several questions.
    #[error("it has not one question")]
    Questions,
    /// A name is too long, or refers to what stands behind it.
    #[error("a name is malformed")]
    Name,
    /// A record has another length than its type.
    #[error("a record is malformed")]
    Record,
}

/// Octets of a message, and the place of the next.
struct Message<'a> {
    all: &'a [u8],
    at: usize,
}

impl Message<'_> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], DnsError> {
        let taken = self.all.get(self.at..).and_then(|left| left.first_chunk());
        self.at += N;
        taken.copied().ok_or(DnsError::Short)
    }

    fn u16(&mut self) -> Result<u16, DnsError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads a name in small letters: its labels with their lengths, without compression.
    fn name(&mut self) -> Result<Vec<u8>, DnsError> {
        let (mut name, mut at, mut end) = (Vec::new(), self.at, None);
        loop {
            let length = usize::from(*self.all.get(at).ok_or(DnsError::Short)?);
            match length {
                0 => break,
                1..=63 => {
                    let next = at + 1 + length;
                    let label = self.all.get(at..next).ok_or(DnsError::Short)?;
                    name.extend(label.iter().map(u8::to_ascii_lowercase));
                    if name.len() >= MAX_NAME {
                        return Err(DnsError::Name);
                    }
                    at = next;
                }
                0xc0.. => {
                    let low = *self.all.get(at + 1).ok_or(DnsError::Short)?;
                    let to = (length & 0x3f) << 8 | usize::from(low);
                    end = end.or(Some(at + 2));
                    // Each leads further to the front, so that there is an end.
                    if to >= at.min(self.at) {
                        return Err(DnsError::Name);
                    }
                    (at, self.at) = (to, to);
                }
                _ => return Err(DnsError::Name),
            }
        }
        self.at = end.unwrap_or(at + 1);
        Ok(name)
    }
}

/// Reads an answer.
///
/// # Errors
/// It is no answer to one question, or malformed.
pub fn read(message: &[u8]) -> Result<Answer, DnsError> {
    let mut m = Message {
        all: message,
        at: 0,
    };
    let [_, flags, questions, answers, _, _] = {
        let mut header = [0; 6];
        for field in &mut header {
            *field = m.u16()?;
        }
        header
    };
    if flags & RESPONSE == 0 || flags & (OPERATION | CODE) != 0 {
        return Err(DnsError::NoAnswer);
    }
    if questions != 1 {
        return Err(DnsError::Questions);
    }
    let question = m.name()?;
    let (_, class) = (m.u16()?, m.u16()?);
    if class != IN {
        return Err(DnsError::Questions);
    }
    let mut aliases = Vec::new();
    let mut addresses: Vec<(Vec<u8>, IpAddr, Duration)> = Vec::new();
    for _ in 0..usize::from(answers).min(MAX_RECORDS) {
        let owner = m.name()?;
        let (kind, class) = (m.u16()?, m.u16()?);
        // With the upper bit set, it is 0 (RFC 2181 8).
        let ttl = i32::from_be_bytes(m.array()?).max(0);
        let ttl = Duration::from_secs(ttl.unsigned_abs().into());
        let length = usize::from(m.u16()?);
        let end = m.at + length;
        if end > message.len() {
            return Err(DnsError::Short);
        }
        let ip = match (class, kind) {
            (IN, CNAME) => {
                aliases.push((owner, m.name()?, ttl));
                None
            }
            (IN, A) => Some((owner, Ipv4Addr::from(m.array::<4>()?).into(), ttl)),
            (IN, AAAA) => Some((owner, Ipv6Addr::from(m.array::<16>()?).into(), ttl)),
            _ => {
                m.at = end;
                None
            }
        };
        addresses.extend(ip);
        if m.at != end {
            return Err(DnsError::Record);
        }
    }
    let (mut name, mut valid) = (question.clone(), Duration::MAX);
    for _ in 0..MAX_ALIASES {
        let Some((_, next, ttl)) = aliases.iter().find(|(owner, _, _)| *owner == name) else {
            break;
        };
        (name, valid) = (next.clone(), valid.min(*ttl));
    }
    let own = addresses.into_iter().filter(|(owner, _, _)| *owner == name);
    Ok(Answer {
        name: text(&question),
        addresses: own.map(|(_, ip, ttl)| (ip, ttl.min(valid))).collect(),
    })
}

/// Writes a name as text.
fn text(mut name: &[u8]) -> String {
    let mut labels = Vec::new();
    while let Some((length, rest)) = name.split_first() {
        let (label, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        let letter = |o: &u8| match o {
            b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' => char::from(*o).to_string(),
            other => format!("\\{other:03}"),
        };
        labels.push(label.iter().map(letter).collect::<String>());
        name = rest;
    }
    labels.join(".")
}
