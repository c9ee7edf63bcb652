//! Floods of UDP datagrams, every byte of which is checked.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use socket2::Socket;

use crate::clock::{monotonic_ns, nanos, sleep_until};
use crate::pattern::Pattern;

/// IPv4 and UDP headers.
pub(crate) const HEADERS: usize = 28;
/// Payload that fills packets of 1500 bytes.
pub(crate) const FULL: usize = 1500 - HEADERS;
/// Left out of rates at the start.
const WARM_UP_NS: u64 = 500_000_000;

/// Flood that is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flood {
    /// IP-layer bits per second, in millions.
    pub(crate) mbps: f64,
    /// Datagrams per call and super-packet.
    pub(crate) segments: usize,
}

/// Sends on the connected `socket` until `stop`; returns the number of
/// datagrams that the kernel took.
pub(crate) fn send(socket: &Socket, flood: Flood, stop: &AtomicBool) -> Result<u64> {
    nix::sys::prctl::set_timerslack(1).context("cannot set timer slack")?;
    let pattern = Pattern::new();
    if flood.segments > 1 {
        setsockopt(socket, sockopt::UdpGsoSegment, &(FULL as i32))
            .context("cannot have the kernel segment UDP; it takes Linux 4.18 or later")?;
    }
    let mut buf = vec![0; FULL * flood.segments];
    let bits = ((FULL + HEADERS) * flood.segments * 8) as f64;
    let gap = bits * 1e3 / flood.mbps;
    let start = monotonic_ns();
    let (mut next, mut taken, mut calls) = (0u64, 0u64, 0u64);
    while !stop.load(Ordering::Relaxed) {
        for d in buf.chunks_mut(FULL) {
            pattern.fill(next, d);
            next += 1;
        }
        match socket.send(&buf) {
            Ok(_) => taken += flood.segments as u64,
            // The path's first queue is full: that is a flood's way.
            Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => next -= flood.segments as u64,
            Err(e) => return Err(e).context("cannot send UDP"),
        }
        calls += 1;
        let due = start + (calls as f64 * gap) as u64;
        if due > monotonic_ns() + 20_000 {
            sleep_until(due);
        }
    }
    Ok(taken)
}

/// Counters of what arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Received {
    pub(crate) datagrams: u64,
    /// Wrong in any byte, or of the wrong length.
    pub(crate) bad: u64,
    /// IP bytes.
    pub(crate) bytes: u64,
    /// IP-layer rate after the warm-up, by the kernel's time stamps.
    pub(crate) mbps: f64,
}

/// Receives until `stop`, and then until nothing has come for 300 ms.
pub(crate) fn receive(socket: &Socket, stop: &AtomicBool) -> Result<Received> {
    setsockopt(socket, sockopt::UdpGroSegment, &true)
        .context("cannot receive UDP super-packets")?;
    setsockopt(socket, sockopt::ReceiveTimestampns, &true).context("cannot have time stamps")?;
    setsockopt(socket, sockopt::RcvBufForce, &(64 << 20)).context("cannot size a buffer")?;
    socket.set_read_timeout(Some(Duration::from_millis(300)))?;
    let pattern = Pattern::new();
    let mut got = Received::default();
    let mut buf = vec![0; 1 << 16];
    let mut cmsg = nix::cmsg_space!(i32, nix::sys::time::TimeSpec);
    let (mut first, mut from, mut last) = (None, None, (0, 0));
    loop {
        let mut iov = [IoSliceMut::new(&mut buf)];
        let m = recvmsg::<SockaddrIn>(
            socket.as_raw_fd(),
            &mut iov,
            Some(&mut cmsg),
            MsgFlags::empty(),
        );
        let m = match m {
            Ok(m) => m,
            Err(nix::errno::Errno::EAGAIN) if stop.load(Ordering::Relaxed) => break,
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => continue,
            Err(e) => return Err(e).context("cannot receive UDP"),
        };
        let n = m.bytes;
        let (mut size, mut at) = (n.max(1), 0);
        for c in m.cmsgs().context("cannot read what came with a datagram")? {
            match c {
                ControlMessageOwned::UdpGroSegments(s) => size = s as usize,
                ControlMessageOwned::ScmTimestampns(t) => at = nanos(t),
                _ => {}
            }
        }
        for d in buf[..n].chunks(size) {
            got.datagrams += 1;
            got.bytes += (d.len() + HEADERS) as u64;
            if d.len() != FULL || pattern.check(d).is_none() {
                got.bad += 1;
            }
        }
        let first = *first.get_or_insert(at);
        if at > first + WARM_UP_NS {
            from.get_or_insert((at, got.bytes));
        }
        last = (at, got.bytes);
    }
    if let Some((at, bytes)) = from
        && last.0 > at
    {
        got.mbps = (last.1 - bytes) as f64 * 8e3 / (last.0 - at) as f64;
    }
    Ok(got)
}

/// Results of several floods at once, by name: datagrams sent, and what arrived.
pub(crate) type Floods = BTreeMap<String, (u64, Received)>;

/// A flood to be run: its name, connected sender and receiver.
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) from: Socket,
    pub(crate) to: Socket,
    pub(crate) flood: Flood,
}

/// Runs `routes` at once for as long as `meanwhile` takes.
pub(crate) fn run<T>(
    routes: &[Route],
    meanwhile: impl FnOnce() -> Result<T>,
) -> Result<(Floods, T)> {
    let (stop_senders, stop_receivers) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|s| {
        let (stop, sunk) = (&stop_senders, &stop_receivers);
        let receivers: Vec<_> = routes
            .iter()
            .map(|r| s.spawn(move || receive(&r.to, sunk)))
            .collect();
        let senders: Vec<_> = routes
            .iter()
            .map(|r| s.spawn(move || send(&r.from, r.flood, stop)))
            .collect();
        let result = meanwhile();
        stop_senders.store(true, Ordering::Relaxed);
        let sent: Vec<_> = senders.into_iter().map(|h| h.join()).collect();
        stop_receivers.store(true, Ordering::Relaxed);
        let got: Vec<_> = receivers.into_iter().map(|h| h.join()).collect();
        let mut floods = Floods::new();
        for ((r, sent), got) in routes.iter().zip(sent).zip(got) {
            let sent = sent.map_err(|_| anyhow::anyhow!("a sender panicked"))??;
            let got = got.map_err(|_| anyhow::anyhow!("a receiver panicked"))??;
            floods.insert(r.name.clone(), (sent, got));
        }
        Ok((floods, result?))
    })
}
