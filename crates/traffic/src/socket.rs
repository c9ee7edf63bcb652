//! Sockets as the specification asks for, without blocking.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use braid_core::Time;
use braid_mptcp::socket::{set_congestion_control, stream};
use nix::errno::Errno;
use nix::poll::PollFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use super::clock;
use super::error::{Result, TrafficError};
use super::facts::Facts;
use super::session::Env;
use super::spec::{TrafficSpec, Transport};

/// A connected socket. All calls on it return at once.
pub(crate) struct Conn {
    socket: Socket,
    transport: Transport,
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// Further subflows of an MPTCP connection are accepted through the
    /// listener: it stays open as long as the connection.
    _listener: Option<Socket>,
}

impl AsFd for Conn {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Conn {
    pub(crate) fn new(
        socket: Socket,
        transport: Transport,
        peer: SocketAddr,
        listener: Option<Socket>,
    ) -> Result<Self> {
        let local = address(socket.local_addr())?;
        Ok(Self {
            socket,
            transport,
            local,
            peer,
            _listener: listener,
        })
    }

    /// Reads what is there: `None` when nothing is, `Some(0)` at the end.
    pub(crate) fn read(&self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        unless_blocked((&self.socket).read(buf))
    }

    /// Writes what fits: `None` when nothing does.
    pub(crate) fn write(&self, buf: &[u8]) -> io::Result<Option<usize>> {
        unless_blocked((&self.socket).write(buf))
    }

    /// Says that no more will be written; everything written is still delivered.
    pub(crate) fn finish_writing(&self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)
    }

    /// Messages leave at once instead of waiting to fill a segment.
    pub(crate) fn set_nodelay(&self) -> Result<()> {
        self.socket
            .set_tcp_nodelay(true)
            .map_err(|e| TrafficError::io("set TCP_NODELAY", e))
    }

