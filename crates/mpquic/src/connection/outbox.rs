//! Datagrams between the lane and QUIC.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use braid_core::sched::Paths;
use bytes::Bytes;
use noq_proto::Connection as Quic;

use super::path_scheduler::BURST;
use crate::lane::{Lane, Piece};
use crate::steering::Acks;
use crate::transport;

/// Bytes that the library counts of an empty queue, and less than one datagram.
const SPARE: usize = 64;
/// Bytes of a DATAGRAM frame's type and length (RFC 9221 4).
const DATAGRAM_HEADER: usize = 3;
/// Bytes of room that the library may have beyond what it says.
const SLACK: usize = 16;
/// How often acknowledgements are sent on two paths.
const COPY_EVERY: Duration = Duration::from_millis(4);

/// Datagrams that one path's worth of QUIC's queue holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queued {
    /// Number of their path.
    pub(super) path: u32,
    pub(super) count: usize,
    /// Whether no window holds them back.
    pub(super) exempt: bool,
    /// Whether it is one that is longer than any that has arrived.
    pub(super) probing: bool,
}

/// Datagrams that wait to leave. QUIC has one queue for all paths, so that those of one path
/// are put there at a time, and leave before any others.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// By the number of the path.
    waiting: VecDeque<(u32, Bytes)>,
    /// Number of datagrams in front that leave whatever the windows say: acknowledgements, and
    /// those of [`Outbox::push_first`].
    acks: usize,
    /// Datagrams in QUIC's queue.
    queued: Option<Queued>,
    /// On which path acknowledgements leave.
    on: Acks,
    turn: usize,
    /// When an acknowledgement was sent on two paths last.
    copied: Option<Instant>,
    /// Piece that was reinjected last, and the paths that it is on.
    reinjected: Option<(Piece, Paths)>,
}

impl Outbox {
    pub(super) fn new(on: Acks) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Returns whether nothing waits to be put into QUIC's queue.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the bytes of those.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.iter().map(|(_, data)| data.len()).sum()
    }

    /// Adds datagrams, each with the number of its path.
    pub(super) fn extend(&mut self, datagrams: impl IntoIterator<Item = (u32, Bytes)>) {
        self.waiting.extend(datagrams);
    }

    /// Adds a datagram before anything else, and whatever the windows say, on each of these
    /// paths.
    pub(super) fn push_first(&mut self, numbers: &[u32], data: &Bytes) {
        for number in numbers {
            self.waiting.push_front((*number, data.clone()));
        }
        self.acks += numbers.len();
    }

    /// Adds an acknowledgement, which `write` makes, on the first of `paths` ([`Acks`]), and now
    /// and then on the next before it: who only acknowledges does not notice that a path is
    /// dead, and QUIC's own acknowledgements go with the first. Returns whether there is one.
    pub(super) fn push_ack(
        &mut self,
        mut paths: Vec<u32>,
        now: Instant,
        write: impl FnOnce() -> Option<Bytes>,
    ) -> bool {
        if self.on == Acks::InTurn && !paths.is_empty() {
            self.turn += 1;
            let n = paths.len();
            paths.rotate_left(self.turn % n);
        }
        let again = self.copied.is_none_or(|t| now >= t + COPY_EVERY);
        paths.truncate(if again { 2 } else { 1 });
        if again {
            self.copied = Some(now);
            paths.reverse();
        }
        if paths.is_empty() {
            return false;
        }
        let Some(data) = write() else {
            return false;
        };
        self.acks = paths.len();
        self.waiting
            .extend(paths.into_iter().map(|path| (path, data.clone())));
        true
    }

    /// Returns the paths that a piece was reinjected on, if it was the last.
    pub(super) fn reinjected_on(&self, piece: Piece) -> Paths {
        match self.reinjected {
            Some((last, on)) if last == piece => on,
            _ => Paths::default(),
        }
    }

    /// Notes the paths that a piece is on with its reinjection.
    pub(super) fn set_reinjected(&mut self, piece: Piece, on: Paths) {
        self.reinjected = Some((piece, on));
    }

    /// Returns what is in QUIC's queue.
    pub(super) fn queued(&self) -> Option<Queued> {
        self.queued
    }

    /// Forgets the datagrams in QUIC's queue once they have left.
    pub(super) fn forget_queued(&mut self, quic: &mut Quic) {
        if quic.datagrams().send_buffer_space() >= transport::DATAGRAM_BUFFER - SPARE {
            self.queued = None;
        }
    }

    /// Puts what waits for one path into QUIC's queue.
    pub(super) fn enqueue(&mut self, quic: &mut Quic, lane: Option<&Lane>) {
        let Some(path) = self.waiting.front().map(|(n, _)| *n) else {
            return;
        };
        let mut queued = Queued {
            path,
            count: 0,
            exempt: self.acks > 0,
            probing: false,
        };
        let max = if self.acks > 0 {
            self.acks
        } else {
            BURST.get()
        };
        let room = quic.datagrams().max_size().unwrap_or(0);
        let size = lane.map_or(0, |l| l.paths().size(path));
        let mut packet = 0;
        while queued.count < max && !queued.probing {
            let next = self.waiting.front();
            let Some((_, data)) = next.filter(|(n, _)| *n == path) else {
                break;
            };
            // QUIC fills packets up to a size that this path may not carry.
            let joined = packet + DATAGRAM_HEADER + data.len();
            let joins = packet > 0 && joined <= room + SLACK;
            // One that looks whether it fits leaves alone.
            let probes = data.len() > size;
            if queued.count > 0 && (probes || joins && joined > size) {
                break;
            }
            queued.probing = probes;
            packet = if joins { joined } else { data.len() };
            let Some((_, data)) = self.waiting.pop_front() else {
                break;
            };
            self.acks = self.acks.saturating_sub(1);
            // One that is refused, as too large after the path's MTU fell, is lost.
            queued.count += usize::from(quic.datagrams().send(data, false).is_ok());
        }
        self.queued = (queued.count > 0).then_some(queued);
    }
}
