//! A UDP socket: of one access at the device, of one address at the proxy. Many packets
//! go with one system call each way (GSO, GRO).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use bytes::BytesMut;
use nix::sys::socket::{setsockopt, sockopt};
use noq_proto::{EcnCodepoint, Transmit};
use noq_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Bytes that the kernel keeps for us, each way: some ms of a fast path, in which others run.
const BUFFER: usize = 8 << 20;
/// Datagrams of one GRO batch.
const GRO_BYTES: usize = 64 << 10;

/// A datagram that arrived.
pub(super) struct Arrived {
    pub(super) remote: SocketAddr,
    /// The address that it was sent to.
    pub(super) local: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) data: BytesMut,
}

/// Outcome of sending a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The burst has left, or never will: what is lost is QUIC's business.
    Done,
    /// The socket has no room.
    Full,
}

pub(super) struct Socket {
    udp: UdpSocket,
    state: UdpSocketState,
}

impl Socket {
    /// Binds to an address and port (0: any), on `interface` alone where one is given:
    /// whatever the routes say, packets leave there.
    pub(super) fn bind(at: SocketAddr, interface: Option<&str>) -> io::Result<Self> {
        let udp = socket2::Socket::new(Domain::for_address(at), Type::DGRAM, Some(Protocol::UDP))?;
        udp.set_nonblocking(true)?;
        if at.is_ipv6() {
            udp.set_only_v6(true)?;
        }
        if let Some(name) = interface {
            udp.bind_device(Some(name.as_bytes()))?;
        }
        // Beyond the limit of the machine where that is allowed.
        if setsockopt(&udp, sockopt::RcvBufForce, &BUFFER).is_err() {
            udp.set_recv_buffer_size(BUFFER)?;
        }
        if setsockopt(&udp, sockopt::SndBufForce, &BUFFER).is_err() {
            udp.set_send_buffer_size(BUFFER)?;
        }
        udp.bind(&at.into())?;
        let state = UdpSocketState::new((&udp).into())?;
        Ok(Self {
            udp: UdpSocket::from_std(udp.into())?,
            state,
        })
    }

    pub(super) fn local(&self) -> io::Result<SocketAddr> {
        self.udp.local_addr()
    }

    /// Sends a burst.
    pub(super) fn send(&self, transmit: &Transmit, data: &[u8]) -> Sent {
        let segment = transmit.segment_size.filter(|s| *s < transmit.size);
        let most = self.state.max_gso_segments().get();
        let packets = segment.map_or(1, |s| transmit.size.div_ceil(s));
        if packets > most {
            // An interface without GSO, or a kernel that has refused it.
            let segment = segment.unwrap_or(transmit.size);
            for part in data[..transmit.size].chunks(segment * most) {
                let segment = Some(segment).filter(|_| most > 1);
                if self.try_send(transmit, part, segment) == Sent::Full {
                    return Sent::Full;
                }
            }
            return Sent::Done;
        }
        self.try_send(transmit, &data[..transmit.size], segment)
    }

    fn try_send(&self, transmit: &Transmit, contents: &[u8], segment_size: Option<usize>) -> Sent {
        let message = noq_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.map(ecn_out),
            contents,
            segment_size,
            src_ip: transmit.src_ip,
        };
        let sent = self.udp.try_io(Interest::WRITABLE, || {
            self.state.try_send((&self.udp).into(), &message)
        });
        match sent {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Sent::Full,
            // A route that is gone, an interface that is down, an answer of ICMP: the
            // path is judged by what is acknowledged.
            Ok(()) | Err(_) => Sent::Done,
        }
    }

    /// Wakes the task when there is room again.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> bool {
        self.udp.poll_send_ready(cx).is_ready()
    }

    /// Gives what has arrived, one batch; false if that was nothing, and the task is
    /// woken when something does.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut Buffers,
        mut each: impl FnMut(Arrived),
    ) -> io::Result<bool> {
        loop {
            match self.udp.poll_recv_ready(cx) {
                Poll::Pending => return Ok(false),
                Poll::Ready(ready) => ready?,
            }
            let mut meta = [RecvMeta::default(); BATCH_SIZE];
            let mut slices = buffers.0.each_mut().map(|b| IoSliceMut::new(b));
            let received = self.udp.try_io(Interest::READABLE, || {
                self.state.recv((&self.udp).into(), &mut slices, &mut meta)
            });
            let count = match received {
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
                // ICMP's answer to what was sent: nothing of it is ours to handle.
                Err(_) => return Ok(true),
            };
            for (m, slice) in meta.iter().zip(&slices).take(count) {
                for data in slice[..m.len].chunks(m.stride.max(1)) {
                    each(Arrived {
                        remote: m.addr,
                        local: m.dst_ip,
                        ecn: m.ecn.and_then(ecn_in),
                        data: data.into(),
                    });
                }
            }
            return Ok(true);
        }
    }
}

/// Where datagrams are received.
pub(super) struct Buffers([Box<[u8]>; BATCH_SIZE]);

impl Buffers {
    pub(super) fn new() -> Self {
        Self(std::array::from_fn(|_| vec![0; GRO_BYTES].into()))
    }
}

fn ecn_out(e: EcnCodepoint) -> noq_udp::EcnCodepoint {
    match e {
        EcnCodepoint::Ect0 => noq_udp::EcnCodepoint::Ect0,
        EcnCodepoint::Ect1 => noq_udp::EcnCodepoint::Ect1,
        EcnCodepoint::Ce => noq_udp::EcnCodepoint::Ce,
    }
}

fn ecn_in(e: noq_udp::EcnCodepoint) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(e as u8)
}
