//! Messages of the Convert Protocol (RFC 8803 4): a fixed header, and elements behind it.
//!
//! ```text
//! | version 1 | length, words | magic 0x2263 |   RFC 8803 4.1
//! | type      | length, words | value ...    |   each element, RFC 8803 4.2.1
//! ```

use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

const VERSION: u8 = 1;
const MAGIC: [u8; 2] = [0x22, 0x63];
/// Bytes of the header.
pub(crate) const HEADER: usize = 4;
/// Bytes that lengths count.
const WORD: usize = 4;
/// Bytes of the longest message: its length is one byte, in words.
#[cfg(test)]
const LONGEST: usize = u8::MAX as usize * WORD;
/// Bytes of the port and the address of a [`Element::Connect`], with its type and length.
const CONNECT: usize = 20;

/// Kind of the TCP option of Multipath TCP (RFC 8684).
pub(crate) const MPTCP: u8 = 30;

/// Numbers of the elements (RFC 8803 4.2).
mod kind {
    pub(super) const INFO: u8 = 1;
    pub(super) const CONNECT: u8 = 10;
    pub(super) const EXTENDED_HEADER: u8 = 20;
    pub(super) const SUPPORTED: u8 = 21;
    pub(super) const COOKIE: u8 = 22;
    pub(super) const ERROR: u8 = 30;
}

/// Reason why a converter refuses (RFC 8803 4.2.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Fault {
    #[error("the converter speaks another version of the Convert Protocol (RFC 8803)")]
    UnsupportedVersion,
    #[error("the converter says that the request is malformed")]
    Malformed,
    #[error("the converter does not know what was asked")]
    UnsupportedMessage,
    #[error("the converter wants a cookie: [converter] cookie_file")]
    MissingCookie,
    #[error(
        "the converter does not connect this device there: see its `sources`, `cookie_file` and `allow`"
    )]
    NotAuthorised,
    #[error("the converter does not know a TCP option of the request")]
    UnsupportedOption,
    #[error("the converter has no room for more connections")]
    Resources,
    #[error("the converter's network has failed")]
    Network,
    #[error("nobody listens there")]
    Reset,
    #[error("the converter cannot reach it")]
    Unreachable,
    #[error("the converter refuses for a reason of its own (code {0})")]
    Other(u8),
}

impl Fault {
    const KNOWN: [(u8, Self); 10] = [
        (0, Self::UnsupportedVersion),
        (1, Self::Malformed),
        (2, Self::UnsupportedMessage),
        (3, Self::MissingCookie),
        (32, Self::NotAuthorised),
        (33, Self::UnsupportedOption),
        (64, Self::Resources),
        (65, Self::Network),
        (96, Self::Reset),
        (97, Self::Unreachable),
    ];

    fn code(self) -> u8 {
        let known = Self::KNOWN.iter().find(|(_, f)| *f == self);
        match (self, known) {
            (Self::Other(code), _) => code,
            (_, Some((code, _))) => *code,
            (_, None) => 1,
        }
    }

    fn of(code: u8) -> Self {
        let known = Self::KNOWN.iter().find(|(c, _)| *c == code);
        known.map_or(Self::Other(code), |(_, fault)| *fault)
    }
}

impl From<Fault> for io::Error {
    fn from(fault: Fault) -> Self {
        let kind = match fault {
            Fault::MissingCookie | Fault::NotAuthorised => io::ErrorKind::PermissionDenied,
            Fault::Reset => io::ErrorKind::ConnectionRefused,
            Fault::Unreachable | Fault::Network => io::ErrorKind::HostUnreachable,
            _ => io::ErrorKind::InvalidData,
        };
        Self::new(kind, fault)
    }
}

