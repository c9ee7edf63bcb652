//! A box on the way of an access that takes options out of TCP segments, as some of
//! operators and firewalls do.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{
    AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, recvfrom, sendto,
    setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};

use super::{Ns, World, device_addresses, one_segment_per_packet, proxy_addresses, wire};

/// A segment of TCP, as the box sees it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// SYN flag.
    pub syn: bool,
    /// ACK flag.
    pub ack: bool,
    /// Opens a further subflow (`MP_JOIN`).
    pub joins: bool,
}

/// Runs until dropped.
pub struct Middlebox {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl World {
    /// Adds access `k`, over which the options of MPTCP are taken out of the segments that
    /// `strips` names.
    pub fn add_middlebox(
        &self,
        k: u8,
        strips: impl Fn(Segment) -> bool + Send + 'static,
    ) -> Middlebox {
        let middle = Ns::new().expect("a further namespace");
        let (d, p) = (format!("d{k}"), format!("p{k}"));
        wire((&self.device, &d), (&middle, "to-device"));
        wire((&self.proxy, &p), (&middle, "to-proxy"));
        device_addresses(&self.device, k);
        proxy_addresses(&self.proxy, k);
        // What is larger than a packet does not go through.
        one_segment_per_packet(&self.device, &d);
        one_segment_per_packet(&self.proxy, &p);
        self.routes(k);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = middle.spawn(move || forward(&strips, &stopped));
        Middlebox {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Middlebox {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Carries frames between the two interfaces of the namespace.
fn forward(strips: &dyn Fn(Segment) -> bool, stop: &AtomicBool) {
    let ports: BTreeMap<String, LinkAddr> = getifaddrs()
        .expect("list interfaces")
        .filter_map(|i| Some((i.interface_name, *i.address?.as_link_addr()?)))
        .filter(|(name, _)| name.starts_with("to-"))
        .collect();
    let other = |from: usize| ports.values().find(|p| p.ifindex() != from).expect("two");
    let socket: OwnedFd = socket(
        AddressFamily::Packet,
        SockType::Raw,
        SockFlag::empty(),
        SockProtocol::EthAll,
    )
    .expect("a packet socket");
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::milliseconds(50)).expect("a timeout");
    setsockopt(&socket, sockopt::RcvBuf, &(4 << 20)).expect("a buffer");
    let mut frame = [0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        let Ok((n, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut frame) else {
            continue;
        };
        let from = from.expect("an address");
        // PACKET_OUTGOING: what we sent ourselves.
        if from.pkttype() == 4 || !ports.values().any(|p| p.ifindex() == from.ifindex()) {
            continue;
        }
        let frame = &mut frame[..n];
        rewrite(frame, strips);
        let to = other(from.ifindex());
        let _ = sendto(socket.as_raw_fd(), frame, to, MsgFlags::empty());
    }
}

/// Takes options out of an IPv4 frame, and completes the checksum that a virtual interface
/// leaves to nobody.
fn rewrite(frame: &mut [u8], strips: &dyn Fn(Segment) -> bool) {
    const ETHERNET: usize = 14;
    const IPV4: [u8; 2] = [8, 0];
    if frame.len() < ETHERNET + 40 || frame[12..14] != IPV4 {
        return;
    }
    let ip = &mut frame[ETHERNET..];
    let head = usize::from(ip[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
    let (protocol, checksum_at) = match ip[9] {
        6 => (6, 16),
        17 => (17, 6),
        _ => return,
    };
    let mut pseudo = [0; 12];
    pseudo[..8].copy_from_slice(&ip[12..20]);
    pseudo[9] = protocol;
    pseudo[10..].copy_from_slice(&((total - head) as u16).to_be_bytes());
    let segment = &mut ip[head..total];
    if protocol == 6 {
        let end = usize::from(segment[12] >> 4) * 4;
        let (flags, options) = (segment[13], &mut segment[20..end]);
        let mut joins = false;
        each_mptcp(options, |o| joins |= o.get(2).is_some_and(|b| b >> 4 == 1));
        let seen = Segment {
            syn: flags & 2 != 0,
            ack: flags & 16 != 0,
            joins,
        };
        if strips(seen) {
            // No-operations.
            each_mptcp(options, |o| o.fill(1));
        }
    }
    segment[checksum_at..checksum_at + 2].fill(0);
    let sum = checksum(&[&pseudo, segment]);
    segment[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The options of MPTCP (kind 30, RFC 8684 section 3).
fn each_mptcp(options: &mut [u8], mut f: impl FnMut(&mut [u8])) {
    let mut at = 0;
    while at < options.len() {
        let length = match options[at] {
            0 => return,
            1 => 1,
            _ => usize::from(*options.get(at + 1).unwrap_or(&0)).max(2),
        };
        let end = options.len().min(at + length);
        if options[at] == 30 {
            f(&mut options[at..end]);
        }
        at += length;
    }
}

/// RFC 1071.
fn checksum(parts: &[&[u8]]) -> u16 {
    let word = |w: &[u8]| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0));
    let mut sum: u32 = parts.iter().flat_map(|p| p.chunks(2)).map(word).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
