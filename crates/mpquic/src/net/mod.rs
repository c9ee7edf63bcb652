//! Sockets and a clock for [`Host`](crate::Host): what programs use.
//!
//! A [`Device`] connects over all its accesses, a [`Proxy`] takes connections in; both
//! give [`Session`]s, with [`Stream`]s and messages. One task drives all sessions of an
//! end; everything here needs a tokio runtime with I/O.

mod aborted;
mod clock;
mod core;
mod device;
mod driver;
mod ended;
mod follow;
mod live;
mod proxy;
mod read;
#[cfg(test)]
mod rehearsal;
mod session;
mod socket;
mod stream;
mod timer;
mod write;

pub use aborted::Aborted;
pub use device::{Device, Keeper};
pub use ended::Ended;
pub use live::PathChange;
pub use proxy::Proxy;
pub use read::ReadHalf;
pub use session::Session;
pub use stream::Stream;
pub use write::WriteHalf;