/// Element of a message (TLV, RFC 8803 4.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// Question for the TCP options that the converter knows.
    Info,
    /// Destination, and the TCP options that are wanted towards it.
    Connect(SocketAddr, Vec<u8>),
    /// TCP options of the destination's SYN and ACK, in whole words.
    ExtendedHeader(Vec<u8>),
    /// Kinds of the TCP options that the converter knows, in whole words: 0 fills up.
    Supported(Vec<u8>),
    /// Secret that both ends know, in whole words: zeros fill up.
    Cookie(Vec<u8>),
    /// Refusal.
    Error(Fault),
    /// Element of a kind that is not known here.
    Unknown(u8),
}

impl Element {
    fn write(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let (kind, after): (u8, &[u8]) = match self {
            Self::Info => (kind::INFO, &[0, 0]),
            Self::Connect(to, _) => (kind::CONNECT, &to.port().to_be_bytes()),
            Self::ExtendedHeader(_) => (kind::EXTENDED_HEADER, &[0, 0]),
            Self::Supported(_) => (kind::SUPPORTED, &[0, 0]),
            Self::Cookie(_) => (kind::COOKIE, &[0, 0]),
            Self::Error(fault) => (kind::ERROR, &[fault.code(), 0]),
            Self::Unknown(kind) => (*kind, &[0, 0]),
        };
        out.extend([kind, 0]);
        out.extend(after);
        match self {
            Self::Connect(to, options) => {
                let ip = match to.ip() {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                out.extend(ip.octets());
                out.extend(options);
            }
            Self::ExtendedHeader(rest) | Self::Supported(rest) | Self::Cookie(rest) => {
                out.extend(rest);
            }
            Self::Info | Self::Error(_) | Self::Unknown(_) => {}
        }
        out.resize(begin + (out.len() - begin).next_multiple_of(WORD), 0);
        // Whoever makes one keeps it short: see `write`.
        out[begin + 1] = u8::try_from((out.len() - begin) / WORD).unwrap_or(u8::MAX);
    }

    /// Reads an element of this many bytes, whole words.
    fn read(bytes: &[u8]) -> Option<Self> {
        let rest = &bytes[WORD..];
        Some(match bytes[0] {
            kind::INFO if rest.is_empty() => Self::Info,
            kind::CONNECT => {
                let ip: [u8; 16] = *rest.first_chunk()?;
                let port = u16::from_be_bytes([bytes[2], bytes[3]]);
                let to = SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port);
                Self::Connect(to, bytes[CONNECT..].to_vec())
            }
            kind::EXTENDED_HEADER => Self::ExtendedHeader(rest.to_vec()),
            kind::SUPPORTED => Self::Supported(rest.to_vec()),
            kind::COOKIE => Self::Cookie(rest.to_vec()),
            kind::ERROR => Self::Error(Fault::of(bytes[2])),
            kind::INFO => return None,
            other => Self::Unknown(other),
        })
    }
}

/// Returns a message of these elements, at most 1020 bytes; none if they are more.
pub(crate) fn write(elements: &[Element]) -> Option<Vec<u8>> {
    let mut out = vec![VERSION, 0, MAGIC[0], MAGIC[1]];
    elements.iter().for_each(|e| e.write(&mut out));
    out[1] = u8::try_from(out.len() / WORD).ok()?;
    Some(out)
}

/// Returns how many bytes follow a header.
///
/// # Errors
/// It is no header, or one of another version.
pub(crate) fn read_header(header: [u8; HEADER]) -> Result<usize, Fault> {
    let [version, words, magic @ ..] = header;
    if magic != MAGIC {
        return Err(Fault::Malformed);
    }
    match version {
        VERSION => usize::from(words).checked_sub(1),
        _ => return Err(Fault::UnsupportedVersion),
    }
    .map(|words| words * WORD)
    .ok_or(Fault::Malformed)
}

