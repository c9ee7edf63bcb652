//! MPTCP sockets: making them, choosing their congestion control, asking them.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::error::{Error, Result};
use crate::sockopt;
use crate::support;
pub use crate::tcp_info::{MptcpInfo, TcpInfo};

/// A stream socket of the family of `address`, MPTCP or plain TCP; it is neither
/// bound nor connected.
///
/// # Errors
/// [`Error::Lacking`] if the kernel has no MPTCP or has it switched off.
pub fn stream(address: &SocketAddr, mptcp: bool) -> Result<Socket> {
    let domain = Domain::for_address(*address);
    let protocol = if mptcp {
        Protocol::MPTCP
    } else {
        Protocol::TCP
    };
    Socket::new(domain, Type::STREAM, Some(protocol)).map_err(|e| {
        match (mptcp, e.raw_os_error()) {
            // ENOPROTOOPT: net.mptcp.enabled is 0; the others: not built in.
            (true, Some(libc::ENOPROTOOPT)) => support::mptcp_disabled(),
            (true, Some(libc::EPROTONOSUPPORT | libc::EINVAL)) => support::no_mptcp(),
            _ => Error::io(format!("open a stream socket for {address}"), e),
        }
    })
}

/// Sets the congestion control of a socket; of an MPTCP socket, that of all its
/// subflows, those joined later too.
///
/// # Errors
/// [`Error::CongestionControl`], which names those that exist.
pub fn set_congestion_control<S: AsFd>(socket: &S, name: &str) -> Result<()> {
    let set = SockRef::from(socket).set_tcp_congestion(name.as_bytes());
    set.map_err(|e| match e.raw_os_error() {
        // EINVAL: the empty name.
        Some(libc::ENOENT | libc::EINVAL) => support::no_congestion_control(name),
        // The socket's namespace may only use what net.ipv4.tcp_allowed_congestion_control lists.
        _ => Error::io(
            format!("set the congestion control \"{name}\" on a socket"),
            e,
        ),
    })
}

/// Whether sockets of the calling thread may have the congestion control `name`: some are for
/// CAP_NET_ADMIN alone. For root the kernel loads its module where that takes one.
///
/// # Errors
/// They may not, or there is none of that name: as [`set_congestion_control`].
pub fn may_have_congestion_control(name: &str) -> Result<()> {
    let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    // Of MPTCP, one that leads nowhere yet is asked for nothing.
    set_congestion_control(&stream(&any, false)?, name)
}

/// The congestion control of a socket.
///
/// # Errors
/// The kernel's refusal.
pub fn congestion_control<S: AsFd>(socket: &S) -> Result<String> {
    let name = SockRef::from(socket)
        .tcp_congestion()
        .map_err(|e| Error::io("read a socket's congestion control", e))?;
    Ok(crate::nl::attr::text(&name))
}

/// Asks an MPTCP socket how it is.
///
/// # Errors
/// The socket is not an MPTCP socket (`EOPNOTSUPP`), for example one that was
/// accepted from a peer without MPTCP.
pub fn mptcp_info<S: AsFd>(socket: &S) -> Result<MptcpInfo> {
    let mut raw = [0; sockopt::MPTCP_INFO_LEN];
    let n = sockopt::get(
        socket.as_fd(),
        sockopt::SOL_MPTCP,
        sockopt::MPTCP_INFO,
        &mut raw,
    )
    .map_err(|e| Error::io("read MPTCP_INFO of a socket", e))?;
    Ok(MptcpInfo::parse(&raw[..n.min(raw.len())]))
}

/// Asks a TCP socket (not an MPTCP one) how it is.
///
/// # Errors
/// The kernel's refusal.
pub fn tcp_info<S: AsFd>(socket: &S) -> Result<TcpInfo> {
    let mut raw = [0; sockopt::TCP_INFO_LEN];
    let n = sockopt::get(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)
        .map_err(|e| Error::io("read TCP_INFO of a socket", e))?;
    Ok(TcpInfo::parse(&raw[..n.min(raw.len())]))
}

/// Makes a socket send its first data with its first packet (TCP Fast Open, RFC 7413 4.1), where it has
/// a cookie of the destination; it gets one with the first connection.
///
/// # Errors
/// The kernel's refusal.
pub fn set_fast_open_connect<S: AsFd>(socket: &S) -> Result<()> {
    sockopt::set_int(
        socket.as_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_FASTOPEN_CONNECT,
        1,
    )
    .map_err(|e| Error::io("set TCP_FASTOPEN_CONNECT on a socket", e))
}

/// Makes a listener take data in first packets (TCP Fast Open), of so many connections at a time. It does
/// where bit 2 of `net.ipv4.tcp_fastopen` is set.
///
/// # Errors
/// The kernel's refusal.
pub fn set_fast_open<S: AsFd>(listener: &S, queue: u32) -> Result<()> {
    let queue = i32::try_from(queue).unwrap_or(i32::MAX);
    sockopt::set_int(
        listener.as_fd(),
        libc::IPPROTO_TCP,
        libc::TCP_FASTOPEN,
        queue,
    )
    .map_err(|e| Error::io("set TCP_FASTOPEN on a listener", e))
}

