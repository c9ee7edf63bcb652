//! Sockets and a clock for [`Host`](crate::Host): what programs use.
//!
//! A [`Device`] connects over all its accesses, a [`Proxy`] takes connections in; both
//! give [`Session`]s, with [`Stream`]s and messages. One task drives all sessions of an
//! end; everything here needs a tokio runtime with I/O.

mod clock;
mod core;
mod device;
mod driver;
mod follow;
mod live;
mod proxy;
mod read;
#[cfg(test)]
mod rehearsal;
mod session;
mod session_end;
mod socket;
mod stream;
mod stream_abort;
mod timer;
mod write;

pub use device::{Device, Keeper, Link};
pub use live::{PathChange, PathEvent};
pub use proxy::Proxy;
pub use read::ReadHalf;
pub use session::Session;
pub use session_end::Ended;
pub use stream::Stream;
pub use stream_abort::Aborted;
pub use write::WriteHalf;
