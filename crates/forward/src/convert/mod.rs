//! Transport converter (RFC 8803): connections of programs over Multipath TCP to the proxy, which
//! makes one of TCP to the destination of each.
//!
//! ```text
//! program -> inbound -> Multipath TCP, all accesses -> converter at the proxy -> TCP -> destination
//! ```
//!
//! The device puts the destination and a cookie in front of what the program writes. The converter
//! answers with a header in front of what comes back. Neither is encrypted: whoever sees a packet can
//! read the cookie, so that the converter also goes by the devices' addresses where these are known.
//!
//! This is the steering functionality MPTCP of 3GPP's ATSSS (TS 23.501 5.32.6.2.1), whose proxy has the
//! type "transport converter".

mod cookie;
mod fast_open;
mod message;
mod proxy;
mod request;

pub use cookie::Cookie;
pub use proxy::{Converter, Settings};
pub(crate) use request::{Converted, connect};
