//! The first bytes of a stream.
//!
//! The device asks: one byte of version (1), one of family (4 or 6), the address (4 or 16
//! bytes) and the port (2, network order). The proxy answers one byte: 0 where it is
//! connected, else a [`Refusal`]. A first byte that is no version, 32 or more, is left to others.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const VERSION: u8 = 1;

/// Least first byte of a stream that is none of this protocol.
const OTHERS: u8 = 32;

/// Request at the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Connection to this address.
    Connection(SocketAddr),
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
}

impl Refusal {
    const ALL: [Self; 3] = [Self::Forbidden, Self::Refused, Self::Unreachable];

    fn code(self) -> u8 {
        match self {
            Self::Forbidden => 1,
            Self::Refused => 2,
            Self::Unreachable => 3,
        }
    }

    pub(crate) fn of(e: &io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            _ => Self::Unreachable,
        }
    }
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Asks for a connection to `to`.
///
/// # Errors
/// The stream's.
pub async fn ask(stream: &mut (impl AsyncWrite + Unpin), to: SocketAddr) -> io::Result<()> {
    let mut request = vec![VERSION];
    match to.ip() {
        IpAddr::V4(ip) => {
            request.push(4);
            request.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            request.push(6);
            request.extend(ip.octets());
        }
    }
    request.extend(to.port().to_be_bytes());
    stream.write_all(&request).await
}

/// Reads what is asked for.
///
/// # Errors
/// The stream's; [`io::ErrorKind::InvalidData`] where it is another version, or nothing
/// that can be connected to.
pub async fn asked(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Asked> {
    match stream.read_u8().await? {
        VERSION => {}
        other @ OTHERS.. => return Ok(Asked::Other(other)),
        _ => return Err(wrong("it forwards by another version of this protocol")),
    }
    let ip: IpAddr = match stream.read_u8().await? {
        4 => Ipv4Addr::from_bits(stream.read_u32().await?).into(),
        6 => Ipv6Addr::from_bits(stream.read_u128().await?).into(),
        _ => return Err(wrong("it asks for an address of an unknown family")),
    };
    let to = SocketAddr::new(ip.to_canonical(), stream.read_u16().await?);
    match to.port() {
        0 => Err(wrong("it asks for port 0")),
        _ => Ok(Asked::Connection(to)),
    }
}

/// Says whether there is a connection.
///
/// # Errors
/// The stream's.
pub async fn answer(
    stream: &mut (impl AsyncWrite + Unpin),
    outcome: Result<(), Refusal>,
) -> io::Result<()> {
    stream
        .write_u8(outcome.map_or_else(Refusal::code, |()| 0))
        .await
}

/// Reads whether there is one.
///
/// # Errors
/// The stream's; [`io::ErrorKind::InvalidData`] for an answer that is none.
pub async fn answered(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Result<(), Refusal>> {
    let code = stream.read_u8().await?;
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

    proptest! {
        #[test]
        fn what_is_asked_is_read(ip: IpAddr, port in 1u16..) {
            let mut wire = Vec::new();
            now(ask(&mut wire, SocketAddr::new(ip, port))).unwrap();
            let mut rest = &wire[..];
            let read = now(asked(&mut rest)).unwrap();
            let to = SocketAddr::new(ip.to_canonical(), port);
            prop_assert_eq!(read, Asked::Connection(to));
            prop_assert!(rest.is_empty());
        }

        #[test]
        fn garbage_is_refused(bytes in prop::collection::vec(any::<u8>(), 0..30)) {
            let read = now(asked(&mut &bytes[..]));
            let fine = bytes.len() >= 8 && bytes[0] == 1 && (bytes[1] == 4 || bytes[1] == 6);
            match bytes.first() {
                Some(other @ OTHERS..) => prop_assert_eq!(read.ok(), Some(Asked::Other(*other))),
                _ => prop_assert!(fine || read.is_err()),
            }
            let _ = now(answered(&mut &bytes[..]));
        }
    }

    #[test]
    fn answers_are_read() {
        for outcome in [Ok(())].into_iter().chain(Refusal::ALL.map(Err)) {
            let mut wire = Vec::new();
            now(answer(&mut wire, outcome)).unwrap();
            assert_eq!(now(answered(&mut &wire[..])).unwrap(), outcome);
        }
    }
}
