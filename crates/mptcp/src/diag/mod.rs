//! The namespace's TCP and MPTCP sockets, asked for over sock-diag.
//!
//! A request gives the TCP sockets of both families with their `tcp_info`, congestion
//! control, queued memory and MPTCP subflow facts, and one for each family the MPTCP
//! sockets. Only sockets that carry or may still carry data are asked for.
//! Tokens and ids are told only to `CAP_NET_ADMIN`.

mod closed;
mod facts;
mod ulp;

pub use closed::{Closed, ClosedSockets};
pub use facts::connections;
pub use ulp::UlpInfo;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use netlink_packet_core::{Emitable, Parseable};
use netlink_packet_sock_diag::inet::{
    ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags,
};
use netlink_packet_sock_diag::{AF_INET, AF_INET6};

use crate::error::{Error, Result};
use crate::nl::Channel;
use crate::nl::attr::{self, Attrs};
use crate::tcp_info::{MptcpInfo, TcpInfo};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
/// The request from before families had each their own. A list that it asks for has both, by
/// one walk over the kernel's table, which takes milliseconds on machines with much memory.
const TCPDIAG_GETSOCK: u16 = 18;
/// Sockets that are asked for in one go: their answers, up to 2 kB of memory each, fit into
/// the 200 kB that a socket may hold by default.
const AT_ONCE: usize = 32;
/// A list of all sockets costs less than asking for more than this.
const FEW: usize = 64;
/// Length of `struct inet_diag_msg`, after which attributes follow.
const RESPONSE_LEN: usize = 72;

// `INET_DIAG_*` of linux/inet_diag.h.
const REQ_PROTOCOL: u16 = 3;
const INFO: u16 = 2;
const CONG: u16 = 4;
const SKMEMINFO: u16 = 7;
const ULP_INFO: u16 = 19;
/// `INET_DIAG_NOCOOKIE`, twice.
const ANY_COOKIE: [u8; 8] = [u8::MAX; 8];
// `SK_MEMINFO_*` of linux/sock_diag.h.
const MEM_RCVBUF: usize = 1;
const MEM_SNDBUF: usize = 3;
const MEM_WMEM_QUEUED: usize = 5;
// `INET_ULP_INFO_*`.
const ULP_MPTCP: u16 = 3;

/// A TCP socket: a plain connection or a subflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpSocket {
    /// The kernel's number of the socket, which no other ever gets (`SO_COOKIE`).
    pub cookie: u64,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The kernel's number of the TCP state.
    pub state: u8,
    /// Inode of the application's socket; 0 for subflows.
    pub inode: u32,
    /// How it fares.
    pub tcp: TcpInfo,
    /// Its congestion control.
    pub congestion_control: String,
    /// Memory queued for sending, bytes (`sk_wmem_queued`).
    pub queued_bytes: u32,
    /// Send buffer: maximum queued for sending, bytes (`sk_sndbuf`).
    pub send_buffer_bytes: u32,
    /// Receive buffer: maximum queued of what was received, bytes (`sk_rcvbuf`).
    pub receive_buffer_bytes: u32,
    /// Present on subflows of MPTCP, those that fell back included.
    pub ulp: Option<UlpInfo>,
}

impl TcpSocket {
    /// The connection whose subflow this is, where the kernel tells it.
    pub fn token(&self) -> Option<u32> {
        let token = self.ulp.as_ref()?.token_local;
        (token != 0).then_some(token)
    }

    /// Whether it is neither being opened nor being closed: ESTABLISHED (RFC 9293 3.3.2).
    pub fn is_established(&self) -> bool {
        self.state == 1
    }

    /// Whether it is a subflow that data of its connection may still come to or go from:
    /// ESTABLISHED or CLOSE-WAIT (RFC 9293 3.3.2). A connection ends its subflows only after
    /// its own DATA_FIN (RFC 8684 3.3.3), and one in FIN-WAIT-1 may be of an address that is
    /// gone and take minutes.
    pub fn carries(&self) -> bool {
        self.token().is_some() && matches!(self.state, 1 | 8)
    }
}

