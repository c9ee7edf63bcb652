//! Messages that the kernel sends to all who have joined a netlink multicast group.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use netlink_packet_core::NetlinkBuffer;
use netlink_sys::{Socket, SocketAddr};
use tokio::io::unix::AsyncFd;

use crate::{Error, Result, ready};

/// Bytes of a datagram at most; the kernel fills 32 KiB of one.
const BUFFER: usize = 64 * 1024;

/// A subscription in the network namespace of the thread that opens it. It never blocks.
#[derive(Debug)]
pub struct Multicast {
    socket: Socket,
    buffer: Vec<u8>,
    /// Messages that it is about, as errors call them.
    what: &'static str,
}

/// Result of [`Multicast::read`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// Messages were given to the caller.
    Messages,
    /// The kernel's queue overflowed: some were lost.
    Lost,
    /// Nothing for now.
    Nothing,
}

impl Multicast {
    /// Joins groups of a netlink protocol. `queue` is the size of the kernel's queue, bytes, if
    /// it is not to be the machine's default; the kernel has a least one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn join(
        protocol: isize,
        groups: &[u32],
        queue: Option<usize>,
        what: &'static str,
    ) -> Result<Self> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(protocol)?;
            socket.bind(&SocketAddr::new(0, 0))?;
            if let Some(bytes) = queue {
                socket.set_rx_buf_sz(i32::try_from(bytes).unwrap_or(i32::MAX))?;
            }
            for group in groups {
                socket.add_membership(*group)?;
            }
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        Ok(Self {
            socket: open().map_err(|e| Error::new(format!("subscribe to {what}"), e))?,
            buffer: Vec::with_capacity(BUFFER),
            what,
        })
    }

    /// Gives each message of a datagram that has arrived to `each`: its type, and what stands
    /// behind netlink's header.
    ///
    /// # Errors
    /// The socket failed.
    pub fn read(&mut self, each: &mut dyn FnMut(u16, &[u8])) -> Result<Read> {
        loop {
            self.buffer.clear();
            match self.socket.recv(&mut self.buffer, 0) {
                Ok(_) => {
                    messages(&self.buffer, each);
                    return Ok(Read::Messages);
                }
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => return Ok(Read::Lost),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Read::Nothing),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::new(format!("read {}", self.what), e)),
            }
        }
    }

    /// Lets tokio wait for messages; inside a runtime with I/O.
    ///
    /// # Errors
    /// The runtime cannot wait for the descriptor.
    pub fn waiting(self) -> Result<Waiting> {
        let what = self.what;
        let ready = ready::wait_for(self).map_err(|e| failed(what, e))?;
        Ok(Waiting(ready))
    }
}

/// Gives each message of a datagram to `each`.
pub(crate) fn messages(datagram: &[u8], each: &mut dyn FnMut(u16, &[u8])) {
    let mut rest = datagram;
    while let Ok(message) = NetlinkBuffer::new_checked(rest) {
        each(message.message_type(), message.payload());
        let taken = (message.length() as usize).next_multiple_of(4);
        rest = rest.get(taken..).unwrap_or_default();
    }
}

fn failed(what: &str, e: io::Error) -> Error {
    Error::new(format!("wait for {what}"), e)
}

impl AsRawFd for Multicast {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

/// Subscription that waits without blocking the thread.
#[derive(Debug)]
pub struct Waiting(AsyncFd<Multicast>);

impl Waiting {
    /// Waits for messages, or that some were lost, and gives them to `each`.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn next(&mut self, each: &mut (dyn FnMut(u16, &[u8]) + Send)) -> Result<Read> {
        loop {
            let what = self.0.get_ref().what;
            let mut ready = self.0.readable_mut().await.map_err(|e| failed(what, e))?;
            match ready.get_inner_mut().read(each)? {
                Read::Nothing => ready.clear_ready(),
                read => return Ok(read),
            }
        }
    }

    /// Waits as [`Self::next`], and takes what else has arrived until then; returns whether some
    /// were lost.
    ///
    /// # Errors
    /// The socket failed.
    pub async fn drain(&mut self, each: &mut (dyn FnMut(u16, &[u8]) + Send)) -> Result<bool> {
        let mut lost = self.next(each).await? == Read::Lost;
        loop {
            match self.0.get_mut().read(each)? {
                Read::Messages => {}
                Read::Lost => lost = true,
                Read::Nothing => return Ok(lost),
            }
        }
    }
}
