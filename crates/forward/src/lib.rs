//! Connections of unchanged programs: from an inbound at the device, by a carrier, to an egress.
//!
//! ```text
//! program -> inbound {port, socks, tproxy} -> carrier {mpquic} -> session -> egress at the proxy -> destination
//!                                          {mptcp} -> Multipath TCP -> converter at the proxy
//! ```
//!
//! Over Multipath QUIC each takes one stream of the session. It begins with where to (see
//! [`wire`]), and what the program writes follows at once; the proxy replies whether it is connected
//! before the first byte that comes back.
//!
//! A connection ends at one end as it ends at the other: the end of a direction (FIN) as the
//! end of that direction, while the other goes on; anything else (a reset, the loss of the
//! session, the end of either daemon) as a reset of both.

mod answers;
pub mod carrier;
mod conntrack;
pub mod convert;
mod dial;
pub mod divert;
mod egress;
pub mod inbound;
mod ipv6;
pub mod nft;
mod reach;
mod relay;
mod tcp;
pub mod tunnel;
pub mod wire;

pub use answers::Answers;
pub use carrier::{Carrier, Connection};
pub use egress::{Allowed, Egress, Other, serve};
pub use reach::Reach;
pub use wire::{Refusal, Target};