/// An MPTCP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MptcpSocket {
    /// This end of the first subflow.
    pub local: SocketAddr,
    /// The other end of the first subflow.
    pub remote: SocketAddr,
    /// Inode of the application's socket; 0 once closed.
    pub inode: u32,
    /// How it is.
    pub info: MptcpInfo,
}

/// A sock-diag socket of one network namespace: that of the thread that opens it.
#[derive(Debug)]
pub struct Diag {
    channel: Channel,
    /// Requests for the subflows that the last list of TCP sockets had, one by one.
    subflows: Vec<Vec<u8>>,
    /// Time of that list.
    listed: Option<Instant>,
}

impl Diag {
    /// Opens one.
    ///
    /// # Errors
    /// No descriptors left, or a kernel without netlink.
    pub fn open() -> Result<Self> {
        let channel = Channel::open(
            netlink_sys::protocols::NETLINK_SOCK_DIAG,
            "socket statistics",
        )?;
        Ok(Self {
            channel,
            subflows: Vec::new(),
            listed: None,
        })
    }

    /// The TCP sockets that are not listening and not in TIME-WAIT.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn tcp(&mut self) -> Result<Vec<TcpSocket>> {
        let mut all = Vec::new();
        let mut subflows = Vec::new();
        let now = Instant::now();
        self.dump(
            TCPDIAG_GETSOCK,
            &request_tcp(),
            "TCP",
            &mut |header, attributes| {
                let socket = tcp_socket(header, &attributes);
                if socket.ulp.is_some() {
                    subflows.push(request_one(header.family, header.socket_id.clone()));
                }
                all.push(socket);
            },
        )?;
        self.subflows = subflows;
        self.listed = Some(now);
        Ok(all)
    }

    /// The subflows of MPTCP: those of a list of all TCP sockets that is not older than
    /// `listed`, as they are now. Where they are many it is always a new list, and may hold
    /// other sockets as well.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn subflows(&mut self, listed: Duration) -> Result<Vec<TcpSocket>> {
        let known = self.listed.is_some_and(|t| t.elapsed() < listed);
        match known && self.subflows.len() <= FEW {
            true => self.known_subflows(),
            false => self.tcp(),
        }
    }

    /// Adds a subflow that has begun to those of the last list. `ifindex` is that of the
    /// interface to which it is bound, if it is.
    pub fn learn(&mut self, local: SocketAddr, remote: SocketAddr, ifindex: Option<u32>) {
        // More are listed.
        if self.subflows.len() <= FEW {
            let family = match local.is_ipv4() {
                true => AF_INET,
                false => AF_INET6,
            };
            let id = SocketId {
                source_port: local.port(),
                destination_port: remote.port(),
                source_address: local.ip(),
                destination_address: remote.ip(),
                interface_id: ifindex.unwrap_or(0),
                cookie: ANY_COOKIE,
            };
            self.subflows.push(request_one(family, id));
        }
    }

    /// The next list of subflows is a new one.
    pub fn forget(&mut self) {
        self.listed = None;
    }

    /// Returns the subflows that [`Diag::tcp`] found last, without those that are gone. It asks for
    /// each by its address, which costs far less than a list where they are few.
    fn known_subflows(&mut self) -> Result<Vec<TcpSocket>> {
        let attempted = || "look at a subflow".to_owned();
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        let each = &mut |answer: Result<&[u8]>| match answer {
            Ok(answer) => {
                let (header, attributes) = row(answer, &attempted)?;
                let socket = tcp_socket(&header, &attributes);
                // One that was learnt may have been listed before its event was read.
                if seen.insert(socket.cookie) {
                    all.push(socket);
                }
                Ok(())
            }
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ESTALE)) => Ok(()),
            Err(e) => Err(e),
        };
        for some in self.subflows.chunks(AT_ONCE) {
            self.channel
                .request_each(SOCK_DIAG_BY_FAMILY, some, &attempted, each)?;
        }
        Ok(all)
    }

    /// The addresses of this end that subflows of live connections are on: where the
    /// endpoint of one of them is deleted, the kernel ends its subflows, and with the last
    /// of them the connection.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn addresses_in_use(&mut self) -> Result<BTreeSet<IpAddr>> {
        let all = self.tcp()?;
        let live = all.iter().filter(|s| s.carries());
        Ok(live.map(|s| s.local.ip().to_canonical()).collect())
    }

    /// The MPTCP sockets.
    ///
    /// # Errors
    /// The kernel's refusal. One without `CONFIG_INET_MPTCP_DIAG` has none to
    /// tell, which is not an error.
    pub fn mptcp(&mut self) -> Result<Vec<MptcpSocket>> {
        let mut all = Vec::new();
        // One walk over the kernel's table of tokens per family asked for.
        for family in [AF_INET, AF_INET6] {
            let body = request(family, libc::IPPROTO_MPTCP, &ExtensionFlags::INFO);
            let told = self.dump(
                SOCK_DIAG_BY_FAMILY,
                &body,
                "MPTCP",
                &mut |header, attributes| {
                    all.push(MptcpSocket {
                        local: local(&header.socket_id),
                        remote: remote(&header.socket_id),
                        inode: header.inode,
                        info: MptcpInfo::parse(attributes.find(INFO).unwrap_or_default()),
                    });
                },
            );
            match told {
                Err(e) if e.raw_os_error() == Some(libc::ENOENT) => {}
                other => other?,
            }
        }
        Ok(all)
    }

    fn dump(
        &mut self,
        kind: u16,
        body: &[u8],
        what: &str,
        each: &mut dyn FnMut(&InetResponseHeader, Attrs<'_>),
    ) -> Result<()> {
        let attempted = || format!("list the {what} sockets");
        let each = &mut |answer: &[u8]| {
            let (header, attributes) = row(answer, &attempted)?;
            each(&header, attributes);
            Ok(())
        };
        self.channel.dump(kind, body, &attempted, each)
    }
}

