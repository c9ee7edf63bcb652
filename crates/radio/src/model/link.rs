//! One direction of one access: queue, server, loss, delay, line.
//!
//! Everything happens at times computed from arrivals and the link's own state,
//! never from when it is asked: a service that began in the past is committed
//! with the time at which it began.

use std::collections::VecDeque;
use std::sync::Arc;

use braid_core::Time;
use braid_core::seed;

use super::codel::Codel;
use super::delay::Delay;
use super::line::Line;
use super::loss::Loss;
use super::queue::{Limit, Queue, Waiting};
use super::rate::{Capacity, Server};
use super::spec::{InFlight, LinkSpec, QueueSpec};
use super::stats::LinkStats;
use super::train::{DropCause, Sink, Span, Train};

/// Limit of a queue measured in time where the rate has no limit.
const UNTIMED_PACKETS: u64 = 1000;

/// The chunk that the server works on, or worked on last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Service {
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl Service {
    /// Packets, and their bytes, whose turn has not come at `now`.
    pub(super) fn waiting(&self, now: Time) -> (u64, u64) {
        if now >= self.end {
            return (0, 0);
        }
        let all = self.end.since(self.start).as_nanos();
        let past = now.since(self.start).as_nanos();
        // Less than `packets`, as `past` is less than `all`.
        let begun = (past * u128::from(self.packets) / all) as u64 + 1;
        let left = self.packets.saturating_sub(begun);
        (left, left * self.bytes / self.packets.max(1))
    }
}

/// Packets that wait for the same server in the queues of other links.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beside {
    /// Packets and their bytes.
    pub(super) waiting: (u64, u64),
    /// Packets that go into service at once.
    pub(super) direct: u32,
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) queue: Queue,
    pub(super) limit: QueueSpec,
    pub(super) codel: Option<Codel>,
    pub(super) server: Server,
    pub(super) loss: Loss,
    pub(super) delay: Delay,
    pub(super) line: Line,
    /// Packets that a medium took and has not settled.
    pub(super) taken: VecDeque<Waiting>,
    pub(super) overhead: u32,
    pub(super) outage: InFlight,
    /// See [`LinkSpec::mtu`].
    pub(super) mtu: Option<u32>,
    pub(super) up: bool,
    /// Whether a medium or a backhaul serves the queue.
    pub(super) shared: bool,
    /// From when the server is free.
    pub(super) free: Time,
    pub(super) service: Service,
    pub(super) stats: LinkStats,
    /// Bytes handed to the link at which to note the time; none ahead: the most there can be.
    pub(super) mark: u64,
    /// Kept for its memory.
    pub(super) sent: Vec<Waiting>,
    /// Capacity from each time on; `None`: down.
    pub(super) history: Vec<(Time, Option<Arc<Capacity>>)>,
}

impl Link {
    pub(super) fn new(seed: u64, name: &str, spec: &LinkSpec) -> Self {
        let stream = |part| seed::stream(seed, &format!("link/{name}/{part}"));
        let capacity = Arc::new(Capacity::new(&spec.rate));
        Self {
            queue: Queue::default(),
            limit: spec.queue,
            codel: codel(spec.queue),
            server: Server::new(Arc::clone(&capacity)),
            loss: Loss::new(&spec.loss, stream("loss")),
            delay: Delay::new(&spec.delay, spec.jitter, stream("jitter")),
            line: Line::default(),
            taken: VecDeque::new(),
            overhead: spec.overhead_bytes,
            outage: spec.outage,
            mtu: spec.mtu,
            up: true,
            shared: false,
            free: Time::ZERO,
            service: Service::default(),
            stats: LinkStats::default(),
            mark: u64::MAX,
            sent: Vec::new(),
            history: vec![(Time::ZERO, Some(capacity))],
        }
    }