/// Reads the elements behind a header.
///
/// # Errors
/// They are malformed.
pub(crate) fn read_elements(mut bytes: &[u8]) -> Result<Vec<Element>, Fault> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let words = *bytes.get(1).ok_or(Fault::Malformed)?;
        let length = usize::from(words) * WORD;
        let element = bytes.get(..length).filter(|e| e.len() >= WORD);
        let element = element.ok_or(Fault::Malformed)?;
        all.push(Element::read(element).ok_or(Fault::Malformed)?);
        bytes = &bytes[length..];
    }
    Ok(all)
}

/// Whether an address leads nowhere: nobody has one of all zeros, or a port 0.
pub(crate) fn is_nowhere(to: &SocketAddr) -> bool {
    to.port() == 0 || to.ip().is_unspecified()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// As tables of RFC 8803 have it, by hand.
    #[test]
    fn a_request_has_the_bytes_of_the_rfc() {
        let to = "192.0.2.7:443".parse().unwrap();
        let message = write(&[
            Element::Connect(to, vec![]),
            Element::Cookie(b"secret".to_vec()),
        ]);
        let wanted: &[&[u8]] = &[
            &[1, 9, 0x22, 0x63],
            &[10, 5, 0x01, 0xbb],
            &[0; 10],
            &[0xff, 0xff, 192, 0, 2, 7],
            &[22, 3, 0, 0],
            b"secret\0\0",
        ];
        assert_eq!(message.unwrap(), wanted.concat());
    }

    #[test]
    fn a_refusal_has_the_bytes_of_the_rfc() {
        let message = write(&[Element::Error(Fault::Unreachable)]).unwrap();
        assert_eq!(message, [1, 2, 0x22, 0x63, 30, 1, 97, 0]);
    }

    #[test]
    fn other_versions_and_other_protocols_are_told_apart() {
        assert_eq!(read_header([1, 1, 0x22, 0x63]), Ok(0));
        assert_eq!(
            read_header([2, 1, 0x22, 0x63]),
            Err(Fault::UnsupportedVersion)
        );
        assert_eq!(read_header(*b"GET "), Err(Fault::Malformed));
        assert_eq!(read_header([1, 0, 0x22, 0x63]), Err(Fault::Malformed));
    }

    fn in_words(bytes: Vec<u8>) -> Vec<u8> {
        let whole = bytes.len() / WORD * WORD;
        bytes[..whole].to_vec()
    }

    fn element() -> impl Strategy<Value = Element> {
        let bytes = || prop::collection::vec(any::<u8>(), 0..40).prop_map(in_words);
        let to = (any::<IpAddr>(), any::<u16>());
        let to = to.prop_map(|(ip, port)| SocketAddr::new(ip.to_canonical(), port));
        prop_oneof![
            Just(Element::Info),
            (to, bytes()).prop_map(|(to, options)| Element::Connect(to, options)),
            bytes().prop_map(Element::ExtendedHeader),
            bytes().prop_map(Element::Supported),
            bytes().prop_map(Element::Cookie),
            any::<u8>().prop_map(|code| Element::Error(Fault::of(code))),
        ]
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(all in prop::collection::vec(element(), 0..8)) {
            let bytes = write(&all).unwrap();
            let length = read_header(*bytes.first_chunk().unwrap()).unwrap();
            prop_assert_eq!(length, bytes.len() - HEADER);
            prop_assert_eq!(read_elements(&bytes[HEADER..]), Ok(all));
        }

        #[test]
        fn anything_is_read_or_malformed(bytes in prop::collection::vec(any::<u8>(), 0..LONGEST)) {
            if let Ok(all) = read_elements(&bytes) {
                prop_assert!(all.len() <= bytes.len() / WORD);
            }
            if let Some(header) = bytes.first_chunk() {
                let _ = read_header(*header);
            }
        }

        #[test]
        fn a_cut_message_is_malformed(all in prop::collection::vec(element(), 1..4), cut in 1usize..4) {
            let bytes = write(&all).unwrap();
            prop_assert!(read_elements(&bytes[HEADER..bytes.len() - cut]).is_err());
        }
    }
}
