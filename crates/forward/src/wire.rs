//! The first bytes of a stream.
//!
//! The device requests a connection: one byte of version (1), one of the kind of destination (4, 6
//! or 3), the address (4 or 16 bytes) or the name (its length in one byte, then as many), and the
//! port (2, network order); or a tunnel for packets: the kind 7 and nothing else; or what the proxy
//! reaches: the kind 8. Before a destination may stand the class of what comes back: 9 and its number.
//! What the program writes may follow at once. The proxy replies one byte: 0
//! once it is connected, else a [`Refusal`]. A first byte that is no version, 32 or more, is left to
//! others.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use braid_core::class::DEFAULT_NUMBER;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u8 = 1;
const NAME: u8 = 3;
const V4: u8 = 4;
const V6: u8 = 6;
const TUNNEL: u8 = 7;
const REACH: u8 = 8;
const CLASS: u8 = 9;

/// Least first byte of a stream that is none of this protocol.
const OTHERS: u8 = 32;

/// Maximum bytes of a name (RFC 1035 2.3.4, without the dot at the end).
const MAX_NAME: usize = 253;

/// Name of a host that the proxy resolves (RFC 1123 2.1): letters, digits, hyphens, underscores and
/// dots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(Box<str>);

impl HostName {
    /// Returns the name, unless it is none.
    pub fn new(name: &str) -> Option<Self> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(plain);
        is_name.then(|| Self(name.into()))
    }

    /// Returns it as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Destination of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An address and a port.
    Address(SocketAddr),
    /// A name that whoever connects resolves, and a port.
    Name(HostName, u16),
}

impl Target {
    /// Returns the port.
    pub fn port(&self) -> u16 {
        match self {
            Self::Address(to) => to.port(),
            Self::Name(_, port) => *port,
        }
    }
}

impl From<SocketAddr> for Target {
    fn from(to: SocketAddr) -> Self {
        Self::Address(SocketAddr::new(to.ip().to_canonical(), to.port()))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(to) => to.fmt(f),
            Self::Name(name, port) => write!(f, "{}:{port}", name.as_str()),
        }
    }
}

/// Request at the beginning of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Connection to this destination, and the class of what comes back.
    Connection(Target, u8),
    /// Tunnel for packets ([`crate::tunnel`]).
    Tunnel,
    /// Families that the proxy reaches ([`Reach`](crate::Reach)).
    Reach,
    /// Stream of another protocol, by its first byte.
    Other(u8),
}

/// Why the proxy does not connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Destination that the proxy is not allowed to connect to.
    #[error("the proxy is not allowed to connect there: add it to its `allow`")]
    Forbidden,
    /// Nobody listens there.
    #[error("nobody listens there")]
    Refused,
    /// Destination that cannot be reached.
    #[error("the proxy cannot reach it")]
    Unreachable,
    /// Name that has no address.
    #[error("the proxy finds no address of that name")]
    Unknown,
}

impl Refusal {
    const ALL: [Self; 4] = [
        Self::Forbidden,
        Self::Refused,
        Self::Unreachable,
        Self::Unknown,
    ];

    fn code(self) -> u8 {
        match self {
            Self::Forbidden => 1,
            Self::Refused => 2,
            Self::Unreachable => 3,
            Self::Unknown => 4,
        }
    }

    pub(crate) fn of(e: &io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            _ => Self::Unreachable,
        }
    }

    /// Returns the refusal that an error of a connection is, if it is one.
    pub fn within(e: &io::Error) -> Option<Self> {
        e.get_ref()?.downcast_ref().copied()
    }
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::Forbidden => io::ErrorKind::PermissionDenied,
            Refusal::Refused => io::ErrorKind::ConnectionRefused,
            Refusal::Unreachable => io::ErrorKind::HostUnreachable,
            Refusal::Unknown => io::ErrorKind::NotFound,
        };
        Self::new(kind, refusal)
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Requests a connection to `to`, of which what comes back is of a class.
///
/// # Errors
/// The stream's.
pub async fn request(
    stream: &mut (impl AsyncWrite + Unpin),
    to: &Target,
    class: u8,
) -> io::Result<()> {
    let mut bytes = vec![VERSION];
    // A proxy of an earlier version knows no classes, and need not.
    if class != DEFAULT_NUMBER {
        bytes.extend([CLASS, class]);
    }
    match to {
        Target::Address(to) => match to.ip() {
            IpAddr::V4(ip) => {
                bytes.push(V4);
                bytes.extend(ip.octets());
            }
            IpAddr::V6(ip) => {
                bytes.push(V6);
                bytes.extend(ip.octets());
            }
        },
        Target::Name(name, _) => {
            bytes.push(NAME);
            bytes.push(u8::try_from(name.0.len()).unwrap_or(u8::MAX));
            bytes.extend(name.0.bytes());
        }
    }
    bytes.extend(to.port().to_be_bytes());
    stream.write_all(&bytes).await
}

/// Requests a tunnel.
///
/// # Errors
/// The stream's.
pub(crate) async fn request_tunnel(stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    stream.write_all(&[VERSION, TUNNEL]).await
}

