//! Where super-packets come from and go to.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::uio::writev;
use nix::unistd::{read, write};

use super::vnet::Framing;
use super::{tun, veth};

/// One end of a path: a TUN device or a packet socket, non-blocking.
#[derive(Debug)]
pub(crate) struct Port {
    fd: OwnedFd,
    framing: Framing,
}

/// Result of an attempt to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// This many bytes.
    Bytes(usize),
    /// Nothing there now.
    Empty,
    /// The device is gone for good.
    Gone(Errno),
}

impl Read {
    /// Converts the kernel's answer to a read.
    pub(crate) fn from_result(result: nix::Result<usize>) -> Self {
        match result {
            Ok(0) => Self::Gone(Errno::ENODEV),
            Ok(n) => Self::Bytes(n),
            // A packet socket says once that its interface went down and
            // works on when that is up again.
            Err(
                Errno::EAGAIN
                | Errno::EINTR
                | Errno::ENETDOWN
                | Errno::EIO
                | Errno::ENOBUFS
                | Errno::ENOMEM,
            ) => Self::Empty,
            Err(e) => Self::Gone(e),
        }
    }
}

impl Port {
    pub(crate) fn new(fd: OwnedFd, framing: Framing) -> Self {
        Self { fd, framing }
    }

    pub(crate) fn framing(&self) -> Framing {
        self.framing
    }

    /// Reads one super-packet with its virtio-net header.
    pub(crate) fn read(&self, buf: &mut [u8]) -> Read {
        loop {
            match read(&self.fd, buf) {
                Err(Errno::EINTR) => {}
                result => return Read::from_result(result),
            }
        }
    }

    /// Writes a super-packet as it was read.
    pub(crate) fn write(&self, packet: &[u8]) -> nix::Result<()> {
        retry(|| write(&self.fd, packet))
    }

    /// Writes a super-packet of new headers and a payload.
    pub(crate) fn write_parts(&self, headers: &[u8], payload: &[u8]) -> nix::Result<()> {
        retry(|| writev(&self.fd, &[IoSlice::new(headers), IoSlice::new(payload)]))
    }

    /// Gives or takes the carrier that this end's host sees.
    pub(crate) fn set_carrier(&self, on: bool) -> io::Result<()> {
        match self.framing {
            Framing::Ip => tun::set_carrier(self.fd.as_fd(), on),
            Framing::Ethernet { .. } => veth::set_up(self.fd.as_fd(), on),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn retry(mut f: impl FnMut() -> nix::Result<usize>) -> nix::Result<()> {
    loop {
        return match f() {
            Ok(_) => Ok(()),
            Err(Errno::EINTR) => continue,
            Err(e) => Err(e),
        };
    }
}
