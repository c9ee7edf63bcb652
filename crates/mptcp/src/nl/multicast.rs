//! Messages that the kernel sends to all who have joined a netlink multicast group.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::{Socket, SocketAddr};
use tokio::io::unix::AsyncFd;

use crate::error::{Error, Result};

/// A subscription in the network namespace of the thread that opens it. It never blocks.
#[derive(Debug)]
pub(crate) struct Multicast {
    socket: Socket,
    buffer: Vec<u8>,
    /// Messages that it is about, as errors call them.
    what: &'static str,
}

/// Result of [`Multicast::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// Messages were given to the caller.
    Messages,
    /// The kernel's queue overflowed: some were lost.
    Lost,
    /// Nothing for now.
    Nothing,
}

impl Multicast {
    /// Joins groups of a netlink protocol.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub(crate) fn join(protocol: isize, groups: &[u32], what: &'static str) -> Result<Self> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            for group in groups {
                socket.add_membership(*group)?;
            }
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        Ok(Self {
            socket: open().map_err(|e| Error::io(format!("subscribe to {what}"), e))?,
            buffer: Vec::with_capacity(32 * 1024),
            what,
        })
    }

    /// Gives each message that has arrived, without netlink's header, to `each`.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) fn read(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<Read> {
        self.buffer.clear();
        match self.socket.recv(&mut self.buffer, 0) {
            Ok(_) => {}
            Err(e) => {
                return match (e.kind(), e.raw_os_error()) {
                    (io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted, _) => {
                        Ok(Read::Nothing)
                    }
                    (_, Some(libc::ENOBUFS)) => Ok(Read::Lost),
                    _ => Err(Error::io(format!("read {}", self.what), e)),
                };
            }
        }
        let mut rest = &self.buffer[..];
        while let Ok(message) = NetlinkBuffer::new_checked(rest) {
            each(message.payload());
            let taken = (message.length() as usize).next_multiple_of(4);
            rest = rest.get(taken..).unwrap_or_default();
        }
        Ok(Read::Messages)
    }

    /// Lets tokio wait for messages; inside a runtime with I/O.
    ///
    /// # Errors
    /// The runtime cannot wait for the descriptor.
    pub(crate) fn waiting(self) -> Result<Waiting> {
        let what = self.what;
        let ready =
            crate::sockopt::wait_for(self).map_err(|e| Error::io(format!("wait for {what}"), e))?;
        Ok(Waiting(ready))
    }
}

impl AsRawFd for Multicast {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Subscription that waits without blocking the thread.
#[derive(Debug)]
pub(crate) struct Waiting(AsyncFd<Multicast>);

impl Waiting {
    /// Waits for messages, or that some were lost, and gives them to `each`.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) async fn next(&mut self, each: &mut (dyn FnMut(&[u8]) + Send)) -> Result<Read> {
        loop {
            let what = self.0.get_ref().what;
            let mut ready = self
                .0
                .readable_mut()
                .await
                .map_err(|e| Error::io(format!("wait for {what}"), e))?;
            match ready.get_inner_mut().read(each)? {
                Read::Nothing => ready.clear_ready(),
                read => return Ok(read),
            }
        }
    }
}
