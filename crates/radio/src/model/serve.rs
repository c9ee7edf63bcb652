//! How a link serves its queue.

use std::time::Duration;

use braid_core::Time;

use super::codel::{HeadPacket, Standing};
use super::line::Flight;
use super::link::{Link, Service};
use super::queue::{Queue, Waiting, fit};
use super::rate::Server;
use super::stats::LinkStats;
use super::train::{DropCause, Sink, Span};

/// Packets that are served together and arrive together take at most this
/// much of the link's time: small beside any delay that matters, long enough
/// that a fast link needs few wake-ups and writes.
pub(super) const CHUNK: Duration = Duration::from_micros(200);

impl Link {
    /// When the next service begins.
    pub(super) fn next_service(&self) -> Option<Time> {
        if !self.up || self.shared {
            return None;
        }
        let head = self.queue.head()?;
        let first = self.on_wire(head.train.packet_bytes(head.first).into(), 1);
        self.server.begin(self.free.max(head.arrival), first)
    }

    /// Serves everything whose service begins by `now`.
    pub(super) fn commit(&mut self, now: Time, sink: &mut dyn Sink) {
        while let Some(start) = self.next_service().filter(|&s| s <= now) {
            if self.codel.is_some() {
                self.serve_managed(start, sink);
            } else {
                self.serve_chunk(start, sink);
            }
        }
    }

    /// Serves a [`chunk`] from `start` on.
    fn serve_chunk(&mut self, start: Time, sink: &mut dyn Sink) {
        if let Some((packets, service)) = chunk(
            &mut self.queue,
            &mut self.server,
            self.overhead,
            start,
            CHUNK,
        ) {
            self.served(service);
            self.depart(packets, service.end, sink);
        }
    }

    /// [`Link::serve_chunk`] under CoDel, which looks at every packet at the
    /// time at which its own service begins.
    fn serve_managed(&mut self, start: Time, sink: &mut dyn Sink) {
        let Some(next_train) = self.queue.head().map(|h| h.seq + u64::from(h.packets())) else {
            return;
        };
        let mut sent = std::mem::take(&mut self.sent);
        let mut service = Service {
            start,
            end: start,
            packets: 0,
            bytes: 0,
        };
        let mut until = start + CHUNK;
        // The head is looked at before CoDel sees it, so that CoDel is not asked
        // about the first packet of the next chunk before its time.
        while let Some(end) = self.head_finish(service.end, next_train) {
            if service.packets > 0 && end > until {
                break;
            }
            self.manage(service.end, sink);
            let Some(end) = self.head_finish(service.end, next_train) else {
                break;
            };
            let Some(packet) = self.queue.pop(1) else {
                break;
            };
            if service.packets == 0 {
                until = until.max(end);
            }
            let wire = self.on_wire(packet.bytes(), 1);
            service.end = self.server.serve(service.end, wire);
            service.packets += 1;
            service.bytes += packet.bytes();
            match sent.last_mut() {
                Some(w) if w.end == packet.first => w.end = packet.end,
                _ => sent.push(packet),
            }
        }
        if service.packets > 0 {
            self.served(service);
        }
        for run in sent.drain(..) {
            self.depart(run, service.end, sink);
        }
        self.sent = sent;
    }

    /// When the packet at the head of the queue has passed if its service
    /// begins at `start`; `None` also if it is not before number `before`.
    fn head_finish(&self, start: Time, before: u64) -> Option<Time> {
        let head = self.queue.head().filter(|h| h.seq < before)?;
        let wire = self.on_wire(head.train.packet_bytes(head.first).into(), 1);
        self.server.finish(start, wire)
    }

    fn served(&mut self, service: Service) {
        self.service = service;
        self.free = service.end;
    }

    /// Lets CoDel drop packets off the head, which is about to be sent at `now`.
    pub(super) fn manage(&mut self, now: Time, sink: &mut dyn Sink) {
        if let Some(codel) = &mut self.codel {
            let mut heads = Heads {
                queue: &mut self.queue,
                stats: &mut self.stats,
                sink,
            };
            codel.drop_until_sendable(now, &mut heads);
        }
    }

    /// `packets` leave the server at `at`; those that are not lost take off.
    pub(super) fn depart(&mut self, mut packets: Waiting, at: Time, sink: &mut dyn Sink) {
        self.stats.sent_packets += u64::from(packets.packets());
        self.stats.sent_bytes += packets.bytes();
        while packets.packets() > 0 {
            let Some(lost) = self.loss.next(packets.packets(), at) else {
                break;
            };
            if lost > 0 {
                let good = packets.split(lost);
                self.fly(good, at, sink);
            }
            let bad = packets.split(1);
            self.stats.discard(bad.span(), DropCause::Loss, sink);
        }
        if packets.packets() > 0 {
            self.fly(packets, at, sink);
        }
    }

    /// `packets` leave for the far end at `at`; those that are too long for it do not arrive.
    pub(super) fn fly(&mut self, mut packets: Waiting, at: Time, sink: &mut dyn Sink) {
        if let Some(mtu) = self.mtu {
            let long = packets.longer_than(mtu);
            if long > 0 {
                let lost = packets.split(long);
                self.stats.discard(lost.span(), DropCause::TooLong, sink);
            }
        }
        while packets.packets() > 0 {
            // Packets that may overtake each other travel one by one.
            let n = if self.delay.reorders() {
                1
            } else {
                packets.packets()
            };
            let part = packets.split(n);
            self.line.push(Flight {
                due: self.delay.arrival(at),
                span: part.span(),
                bytes: part.bytes(),
            });
        }
    }
}

/// Serves packets of the train at the head of `queue` from `start` on, for up
/// to `length`; at least one packet, and at delivery opportunities all that
/// leave in the same millisecond. `None`: the queue is empty.
pub(super) fn chunk(
    queue: &mut Queue,
    server: &mut Server,
    overhead: u32,
    start: Time,
    length: Duration,
) -> Option<(Waiting, Service)> {
    let head = queue.head()?;
    let wire = |bytes: u64, packets: u32| bytes + u64::from(overhead) * u64::from(packets);
    let first = wire(head.train.packet_bytes(head.first).into(), 1);
    let until = (start + length).max(server.finish(start, first).unwrap_or(start));
    let room = server.room(start, until);
    let end = fit(&head.train, head.first, head.end, room, overhead);
    let n = (end - head.first).max(1);
    let packets = queue.pop(n)?;
    let end = server.serve(start, wire(packets.bytes(), packets.packets()));
    let service = Service {
        start,
        end,
        packets: packets.packets().into(),
        bytes: packets.bytes(),
    };
    Some((packets, service))
}

/// The queue of a link as CoDel sees it.
struct Heads<'a> {
    queue: &'a mut Queue,
    stats: &'a mut LinkStats,
    sink: &'a mut dyn Sink,
}

impl Standing for Heads<'_> {
    fn head(&self) -> Option<HeadPacket> {
        let head = self.queue.head()?;
        let bytes = u64::from(head.train.packet_bytes(head.first));
        Some(HeadPacket {
            arrival: head.arrival,
            bytes,
            behind: self.queue.bytes() - bytes,
        })
    }

    fn drop_head(&mut self) {
        if let Some(w) = self.queue.pop(1) {
            let span: Span = w.span();
            self.stats.discard(span, DropCause::Codel, self.sink);
        }
    }
}