/// Asks what the proxy reaches.
///
/// # Errors
/// The stream's.
pub(crate) async fn request_reach(stream: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    stream.write_all(&[VERSION, REACH]).await
}

/// Reads the request.
///
/// # Errors
/// The stream's; [`io::ErrorKind::InvalidData`] where it is another version, or nothing
/// that can be connected to.
pub async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Request> {
    match stream.read_u8().await? {
        VERSION => {}
        other @ OTHERS.. => return Ok(Request::Other(other)),
        _ => return Err(wrong("it forwards by another version of this protocol")),
    }
    let (mut kind, mut class) = (stream.read_u8().await?, DEFAULT_NUMBER);
    if kind == CLASS {
        class = stream.read_u8().await?;
        kind = stream.read_u8().await?;
    }
    let to = match kind {
        V4 => {
            let ip = Ipv4Addr::from_bits(stream.read_u32().await?);
            SocketAddr::new(ip.into(), stream.read_u16().await?).into()
        }
        V6 => {
            let ip = Ipv6Addr::from_bits(stream.read_u128().await?);
            SocketAddr::new(ip.into(), stream.read_u16().await?).into()
        }
        NAME => {
            let mut name = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut name).await?;
            let name = std::str::from_utf8(&name).ok().and_then(HostName::new);
            let name = name.ok_or_else(|| wrong("it requests a name that is none"))?;
            Target::Name(name, stream.read_u16().await?)
        }
        TUNNEL => return Ok(Request::Tunnel),
        REACH => return Ok(Request::Reach),
        _ => return Err(wrong("it requests a destination of an unknown kind")),
    };
    match to.port() {
        0 => Err(wrong("it requests port 0")),
        _ => Ok(Request::Connection(to, class)),
    }
}

/// Replies whether there is a connection.
///
/// # Errors
/// The stream's.
pub async fn reply(
    stream: &mut (impl AsyncWrite + Unpin),
    outcome: Result<(), Refusal>,
) -> io::Result<()> {
    stream
        .write_u8(outcome.map_or_else(Refusal::code, |()| 0))
        .await
}

/// Reads a reply: whether there is a connection.
///
/// # Errors
/// [`io::ErrorKind::InvalidData`] for a reply that is none.
pub fn read_reply(code: u8) -> io::Result<Result<(), Refusal>> {
    if code == 0 {
        return Ok(Ok(()));
    }
    let known = Refusal::ALL.into_iter().find(|r| r.code() == code);
    known
        .map(Err)
        .ok_or_else(|| wrong("the proxy refuses for an unknown reason"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn now<T>(f: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(f)
    }

    fn round(to: &Target, class: u8) -> Request {
        let mut wire = Vec::new();
        now(request(&mut wire, to, class)).unwrap();
        let mut rest = &wire[..];
        let read = now(read_request(&mut rest)).unwrap();
        assert!(rest.is_empty());
        read
    }

    proptest! {
        #[test]
        fn a_request_is_read(
            ip: IpAddr, name in "[a-zA-Z0-9._-]{1,253}", port in 1u16.., class in 0u8..9,
        ) {
            let canonical = SocketAddr::new(ip.to_canonical(), port);
            let to = Target::Address(SocketAddr::new(ip, port));
            prop_assert_eq!(round(&to, class), Request::Connection(Target::Address(canonical), class));
            let to = Target::Name(HostName::new(&name).unwrap(), port);
            prop_assert_eq!(round(&to, class), Request::Connection(to, class));
        }

        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let read = now(read_request(&mut &bytes[..]));
            let asks = bytes.first() == Some(&VERSION);
            let kind = match bytes.get(1) {
                Some(&CLASS) => 3,
                _ => 1,
            };
            let connects = bytes.len() >= kind + 4 && [NAME, V4, V6].contains(&bytes[kind]);
            let short = [Some(&TUNNEL), Some(&REACH)].contains(&bytes.get(kind));
            let fine = asks && (connects || short);
            match bytes.first() {
                Some(other @ OTHERS..) => prop_assert_eq!(read.ok(), Some(Request::Other(*other))),
                _ => prop_assert!(fine || read.is_err()),
            }
        }
    }

    #[test]
    fn names_that_no_host_has_are_refused() {
        for name in ["", "a b", "ä.example", "a/b", "x\0", &"n".repeat(254)] {
            assert_eq!(HostName::new(name), None, "{name:?}");
            let mut wire = vec![VERSION, NAME, name.len() as u8];
            wire.extend(name.bytes());
            wire.extend([0, 80]);
            assert!(now(read_request(&mut &wire[..])).is_err(), "{name:?}");
        }
    }

    #[test]
    fn replies_are_read() {
        for outcome in [Ok(())].into_iter().chain(Refusal::ALL.map(Err)) {
            let mut wire = Vec::new();
            now(reply(&mut wire, outcome)).unwrap();
            assert_eq!(read_reply(wire[0]).unwrap(), outcome);
            let error = outcome.map_err(io::Error::from).err();
            assert_eq!(error.as_ref().and_then(Refusal::within), outcome.err());
        }
        let unknown = read_reply(31).unwrap_err();
        assert_eq!(unknown.kind(), io::ErrorKind::InvalidData);
    }
}
