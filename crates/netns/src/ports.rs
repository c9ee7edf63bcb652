//! The ends of a link that the emulator reads and writes: a TUN device's
//! descriptor, or a packet socket on the far end of a veth pair.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use anyhow::Result;
use braid_radio::emulator::{PortConfig, PortKind, tun, veth};

use crate::error::LabError;

/// One end of an access's link, for the emulator.
#[derive(Debug)]
pub struct Port {
    /// Kind of the descriptor, and so how packets are framed on it.
    pub kind: PortKind,
    fd: OwnedFd,
}

impl Port {
    /// Returns the configuration for an emulator that inherits this port.
    pub fn config(&self) -> PortConfig {
        PortConfig {
            fd: self.fd.as_raw_fd(),
            kind: self.kind.clone(),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Whether a topology can use TUN here.
///
/// # Errors
/// [`LabError::Missing`], with the line that enables it.
pub fn tun_usable() -> Result<(), LabError> {
    let opened = OpenOptions::new().read(true).write(true).open(tun::DEVICE);
    opened.map(drop).map_err(|e| tun_missing(&e))
}

fn tun_missing(error: &io::Error) -> LabError {
    let fix = match error.kind() {
        io::ErrorKind::PermissionDenied => "sudo chmod 0666 /dev/net/tun",
        _ => {
            "sudo modprobe tun && sudo sh -c 'mkdir -p /dev/net; [ -e /dev/net/tun ] || mknod -m 0666 /dev/net/tun c 10 200'"
        }
    };
    LabError::missing(format!("open {}: {error}", tun::DEVICE), fix)
}

/// Makes a TUN device in the calling thread's namespace. It exists as long as
/// the port does.
pub(super) fn open_tun(name: &str) -> Result<Port> {
    let device = tun::create(name).map_err(|e| match e {
        tun::TunError::Open(e) => tun_missing(&e).into(),
        e => anyhow::Error::from(e),
    })?;
    Ok(Port {
        kind: PortKind::Tun,
        fd: device.fd,
    })
}

/// Opens a packet socket on an interface of the calling thread's namespace,
/// whose veth peer has the hardware address `peer`.
pub(super) fn open_packet(ifindex: u32, peer: [u8; 6]) -> Result<Port> {
    let peer_mac = peer.map(|byte| format!("{byte:02x}")).join(":");
    Ok(Port {
        kind: PortKind::Packet { peer_mac },
        fd: veth::open(ifindex)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tun_that_is_not_there_is_missing_and_says_what_enables_it() {
        for (kind, fix) in [
            (
                io::ErrorKind::PermissionDenied,
                "sudo chmod 0666 /dev/net/tun",
            ),
            (io::ErrorKind::NotFound, "sudo modprobe tun"),
        ] {
            let error = tun_missing(&kind.into());
            assert_eq!(error.exit_code(), 3);
            assert!(
                error.to_string().contains("open /dev/net/tun") && error.to_string().contains(fix),
                "{error}"
            );
        }
    }
}
