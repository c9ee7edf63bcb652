//! What comes out of the models, on its way to the ports.

use std::collections::VecDeque;

use braid_core::Time;
use nix::errno::Errno;

use super::api::IoStats;
use super::buffers::{Buffers, Held};
use super::capture::Capture;
use super::lateness::Lateness;
use super::port::Port;
use super::segment::{Checksums, HeaderBuf};
use super::timer::monotonic_ns;
use super::vnet::ETHERNET_LEN;
use crate::emulator::packet::MAX_HEADER;
use crate::model::{DropCause, Sink, Span};

/// The ends of a link, as indices of ports, and what happens there.
#[derive(Debug)]
pub(crate) struct LinkIo {
    pub(crate) name: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) stats: IoStats,
}

/// Packets that are due, and how they are written.
pub(crate) struct Outbox {
    pub(crate) buffers: Buffers,
    pub(crate) links: Vec<LinkIo>,
    pub(crate) lateness: Lateness,
    pub(crate) capture: Option<Capture>,
    checksums: Checksums,
    /// With the time at which they were due (`CLOCK_MONOTONIC`), in that order.
    due: VecDeque<(u64, Span)>,
    headers: Box<HeaderBuf>,
}

impl Outbox {
    pub(crate) fn new(
        buffers: Buffers,
        links: Vec<LinkIo>,
        checksums: Checksums,
        capture: Option<Capture>,
    ) -> Self {
        Self {
            buffers,
            links,
            lateness: Lateness::new(),
            capture,
            checksums,
            due: VecDeque::with_capacity(4096),
            headers: Box::new([0; MAX_HEADER + ETHERNET_LEN]),
        }
    }

    /// The sink of models whose time zero lies at `base` (`CLOCK_MONOTONIC`).
    pub(crate) fn since(&mut self, base: u64) -> impl Sink {
        Since { base, outbox: self }
    }

    /// Whether anything waits to be written.
    pub(crate) fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// Writes up to `most` of what is due.
    pub(crate) fn write(&mut self, ports: &[Port], most: usize) {
        for _ in 0..most {
            let Some((due, span)) = self.due.pop_front() else {
                return;
            };
            self.lateness.delivery(due, monotonic_ns());
            if let Some(held) = self.buffers.get(span.id) {
                let link = &mut self.links[held.link];
                let mut writer = Writer {
                    from: &ports[link.from],
                    to: &ports[link.to],
                    checksums: self.checksums,
                    headers: &mut self.headers,
                };
                if let Some(capture) = &mut self.capture {
                    capture.record(held.link, held, span);
                }
                match self.checksums {
                    Checksums::Partial => writer.write(held, (span.first, span.end), link),
                    Checksums::Complete => {
                        for i in span.first..span.end {
                            writer.write(held, (i, i + 1), link);
                        }
                    }
                }
            }
            self.buffers.release(span.id, span.packets());
        }
    }
}

struct Since<'a> {
    base: u64,
    outbox: &'a mut Outbox,
}

impl Sink for Since<'_> {
    fn deliver(&mut self, at: Time, span: Span) {
        let at = self.base.saturating_add(at.as_nanos());
        let due = &mut self.outbox.due;
        match due.back() {
            // Only around a new epoch, where two sets of models are at work.
            Some(&(last, _)) if last > at => {
                let i = due.partition_point(|&(t, _)| t <= at);
                due.insert(i, (at, span));
            }
            _ => due.push_back((at, span)),
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
            Err(Errno::EIO | Errno::ENETDOWN | Errno::ENXIO | Errno::ENODEV | Errno::EBADFD) => {
                s.drop_down += packets;
            }
            Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM) => s.drop_full += packets,
            Err(e) => {
                if s.drop_refused == 0 {
                    eprintln!(
                        "emulator: {}: the receiving host refused a packet of {} bytes ({packets} on the wire): {e}; such packets are counted, the first one is said",
                        link.name,
                        p.end - p.ip
                    );
                }
                s.drop_refused += packets;
            }
        }
    }
}