/// Protocol that a connection really speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnTheWire {
    /// MPTCP.
    Mptcp,
    /// TCP, after MPTCP was tried or allowed: the peer or a middlebox does not
    /// do it (RFC 8684 3.7).
    Fallback,
}

/// Whether a connected or accepted stream speaks MPTCP or fell back to TCP. A
/// listener with MPTCP hands out plain TCP sockets for peers without it; they
/// count as fallback.
///
/// # Errors
/// The kernel's refusal.
pub fn on_the_wire<S: AsFd>(socket: &S) -> Result<OnTheWire> {
    match mptcp_info(socket) {
        Ok(i) if i.is_fallback() => Ok(OnTheWire::Fallback),
        Ok(_) => Ok(OnTheWire::Mptcp),
        Err(Error::Io { source, .. })
            if matches!(
                source.raw_os_error(),
                Some(libc::EOPNOTSUPP | libc::ENOPROTOOPT)
            ) =>
        {
            Ok(OnTheWire::Fallback)
        }
        Err(e) => Err(e),
    }
}

/// One subflow of [`full_info`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubflowInfo {
    /// Counts up from 1 in the order of creation, never used again.
    pub id: u32,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// How it fares.
    pub tcp: TcpInfo,
}

/// State of a connection from `MPTCP_FULL_INFO` (Linux 6.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FullInfo {
    /// The connection as a whole.
    pub mptcp: MptcpInfo,
    /// Its subflows.
    pub subflows: Vec<SubflowInfo>,
}

/// Asks an MPTCP socket how it and its subflows are, in one call.
///
/// # Errors
/// The kernel's refusal: not an MPTCP socket, or a kernel before 6.6.
pub fn full_info<S: AsFd>(socket: &S) -> Result<FullInfo> {
    // The kernel allows 8 beyond the first, and those about to close.
    const ROOM: usize = 32;
    let raw = sockopt::full_info(socket.as_fd(), ROOM)
        .map_err(|e| Error::io("read MPTCP_FULL_INFO of a socket", e))?;
    let subflows = raw
        .subflows
        .iter()
        .filter_map(|(sub, tcp)| {
            Some(SubflowInfo {
                id: u32::from_ne_bytes(*sub.first_chunk()?),
                local: sockaddr(sub.get(8..136)?)?,
                remote: sockaddr(sub.get(136..264)?)?,
                tcp: TcpInfo::parse(tcp),
            })
        })
        .collect();
    Ok(FullInfo {
        mptcp: MptcpInfo::parse(&raw.mptcp),
        subflows,
    })
}

/// A `struct sockaddr_in` or `struct sockaddr_in6`.
fn sockaddr(b: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(*b.first_chunk()?);
    let port = u16::from_be_bytes(*b.get(2..)?.first_chunk()?);
    let ip: IpAddr = match i32::from(family) {
        libc::AF_INET => Ipv4Addr::from(*b.get(4..)?.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*b.get(8..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Connects from `local` (port 0 for any) to `remote`, waiting until it is done.
///
/// # Errors
/// As [`stream`] and [`set_congestion_control`]; no route, refused.
pub fn connect(
    local: Option<SocketAddr>,
    remote: SocketAddr,
    mptcp: bool,
    congestion_control: Option<&str>,
) -> Result<std::net::TcpStream> {
    let socket = stream(&remote, mptcp)?;
    if let Some(cc) = congestion_control {
        set_congestion_control(&socket, cc)?;
    }
    if let Some(local) = local {
        socket
            .bind(&local.into())
            .map_err(|e| Error::io(format!("bind a socket to {local}"), e))?;
    }
    socket
        .connect(&remote.into())
        .map_err(|e| Error::io(format!("connect to {remote}"), e))?;
    Ok(socket.into())
}

/// Listens on `address`; with `mptcp`, for both MPTCP and plain TCP peers.
///
/// # Errors
/// As [`stream`] and [`set_congestion_control`]; the address is in use or not here.
pub fn listen(
    address: SocketAddr,
    mptcp: bool,
    congestion_control: Option<&str>,
) -> Result<std::net::TcpListener> {
    let socket = stream(&address, mptcp)?;
    let attempted = || format!("listen on {address}");
    let io = |e: io::Error| Error::io(attempted(), e);
    socket.set_reuse_address(true).map_err(io)?;
    if let Some(cc) = congestion_control {
        set_congestion_control(&socket, cc)?;
    }
    socket.bind(&address.into()).map_err(io)?;
    socket.listen(128).map_err(io)?;
    Ok(socket.into())
}
