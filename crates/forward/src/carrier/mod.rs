//! Carriers: how a connection of a program gets from the device to its destination.
//!
//! A carrier is one file here, with a struct that implements [`Carrier`].

mod fallback;
mod mpquic;
mod mptcp;

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::wire::Target;
pub use fallback::Fallback;
pub use mpquic::{OverSession, next_session};
pub use mptcp::OverConverter;

/// Connection to a destination: bytes both ways, each of which ends by itself.
///
/// A connection that is dropped before [`Connection::finish`] is reset.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {
    /// Waits until the destination is connected. Bytes may be written before.
    ///
    /// # Errors
    /// Why it is not; a [`Refusal`](crate::wire::Refusal) where the proxy said so.
    fn connected(&mut self) -> BoxFuture<'_, io::Result<()>>;

    /// Waits until the connection fails, also where nobody reads or writes. Returns the error.
    fn failed(&self) -> BoxFuture<'static, io::Error>;

    /// Notes that both directions have ended well: it is closed without a reset.
    ///
    /// # Errors
    /// The socket's.
    fn finish(&mut self) -> io::Result<()>;

    /// Resets both directions.
    fn reset(&mut self);
}

/// Way from the device to destinations.
pub trait Carrier: Send + Sync {
    /// Returns the way for connections of a class, by its number; this one is for the default.
    fn in_class(&self, class: u8) -> Arc<dyn Carrier>;

    /// Begins a connection, which may not be connected yet ([`Connection::connected`]).
    ///
    /// # Errors
    /// The reason why it cannot begin.
    fn connect(&self, to: &Target) -> BoxFuture<'static, io::Result<Box<dyn Connection>>>;
}