    /// From now on closing throws away what is buffered and resets the
    /// connection, so that an end of the measurement is an end of the traffic.
    pub(crate) fn abort_on_close(&self) {
        // A socket that cannot do it lingers in the kernel, which harms nobody.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }

    /// Asks the kernel how the connection is.
    pub(crate) fn observe(&self, facts: &mut Facts) {
        facts.observe(&self.socket, self.transport);
    }
}

fn unless_blocked(r: io::Result<usize>) -> io::Result<Option<usize>> {
    match r {
        Ok(n) => Ok(Some(n)),
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(None),
        Err(e) => Err(e),
    }
}

fn address(a: io::Result<SockAddr>) -> Result<SocketAddr> {
    a.and_then(|a| a.as_socket().ok_or(ErrorKind::AddrNotAvailable.into()))
        .map_err(|e| TrafficError::io("read the address of a socket", e))
}

/// A socket with the buffers and the congestion control of `spec`.
fn create(spec: &TrafficSpec) -> Result<Socket> {
    let socket = match spec.transport {
        Transport::Tcp => stream(&spec.address, false)?,
        Transport::Mptcp => stream(&spec.address, true)?,
        Transport::Udp => {
            let domain = Domain::for_address(spec.address);
            Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
                .map_err(|e| TrafficError::io("open a UDP socket", e))?
        }
    };
    socket
        .set_nonblocking(true)
        .map_err(|e| TrafficError::io("make a socket non-blocking", e))?;
    if let Some(bytes) = spec.sndbuf {
        socket
            .set_send_buffer_size(bytes as usize)
            .map_err(|e| TrafficError::io(format!("set SO_SNDBUF to {bytes}"), e))?;
    }
    if let Some(bytes) = spec.rcvbuf {
        socket
            .set_recv_buffer_size(bytes as usize)
            .map_err(|e| TrafficError::io(format!("set SO_RCVBUF to {bytes}"), e))?;
    }
    if spec.transport != Transport::Udp
        && let Some(cc) = &spec.cc
    {
        set_congestion_control(&socket, cc)?;
    }
    Ok(socket)
}

fn errno(e: &io::Error) -> Errno {
    Errno::from_raw(e.raw_os_error().unwrap_or(0))
}

fn bind(socket: &Socket, to: SocketAddr) -> Result<()> {
    socket.bind(&to.into()).map_err(|e| {
        let advice = match errno(&e) {
            Errno::EADDRNOTAVAIL => "; no interface of this namespace has the address",
            Errno::EADDRINUSE => "; another program listens there",
            _ => "",
        };
        TrafficError::io_advice(format!("bind to {to}"), e, advice)
    })
}

/// A listening socket (UDP: a bound one) and its address.
pub(crate) fn listen(spec: &TrafficSpec) -> Result<(Socket, SocketAddr)> {
    let socket = create(spec)?;
    if spec.transport != Transport::Udp {
        socket
            .set_reuse_address(true)
            .map_err(|e| TrafficError::io("set SO_REUSEADDR", e))?;
    }
    bind(&socket, spec.address)?;
    if spec.transport != Transport::Udp {
        socket
            .listen(8)
            .map_err(|e| TrafficError::io(format!("listen on {}", spec.address), e))?;
    }
    let at = address(socket.local_addr())?;
    Ok((socket, at))
}

/// The first connection to `listener`.
pub(crate) fn accept(
    spec: &TrafficSpec,
    listener: Socket,
    at: SocketAddr,
    deadline: Time,
    env: &Env<'_>,
) -> Result<Conn> {
    loop {
        let ready = env.wait(Some(listener.as_fd()), PollFlags::POLLIN, deadline)?;
        if ready.is_empty() {
            if clock::now() >= deadline {
                return Err(nobody_came(spec, at));
            }
            continue;
        }
        match listener.accept() {
            Ok((socket, peer)) => {
                socket
                    .set_nonblocking(true)
                    .map_err(|e| TrafficError::io("make a socket non-blocking", e))?;
                let peer = address(Ok(peer))?;
                return Conn::new(socket, spec.transport, peer, Some(listener));
            }
            // The client may have gone again before we looked (accept(2)).
            Err(e)
                if matches!(
                    e.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                ) => {}
            Err(e) => return Err(TrafficError::io(format!("accept a client on {at}"), e)),
        }
    }
}

/// The error of a server without a client.
pub(crate) fn nobody_came(spec: &TrafficSpec, at: SocketAddr) -> TrafficError {
    TrafficError::Peer(format!(
        "no client connected to {at} in {:.1} s: check that it was started and that its route to \
         this address is up",
        spec.setup.as_secs_f64()
    ))
}

/// A connection to `spec.address`.
pub(crate) fn connect(spec: &TrafficSpec, deadline: Time, env: &Env<'_>) -> Result<Conn> {
    let socket = create(spec)?;
    if let Some(local) = spec.local {
        bind(&socket, SocketAddr::new(local, 0))?;
    }
    let protocol = match spec.transport {
        Transport::Tcp => "tcp",
        Transport::Mptcp => "mptcp",
        Transport::Udp => "udp",
    };
    let from = spec.local.map_or(String::new(), |l| format!(" from {l}"));
    let attempt = || format!("connect{from} to {} over {protocol}", spec.address);
    let fail = |e: io::Error| {
        let advice = match errno(&e) {
            Errno::ECONNREFUSED => {
                "; nothing listens there: start the server first and check address and port"
            }
            Errno::EHOSTUNREACH | Errno::ENETUNREACH => {
                "; there is no route: check that the access is up and its routing table"
            }
            Errno::ETIMEDOUT => "; nothing answers: check that the path is up in both directions",
            _ => "",
        };
        TrafficError::io_advice(attempt(), e, advice)
    };
    match socket.connect(&spec.address.into()) {
        Ok(()) => {}
        Err(e) if errno(&e) == Errno::EINPROGRESS => loop {
            let ready = env.wait(Some(socket.as_fd()), PollFlags::POLLOUT, deadline)?;
            if !ready.is_empty() {
                match socket.take_error() {
                    Ok(None) => break,
                    Ok(Some(e)) | Err(e) => return Err(fail(e)),
                }
            }
            if clock::now() >= deadline {
                return Err(fail(Errno::ETIMEDOUT.into()));
            }
        },
        Err(e) => return Err(fail(e)),
    }
    Conn::new(socket, spec.transport, spec.address, None)
}
