//! `announce`: addresses of the proxy that devices are told of (ADD_ADDR, RFC 8684 3.4.1).

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::diagnostic::Problem;
use crate::{Engine, Role};

/// Most addresses: as many as the kernel has connections accept.
const MAX: usize = 8;

/// Checks that devices could connect to these addresses.
pub(super) fn check(addresses: &[IpAddr], role: Role, engines: &[Engine]) -> Result<(), Problem> {
    let of_no_host = |a: &IpAddr| a.is_unspecified() || a.is_multicast() || a.is_loopback();
    let twice = addresses.iter().collect::<BTreeSet<_>>().len() < addresses.len();
    let what = match () {
        () if addresses.is_empty() => return Ok(()),
        () if role == Role::Device => "the proxy announces addresses, a device does not",
        () if !engines.contains(&Engine::Mptcp) => "only the engine \"mptcp\" announces addresses",
        () if addresses.iter().any(of_no_host) => "no device can connect to that address",
        () if twice => "an address is there twice",
        () if addresses.len() > MAX => "a connection takes 8 announced addresses at most",
        () => return Ok(()),
    };
    Err(Problem::at_key(&["announce"], what))
}
