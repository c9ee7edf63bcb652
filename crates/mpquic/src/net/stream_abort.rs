//! How a stream ends before all of it was sent.

use std::io;

use noq_proto::VarInt;

/// Error code of streams that a program drops without a word of why.
pub(super) const DROPPED: u64 = 1;

/// A code of a program as QUIC and the lane have it: 2^62 - 1 where it is larger.
pub(super) fn code(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

/// How a stream has ended before all of it was sent. The [`io::Error`] of a read or a write
/// holds it ([`io::Error::downcast`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Aborted {
    /// The peer has reset it: what was read is not all ([`io::ErrorKind::ConnectionReset`]).
    #[error("the peer has reset the stream (code {0})")]
    Reset(u64),
    /// The peer has stopped it: what was written is not read
    /// ([`io::ErrorKind::BrokenPipe`]).
    #[error("the peer has stopped the stream (code {0})")]
    Stopped(u64),
    /// This end has reset or stopped it, or finished it and writes more
    /// ([`io::ErrorKind::NotConnected`]).
    #[error("this end has ended the stream")]
    Here,
}

impl From<Aborted> for io::Error {
    fn from(e: Aborted) -> Self {
        let kind = match e {
            Aborted::Reset(_) => io::ErrorKind::ConnectionReset,
            Aborted::Stopped(_) => io::ErrorKind::BrokenPipe,
            Aborted::Here => io::ErrorKind::NotConnected,
        };
        Self::new(kind, e)
    }
}
