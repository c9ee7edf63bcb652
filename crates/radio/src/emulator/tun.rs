//! TUN devices that exchange super-packets.
#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use thiserror::Error;

use super::vnet::VNET_LEN;

/// The device node of the TUN driver.
pub const DEVICE: &str = "/dev/net/tun";

// linux/if_tun.h; the ioctl numbers are those of the common _IOW encoding
// (all architectures but Alpha, MIPS, PowerPC, SPARC).
const TUNSETIFF: u32 = 0x4004_54ca;
const TUNSETOFFLOAD: u32 = 0x4004_54d0;
const TUNSETVNETHDRSZ: u32 = 0x4004_54d8;
const TUNSETCARRIER: u32 = 0x4004_54e2;
/// Request of the virtual clock's kernel only (`kernel/patches`).
const TUNSETTIMED: u32 = 0x4004_54f0;
/// Length of a virtio-net header and the packet's time behind it.
pub(crate) const TIMED_LEN: usize = 24;
const TUN_F_CSUM: u32 = 0x01;
const TUN_F_TSO4: u32 = 0x02;
const TUN_F_TSO6: u32 = 0x04;
const TUN_F_TSO_ECN: u32 = 0x08;
const TUN_F_USO4: u32 = 0x20;
const TUN_F_USO6: u32 = 0x40;

/// Why a TUN device could not be made.
#[derive(Debug, Error)]
pub enum TunError {
    /// The driver's device node cannot be opened.
    #[error(
        "cannot open {DEVICE}: {0}; load the tun module (modprobe tun), and run as root or with read and write permission on it"
    )]
    Open(io::Error),
    /// The name is empty, too long, or holds a byte that no interface name has.
    #[error("\"{0}\" is no interface name: expected 1 to 15 bytes without '/' and spaces")]
    Name(String),
    /// The kernel refused the device.
    #[error(
        "cannot create the TUN device {name}: {source}; it takes CAP_NET_ADMIN in the network namespace, and a name that is free"
    )]
    Create {
        /// The interface's name.
        name: String,
        /// The kernel's reason.
        source: io::Error,
    },
    /// The kernel does not do what super-packets take.
    #[error(
        "cannot switch on {what} of the TUN device {name}: {source}; it takes Linux 4.20 or later"
    )]
    Feature {
        /// Feature that was being switched on.
        what: &'static str,
        /// The interface's name.
        name: String,
        /// The kernel's reason.
        source: io::Error,
    },
}

/// A TUN device; it lasts as long as its file descriptor, or a copy of it, is open.
#[derive(Debug)]
pub struct Tun {
    /// The descriptor that packets are read from and written to; non-blocking,
    /// closed on exec.
    pub fd: OwnedFd,
    /// Whether UDP super-packets come through it (Linux 6.2 and later); without,
    /// the kernel cuts them up before.
    pub udp_segmentation: bool,
}

/// Creates the TUN device `name` in the calling thread's network namespace.
/// The descriptor works from any namespace afterwards. The interface is down
/// and has no address yet; a longer transmit queue than the default of 500
/// (5000) keeps the kernel from dropping bursts before they are read.
///
/// # Errors
/// See [`TunError`].
pub fn create(name: &str) -> Result<Tun, TunError> {
    let valid = !name.is_empty()
        && name.len() < libc::IFNAMSIZ
        && name.bytes().all(|b| b.is_ascii_graphic() && b != b'/');
    if !valid {
        return Err(TunError::Name(name.to_owned()));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open(DEVICE)
        .map_err(TunError::Open)?;

    // SAFETY: an all-zero ifreq is a valid value of this plain C struct.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags =
        (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which outlives the call.
    let rc = unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) };
    if rc != 0 {
        return Err(TunError::Create {
            name: name.to_owned(),
            source: io::Error::last_os_error(),
        });
    }
    let fd = OwnedFd::from(file);
    let feature = |what| {
        let name = name.to_owned();
        move |source| TunError::Feature { what, name, source }
    };
    pass_int(&fd, TUNSETVNETHDRSZ, VNET_LEN as libc::c_int)
        .map_err(feature("the virtio-net header"))?;
    let tcp = TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN;
    let udp_segmentation = pass_value(&fd, TUNSETOFFLOAD, tcp | TUN_F_USO4 | TUN_F_USO6).is_ok();
    if !udp_segmentation {
        pass_value(&fd, TUNSETOFFLOAD, tcp).map_err(feature("offloads"))?;
    }
    Ok(Tun {
        fd,
        udp_segmentation,
    })
}

/// Gives or takes the carrier of the TUN device behind `fd`: what the device's
/// side sees as a cable pulled or a radio lost.
///
/// # Errors
/// The kernel's, if `fd` is no TUN device or older than Linux 4.20.
pub fn set_carrier(fd: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    pass_int(&fd, TUNSETCARRIER, libc::c_int::from(on))
}

/// Enables the exchange of times with each packet: when it was sent, and when it is to
/// be received. They stand behind the virtio-net header, [`TIMED_LEN`] in all.
pub(crate) fn set_timed(fd: BorrowedFd<'_>) -> io::Result<()> {
    pass_int(&fd, TUNSETTIMED, 1)?;
    pass_int(&fd, TUNSETVNETHDRSZ, TIMED_LEN as libc::c_int)
}

/// An ioctl that reads an int from memory.
fn pass_int(fd: &impl AsRawFd, request: u32, value: libc::c_int) -> io::Result<()> {
    // SAFETY: the callers' requests read one int, which outlives the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, &raw const value) })
}

/// An ioctl whose argument is the value itself.
fn pass_value(fd: &impl AsRawFd, request: u32, value: u32) -> io::Result<()> {
    // SAFETY: TUNSETOFFLOAD takes its flags as the argument and touches no memory.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request as _, libc::c_ulong::from(value)) })
}

fn check(rc: libc::c_int) -> io::Result<()> {
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_names_are_refused_before_anything_is_opened() {
        for bad in ["", "a/b", "a b", "abcdefghijklmnop", "\u{e9}t\u{e9}"] {
            assert!(matches!(create(bad), Err(TunError::Name(_))), "{bad:?}");
        }
    }
}
