//! Output of the models, on its way to the ports.

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;
use nix::errno::Errno;

use super::api::IoStats;
use super::buffers::{Buffers, Held};
use super::capture::Capture;
use super::compensation::{self, Compensation};
use super::lateness::Lateness;
use super::port::Port;
use super::segment::{Checksums, HeaderBuf};
use super::timer::monotonic_ns;
use super::vnet::ETHERNET_LEN;
use crate::emulator::packet::MAX_HEADER;
use crate::model::{DropCause, LinkSpec, Sink, Span};

/// The ends of a link, as indices of ports, and what happens there.
#[derive(Debug)]
pub(crate) struct LinkIo {
    pub(crate) name: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) stats: IoStats,
    /// See [`compensation`]; nanoseconds.
    reserve: u64,
    /// When the last of its packets is written: the next ones come after it.
    last: u64,
}

impl LinkIo {
    pub(crate) fn new(
        name: String,
        (from, to): (usize, usize),
        spec: &LinkSpec,
        most: Duration,
    ) -> Self {
        let mut link = Self {
            name,
            from,
            to,
            stats: IoStats::default(),
            reserve: 0,
            last: 0,
        };
        link.set_reserve(compensation::reserve(&spec.delay, most));
        link
    }

    /// The receiving host did not take `packets`.
    pub(super) fn refused(&mut self, packets: u64, e: Errno) {
        let s = &mut self.stats;
        match e {
            Errno::EIO | Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::EBADFD => {
                s.drop_down += packets;
            }
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => s.drop_full += packets,
            e => {
                if s.drop_refused == 0 {
                    eprintln!(
                        "emulator: {}: the receiving host refused a write of {packets} packets: {e}; such packets are counted, the first one is said",
                        self.name
                    );
                }
                s.drop_refused += packets;
            }
        }
    }

    pub(crate) fn set_reserve(&mut self, d: Duration) {
        self.reserve = u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
    }
}

/// Packets on their way out.
pub(super) struct Due {
    /// When the loop means to write them (`CLOCK_MONOTONIC`).
    pub(super) at: u64,
    /// When that should have happened at last.
    pub(super) intended: u64,
    /// Whether the link has a reserve.
    compensated: bool,
    pub(super) span: Span,
}

/// Packets that are due, and how they are written.
pub(crate) struct Outbox {
    pub(crate) buffers: Buffers,
    pub(crate) links: Vec<LinkIo>,
    pub(crate) lateness: Lateness,
    pub(crate) capture: Option<Capture>,
    pub(super) checksums: Checksums,
    pub(crate) compensation: Compensation,
    /// In order of time.
    pub(super) due: VecDeque<Due>,
    /// Handed over, see [`Outbox::batch`].
    pub(super) handed: Vec<Span>,
    headers: Box<HeaderBuf>,
}

impl Outbox {
    pub(crate) fn new(
        buffers: Buffers,
        links: Vec<LinkIo>,
        checksums: Checksums,
        capture: Option<Capture>,
        compensation: Compensation,
    ) -> Self {
        Self {
            buffers,
            links,
            lateness: Lateness::new(),
            capture,
            checksums,
            compensation,
            due: VecDeque::with_capacity(4096),
            handed: Vec::new(),
            headers: Box::new([0; MAX_HEADER + ETHERNET_LEN]),
        }
    }

    /// The sink of models whose time zero lies at `base` (`CLOCK_MONOTONIC`).
    pub(crate) fn since(&mut self, base: u64) -> impl Sink {
        Since { base, outbox: self }
    }

    /// When the next packets are to be written.
    pub(crate) fn next(&self) -> Option<u64> {
        self.due.front().map(|d| d.at)
    }

    /// How much later than the models have something to say they need to be
    /// asked: everything is held for at least as long.
    pub(crate) fn slack(&self) -> u64 {
        let holds = self.links.iter().map(|l| self.compensation.hold(l.reserve));
        holds.min().unwrap_or(0)
    }

    /// Writes up to `most` of what is due.
    pub(crate) fn write(&mut self, ports: &[Port], most: usize) {
        for _ in 0..most {
            if self.write_one(ports, monotonic_ns()).is_none() {
                return;
            }
        }
    }

    /// Writes the first of what is due at `now`, if anything is; says to which port.
    pub(crate) fn write_one(&mut self, ports: &[Port], now: u64) -> Option<usize> {
        if self.next().is_none_or(|at| at > now) {
            return None;
        }
        let due = self.due.pop_front()?;
        let mut port = None;
        self.lateness.delivery(due.intended, now);
        if due.compensated {
            self.compensation.wrote(now - due.at);
        }
        let span = due.span;
        if let Some(held) = self.buffers.get(span.id) {
            let link = &mut self.links[held.link];
            port = Some(link.to);
            let mut writer = Writer {
                from: &ports[link.from],
                to: &ports[link.to],
                checksums: self.checksums,
                headers: &mut self.headers,
            };
            if let Some(capture) = &mut self.capture {
                capture.record(held.link, held, span, 0);
            }
            for part in parts(span, self.checksums) {
                writer.write(held, part, link);
            }
        }
        self.buffers.release(span.id, span.packets());
        Some(port.unwrap_or(usize::MAX))
    }
}

/// The packets of `span` that are written together, first and end: those with
/// complete checksums one by one.
pub(super) fn parts(span: Span, checksums: Checksums) -> impl Iterator<Item = (u32, u32)> {
    let step = match checksums {
        Checksums::Partial => span.packets().max(1),
        Checksums::Complete => 1,
    };
    (span.first..span.end)
        .step_by(step as usize)
        .map(move |first| (first, first + step))
}

struct Since<'a> {
    base: u64,
    outbox: &'a mut Outbox,
}

impl Sink for Since<'_> {
    fn deliver(&mut self, at: Time, span: Span) {
        let out = &mut *self.outbox;
        let Some(held) = out.buffers.get(span.id) else {
            return;
        };
        let link = &mut out.links[held.link];
        let hold = out.compensation.hold(link.reserve);
        let at = self.base.saturating_add(at.as_nanos()).saturating_add(hold);
        // In order, although the hold varies.
        let at = at.max(link.last);
        link.last = at;
        let compensated = link.reserve > 0;
        let new = Due {
            at,
            intended: at
                + if compensated {
                    out.compensation.write()
                } else {
                    0
                },
            compensated,
            span,
        };
        match out.due.back() {
            Some(last) if last.at > at => {
                let i = out.due.partition_point(|d| d.at <= at);
                out.due.insert(i, new);
            }
            _ => out.due.push_back(new),
        }
    }

    fn discard(&mut self, span: Span, _cause: DropCause) {
        // The models count it.
        self.outbox.buffers.release(span.id, span.packets());
    }
}

struct Writer<'a> {
    from: &'a Port,
    to: &'a Port,
    checksums: Checksums,
    headers: &'a mut HeaderBuf,
}

impl Writer<'_> {
    fn write(&mut self, held: &Held, (first, end): (u32, u32), link: &mut LinkIo) {
        let (p, to) = (&held.packet, self.to.framing());
        let result = if p.is_whole(first, end, self.from.framing(), to, self.checksums) {
            self.to.write(&held.buf[..p.end])
        } else {
            let (n, payload) = p.headers(&held.buf, (first, end), to, self.checksums, self.headers);
            self.to.write_parts(&self.headers[..n], &held.buf[payload])
        };
        let packets = u64::from(end - first);
        let s = &mut link.stats;
        s.writes += 1;
        match result {
            Ok(()) => s.written_packets += packets,
            Err(e) => link.refused(packets, e),
        }
    }
}
