//! Waiting for a netlink socket under tokio.
#![allow(unsafe_code)]

use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::multicast::Multicast;

/// Lets the runtime wait until changes can be read.
pub(crate) fn wait_for(socket: Multicast) -> io::Result<AsyncFd<Multicast>> {
    // SAFETY: a `Multicast` owns one open socket from when it is made until it is
    // dropped, and always names that one.
    let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
    Ok(registered?)
}
