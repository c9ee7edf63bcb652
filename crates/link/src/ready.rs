//! Waiting for a netlink socket under tokio. The only unsafe code of this crate.

use std::io;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::events::Inner;

/// Lets the runtime wait until changes can be read.
pub(crate) fn wait_for(socket: Inner) -> io::Result<AsyncFd<Inner>> {
    // SAFETY: an `Inner` owns one open socket from when it is made until it is
    // dropped, and always names that one.
    let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
    Ok(registered?)
}