/// One answer: the socket, and what else is told of it.
fn row<'a>(
    answer: &'a [u8],
    attempted: &dyn Fn() -> String,
) -> Result<(InetResponseHeader, Attrs<'a>)> {
    let (header, attributes) = answer
        .split_at_checked(RESPONSE_LEN)
        .ok_or_else(|| Error::answer(attempted(), "a row is too short"))?;
    let header = InetResponseHeader::parse(header).map_err(|e| Error::answer(attempted(), e))?;
    Ok((header, Attrs(attributes)))
}

fn tcp_socket(header: &InetResponseHeader, attributes: &Attrs<'_>) -> TcpSocket {
    let mut socket = TcpSocket {
        cookie: u64::from_ne_bytes(header.socket_id.cookie),
        local: local(&header.socket_id),
        remote: remote(&header.socket_id),
        state: header.state,
        inode: header.inode,
        tcp: TcpInfo::default(),
        congestion_control: String::new(),
        queued_bytes: 0,
        send_buffer_bytes: 0,
        receive_buffer_bytes: 0,
        ulp: None,
    };
    attributes.each(|kind, v| match kind {
        INFO => socket.tcp = TcpInfo::parse(v),
        CONG => socket.congestion_control = attr::text(v),
        SKMEMINFO => {
            let number = |i: usize| v.get(4 * i..).and_then(attr::u32_of).unwrap_or(0);
            socket.receive_buffer_bytes = number(MEM_RCVBUF);
            socket.send_buffer_bytes = number(MEM_SNDBUF);
            socket.queued_bytes = number(MEM_WMEM_QUEUED);
        }
        ULP_INFO => socket.ulp = Attrs(v).find(ULP_MPTCP).map(UlpInfo::parse),
        _ => {}
    });
    socket
}

fn tcp_extensions() -> ExtensionFlags {
    ExtensionFlags::INFO | ExtensionFlags::CONG | ExtensionFlags::SKMEMINFO
}

