//! One-way delay between the kernels' own time stamps: of sending, as the
//! packet enters the emulator's interface, and of receiving, as it leaves.

use std::collections::HashMap;
use std::io::IoSliceMut;
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use braid_core::stats::Percentiles;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, TimestampingFlag, recvmsg, setsockopt, sockopt,
};
use socket2::Socket;

use crate::clock::{monotonic_ns, nanos, sleep_until};
use crate::pauses::Pauses;

/// Between probes, on average.
const EVERY_NS: u64 = 1_000_000;

/// Errors of the delay, microseconds: of each probe, against what was configured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DelayError {
    pub(crate) probes: usize,
    /// Mean of the errors as they are, so that being early counts against being late.
    pub(crate) mean: f64,
    /// Percentiles of the absolute values.
    pub(crate) absolute: Percentiles,
    /// Percentiles of the absolute values without the probes under way in a pause of the host.
    pub(crate) unpaused: Percentiles,
}

/// Time stamps of the probes that came through, `CLOCK_REALTIME`, nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamps(Vec<(u64, u64)>);

/// Sends `count` probes from `from` (connected) to `to`, `expected` away.
pub(crate) fn send_through(
    from: &Socket,
    to: &Socket,
    count: u32,
    expected: Duration,
) -> Result<Stamps> {
    let flags = TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_ID
        | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY;
    setsockopt(from, sockopt::Timestamping, &flags)
        .context("cannot have time stamps of sending")?;
    setsockopt(to, sockopt::ReceiveTimestampns, &true).context("cannot have time stamps")?;
    to.set_read_timeout(Some(expected + Duration::from_millis(700)))?;
    let (sent, received) = std::thread::scope(|s| {
        let receiver = s.spawn(|| receive(to, count));
        let sent = send(from, count);
        let received = receiver.join().map_err(|_| anyhow!("a receiver panicked"));
        anyhow::Ok((sent?, received??))
    })?;
    let stamps: Vec<(u64, u64)> = received
        .iter()
        .filter_map(|(id, &at)| Some((*sent.get(id)?, at)))
        .collect();
    ensure!(
        stamps.len() * 2 > count as usize,
        "only {} of {count} probes were stamped at both ends",
        stamps.len()
    );
    Ok(Stamps(stamps))
}

impl DelayError {
    /// Compares `stamps` with `expected`.
    pub(crate) fn of(stamps: &Stamps, expected: Duration, pauses: &Pauses) -> Result<Self> {
        let want = expected.as_nanos() as f64;
        let error = |&(sent, at): &(u64, u64)| (at as f64 - sent as f64 - want) / 1e3;
        let errors: Vec<f64> = stamps.0.iter().map(error).collect();
        let mut absolute: Vec<f64> = errors.iter().map(|e| e.abs()).collect();
        // A pause in the middle of the way does no harm.
        let (near, due) = (1_000_000, expected.as_nanos() as u64);
        let mut unpaused: Vec<f64> = stamps
            .0
            .iter()
            .filter(|(sent, _)| !pauses.touch(*sent, sent + near))
            .filter(|(sent, at)| !pauses.touch((sent + due).min(*at) - near, *at))
            .map(|s| error(s).abs())
            .collect();
        Ok(Self {
            probes: errors.len(),
            mean: errors.iter().sum::<f64>() / errors.len() as f64,
            absolute: Percentiles::of(&mut absolute).context("no probe came through")?,
            unpaused: Percentiles::of(&mut unpaused)
                .context("the host paused under every probe")?,
        })
    }
}

fn send(socket: &Socket, count: u32) -> Result<HashMap<u32, u64>> {
    nix::sys::prctl::set_timerslack(1).context("cannot set timer slack")?;
    let mut stamps = HashMap::with_capacity(count as usize);
    let start = monotonic_ns() + 10_000_000;
    let mut packet = [0; 64];
    for i in 0..count {
        // Not in step with anything periodic: up to half a gap late.
        let shift = u64::from(i).wrapping_mul(2_654_435_761) % (EVERY_NS / 2);
        sleep_until(start + u64::from(i) * EVERY_NS + shift);
        packet[..4].copy_from_slice(&i.to_le_bytes());
        socket.send(&packet).context("cannot send a probe")?;
        stamped(socket, &mut stamps)?;
    }
    std::thread::sleep(Duration::from_millis(50));
    stamped(socket, &mut stamps)?;
    Ok(stamps)
}

/// Collects the time stamps of sending that have come back.
fn stamped(socket: &Socket, stamps: &mut HashMap<u32, u64>) -> Result<()> {
    let mut cmsg = nix::cmsg_space!([nix::sys::time::TimeSpec; 3], [u8; 64]);
    let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
    loop {
        let mut buf = [0; 128];
        let mut iov = [IoSliceMut::new(&mut buf)];
        let m = match recvmsg::<SockaddrIn>(socket.as_raw_fd(), &mut iov, Some(&mut cmsg), flags) {
            Ok(m) => m,
            Err(Errno::EAGAIN) => return Ok(()),
            Err(e) => return Err(e).context("cannot read time stamps of sending"),
        };
        let (mut at, mut id) = (None, None);
        for c in m.cmsgs().context("cannot read time stamps of sending")? {
            match c {
                ControlMessageOwned::ScmTimestampsns(t) => at = Some(nanos(t.system)),
                ControlMessageOwned::Ipv4RecvErr(e, _) => id = Some(e.ee_data),
                _ => {}
            }
        }
        if let (Some(at), Some(id)) = (at, id) {
            stamps.insert(id, at);
        }
    }
}

fn receive(socket: &Socket, count: u32) -> Result<HashMap<u32, u64>> {
    let mut stamps = HashMap::with_capacity(count as usize);
    let mut cmsg = nix::cmsg_space!(nix::sys::time::TimeSpec);
    loop {
        let mut buf = [0; 128];
        let mut iov = [IoSliceMut::new(&mut buf)];
        let m = match recvmsg::<SockaddrIn>(
            socket.as_raw_fd(),
            &mut iov,
            Some(&mut cmsg),
            MsgFlags::empty(),
        ) {
            Ok(m) => m,
            // Nothing more comes.
            Err(Errno::EAGAIN) => return Ok(stamps),
            Err(Errno::EINTR) => continue,
            Err(e) => return Err(e).context("cannot receive probes"),
        };
        let stamp = m
            .cmsgs()
            .context("cannot read a time stamp")?
            .find_map(|c| match c {
                ControlMessageOwned::ScmTimestampns(t) => Some(nanos(t)),
                _ => None,
            });
        let id = u32::from_le_bytes([buf[0], buf[1], buf[2], buf[3]]);
        if let Some(at) = stamp {
            stamps.insert(id, at);
        }
        if id + 1 == count {
            return Ok(stamps);
        }
    }
}