    /// Takes in `train`, which arrives at `now`, `beside` what waits elsewhere.
    pub(super) fn enqueue(&mut self, now: Time, train: Train, beside: Beside, sink: &mut dyn Sink) {
        if train.packets == 0 {
            return;
        }
        self.stats.in_packets += u64::from(train.packets);
        self.stats.in_bytes += train.bytes(0, train.packets);
        if self.stats.in_bytes >= self.mark {
            self.mark = u64::MAX;
            self.stats.marked_ns = Some(now.as_nanos());
        }
        self.commit(now, sink);
        if !self.up && self.outage == InFlight::Lost {
            let all = Span {
                id: train.id,
                first: 0,
                end: train.packets,
            };
            self.stats.discard(all, DropCause::LinkDown, sink);
            return;
        }
        let mut direct = beside.direct;
        if self.up && !self.shared && self.queue.is_empty() && self.free <= now {
            if self.free < now {
                self.server.idle();
            }
            if self.server.capacity().unlimited() {
                // Nothing to wait for, and nothing to cut it for.
                let whole = Waiting {
                    train,
                    first: 0,
                    end: train.packets,
                    arrival: now,
                    seq: 0,
                };
                self.free = now;
                self.depart(whole, now, sink);
                return;
            }
            let first = self.on_wire(train.packet_bytes(0).into(), 1);
            direct = u32::from(self.server.begin(now, first) == Some(now));
        }
        let (limit, own) = (self.limit_at(now), self.service.waiting(now));
        let ahead = (own.0 + beside.waiting.0, own.1 + beside.waiting.1);
        let end = self.queue.push(train, now, limit, ahead, direct);
        if end < train.packets {
            let over = Span {
                id: train.id,
                first: end,
                end: train.packets,
            };
            self.stats.discard(over, DropCause::QueueFull, sink);
        }
        self.commit(now, sink);
    }

    /// Notes when `bytes` more have been handed to the link.
    pub(super) fn mark(&mut self, bytes: u64) {
        self.mark = self.stats.in_bytes.saturating_add(bytes);
        self.stats.marked_ns = None;
    }

    /// Commits what was served by `now` and delivers what arrived by then.
    pub(super) fn advance(&mut self, now: Time, sink: &mut dyn Sink) {
        self.commit(now, sink);
        while self.line.due().is_some_and(|due| due <= now) {
            let Some(f) = self.line.pop() else { return };
            self.stats.out_packets += u64::from(f.span.packets());
            self.stats.out_bytes += f.bytes;
            sink.deliver(f.due, f.span);
        }
    }

    /// When [`Link::advance`] has something to do next.
    pub(super) fn next_event(&self) -> Option<Time> {
        match self.line.due() {
            // What is served later arrives later, so that serving it can wait.
            Some(due) if !self.delay.reorders() => Some(due),
            due => due.into_iter().chain(self.next_service()).min(),
        }
    }

    pub(super) fn stats(&self) -> LinkStats {
        LinkStats {
            queue_bytes: self.queue.bytes(),
            queue_packets: self.queue.packets(),
            in_flight_packets: self.line.packets()
                + self
                    .taken
                    .iter()
                    .map(|w| u64::from(w.packets()))
                    .sum::<u64>(),
            up: self.up,
            ..self.stats
        }
    }

    /// Bytes of the packet at the head of the queue.
    pub(super) fn head_bytes(&self) -> Option<u64> {
        let head = self.queue.head()?;
        Some(head.train.packet_bytes(head.first).into())
    }

    pub(super) fn on_wire(&self, bytes: u64, packets: u32) -> u64 {
        bytes + u64::from(self.overhead) * u64::from(packets)
    }

    pub(super) fn limit_at(&self, now: Time) -> Limit {
        match self.limit {
            QueueSpec::Packets(n) => Limit::Packets(n.into()),
            QueueSpec::Codel { limit_packets, .. } => Limit::Packets(limit_packets.into()),
            QueueSpec::Bytes(bytes) => Limit::Bytes { bytes, overhead: 0 },
            QueueSpec::Time(d) => match self.server.capacity().nominal_at(now) {
                None => Limit::Packets(UNTIMED_PACKETS),
                Some(rate) => Limit::Bytes {
                    bytes: rate.bytes_in(d),
                    overhead: self.overhead,
                },
            },
        }
    }
}

/// The state of CoDel for a queue of `spec`.
pub(super) fn codel(spec: QueueSpec) -> Option<Codel> {
    match spec {
        QueueSpec::Codel {
            target, interval, ..
        } => Some(Codel::new(target, interval)),
        _ => None,
    }
}