/// Asks for one TCP socket.
fn request_one(family: u8, socket_id: SocketId) -> Vec<u8> {
    let request = InetRequest {
        family,
        protocol: libc::IPPROTO_TCP as u8,
        extensions: tcp_extensions(),
        states: StateFlags::all(),
        socket_id,
    };
    let mut body = vec![0; request.buffer_len()];
    request.emit(&mut body);
    body
}

/// States of sockets that carry or may still carry data.
fn states() -> StateFlags {
    StateFlags::ESTABLISHED
        | StateFlags::SYN_SENT
        | StateFlags::SYN_RECV
        | StateFlags::FIN_WAIT1
        | StateFlags::FIN_WAIT2
        | StateFlags::CLOSE_WAIT
        | StateFlags::LAST_ACK
        | StateFlags::CLOSING
}

/// Asks for all TCP sockets, of both families: `struct inet_diag_req`.
fn request_tcp() -> Vec<u8> {
    // Family and lengths of addresses (0), extensions; the socket (any); states; no flags.
    let mut body = vec![0; 4 + 48 + 4 + 4];
    body[3] = tcp_extensions().bits();
    body[52..56].copy_from_slice(&states().bits().to_ne_bytes());
    body
}

/// Asks for all sockets of a protocol and family: `struct inet_diag_req_v2`.
fn request(family: u8, protocol: i32, extensions: &ExtensionFlags) -> Vec<u8> {
    let any = if family == AF_INET {
        SocketId::new_v4()
    } else {
        SocketId::new_v6()
    };
    let request = InetRequest {
        family,
        // A protocol number above 255 does not fit here: the attribute counts.
        protocol: u8::try_from(protocol).unwrap_or(u8::MAX),
        extensions: extensions.clone(),
        states: states(),
        socket_id: any,
    };
    let mut body = vec![0; request.buffer_len()];
    request.emit(&mut body);
    if let Ok(protocol) = u32::try_from(protocol)
        && protocol > u32::from(u8::MAX)
    {
        let protocol = attr::bytes(REQ_PROTOCOL, &protocol.to_ne_bytes());
        body.extend(attr::emit(&[protocol]));
    }
    body
}

fn local(id: &SocketId) -> SocketAddr {
    SocketAddr::new(id.source_address.to_canonical(), id.source_port)
}

fn remote(id: &SocketId) -> SocketAddr {
    SocketAddr::new(id.destination_address.to_canonical(), id.destination_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_row_is_whole_or_refused(answer in prop::collection::vec(any::<u8>(), 0..400)) {
            let read = row(&answer, &|| "look".to_owned());
            prop_assert!(answer.len() >= RESPONSE_LEN || read.is_err());
            if let Ok((header, attributes)) = read {
                tcp_socket(&header, &attributes);
            }
        }

        /// Attributes that the kernel would not write so: cut off, or of other lengths.
        #[test]
        fn attributes_of_any_kind_and_length_are_read(
            all in prop::collection::vec((0u16..24, prop::collection::vec(any::<u8>(), 0..40)), 0..9),
        ) {
            let all: Vec<_> = all.iter().map(|(kind, v)| attr::bytes(*kind, v)).collect();
            let mut answer = vec![0; RESPONSE_LEN];
            answer[0] = AF_INET;
            answer.extend(attr::emit(&all));
            for length in RESPONSE_LEN..=answer.len() {
                let (header, attributes) = row(&answer[..length], &String::new).unwrap();
                tcp_socket(&header, &attributes);
            }
        }
    }

    #[test]
    fn a_protocol_above_255_goes_into_an_attribute() {
        let tcp = request(AF_INET, libc::IPPROTO_TCP, &ExtensionFlags::INFO);
        let mptcp = request(AF_INET, libc::IPPROTO_MPTCP, &ExtensionFlags::INFO);
        assert_eq!(tcp.len() + 8, mptcp.len());
        let protocol = Attrs(&mptcp[tcp.len()..])
            .find(REQ_PROTOCOL)
            .and_then(attr::u32_of);
        assert_eq!(protocol, Some(262));
    }
}
