//! Sending and receiving on the datagram lane.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use braid_core::sched::xlink::{Oldest, reinject};
use braid_core::sched::{Decision, Flow, PathView, Paths};
use bytes::Bytes;
use noq_proto::{PathStatus, Transmit};

use super::Connection;
use super::own::Own;
use super::paths::Path;
use super::transmit::{BURST, Open, burst};
use crate::lane::{self, LaneError, Piece, What};
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

/// Datagrams between the lane and QUIC. QUIC has one queue for all paths, so that those
/// of one path are put there at a time, and leave before any others.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// By the number of the path.
    waiting: VecDeque<(u32, Bytes)>,
    /// Number of datagrams in front that leave whatever the windows say: acknowledgements, and
    /// what `first` puts there.
    acks: usize,
    /// The path of those that are in QUIC's queue, and how many.
    queued: Option<(u32, usize)>,
    /// Whether the datagrams in QUIC's queue were counted in `acks`.
    exempt: bool,
    /// There is one, and it is longer than any that has arrived.
    probing: bool,
    pub(super) own: Own,
    /// On which path acknowledgements leave.
    on: Acks,
    turn: usize,
    /// When an acknowledgement was sent on two paths last.
    copied: Option<Instant>,
    /// Piece that was reinjected last, and the paths that it is on.
    again: Option<(Piece, Paths)>,
}

impl Outbox {
    pub(super) fn new(on: Acks) -> Self {
        Self {
            on,
            ..Self::default()
        }
    }

    /// Before anything else, and whatever the windows say, on each of these paths.
    pub(super) fn first(&mut self, numbers: &[u32], data: &Bytes) {
        for number in numbers {
            self.waiting.push_front((*number, data.clone()));
        }
        self.acks += numbers.len();
    }
}

impl Connection {
    pub(super) fn receive_datagrams(&mut self, now: Instant) -> Result<(), LaneError> {
        while let Some(data) = self.quic.datagrams().recv() {
            if let Some(lane) = &mut self.lane {
                if lane::is_unnumbered(&data) {
                    self.outbox.own.acknowledged(now);
                }
                lane.receive(data, now)?;
            }
        }
        Ok(())
    }

    /// The next burst of a connection with a datagram lane.
    pub(super) fn lane_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.next_burst(now, buf);
        if transmit.is_none()
            && let Some(lane) = &mut self.lane
        {
            lane.defer(now);
        }
        transmit
    }

    fn next_burst(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.watch(now);
        loop {
            if let Some(sent) = self.queued(now, buf) {
                return Some(sent);
            }
            if self.outbox.queued.is_some() {
                // There is no room for them now; acknowledgements leave all the same.
                self.set_gates(Open::None);
                return self.quic.poll_transmit(now, BURST, buf);
            }
            if let Some(asked) = self.ask(now, buf) {
                return Some(asked);
            }
            if self.outbox.waiting.is_empty() && self.first_acknowledge(now) {
                self.enqueue();
                continue;
            }
            // An acknowledgement of the lane takes along what QUIC has to say; before it, QUIC's
            // own would leave on its first path, however slow that is.
            let soon = self.lane.as_ref().is_some_and(|l| l.will_acknowledge(now));
            if self.outbox.own.is_wanted() && !soon {
                self.set_gates(Open::All);
                if let Some(transmit) = self.quic.poll_transmit(now, BURST, buf) {
                    return Some(transmit);
                }
                self.outbox.own.said();
            }
            if self.outbox.waiting.is_empty() && !self.fill(now) {
                return None;
            }
            self.enqueue();
        }
    }

    /// Sends what is in QUIC's queue.
    fn queued(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let (number, count) = self.outbox.queued?;
        // Where nothing comes back, or QUIC sends no data any more, they would hold up all others.
        let mut all = self.paths.iter();
        let path = all.position(|p| p.number == number && !p.held && self.takes_data(p));
        self.set_gates(path.map_or(Open::All, Open::Only));
        self.exempt(path.filter(|_| self.outbox.exempt));
        let probing = path
            .filter(|_| self.outbox.probing)
            .map(|p| self.paths[p].slot);
        if let Some(slot) = probing {
            self.shared.lock()[slot].probing = true;
        }
        let most = NonZeroUsize::new(count.min(BURST.get())).unwrap_or(NonZeroUsize::MIN);
        let transmit = self.quic.poll_transmit(now, most, buf);
        if transmit.is_some() {
            self.outbox.own.answered();
        }
        self.exempt(None);
        if let Some(slot) = probing {
            self.shared.lock()[slot].probing = false;
        }
        if self.is_queue_empty() {
            self.outbox.queued = None;
        }
        transmit
    }

    /// Whether QUIC sends data there: on backups only where all are.
    pub(super) fn takes_data(&self, path: &Path) -> bool {
        let available = |p: &Path| self.quic.path_status(p.id) == Ok(PathStatus::Available);
        available(path) || !self.paths.iter().any(|p| p.established && available(p))
    }

    pub(super) fn exempt(&mut self, path: Option<usize>) {
        let mut slots = self.shared.lock();
        for (i, p) in self.paths.iter().enumerate() {
            slots[p.slot].exempt = path == Some(i);
        }
    }

    fn is_queue_empty(&mut self) -> bool {
        self.quic.datagrams().send_buffer_space() >= transport::DATAGRAM_BUFFER - SPARE
    }

    /// Puts what waits for one path into QUIC's queue.
    fn enqueue(&mut self) {
        let Some(number) = self.outbox.waiting.front().map(|(n, _)| *n) else {
            return;
        };
        let mut count = 0;
        let acks = self.outbox.acks;
        let most = if acks > 0 { acks } else { BURST.get() };
        self.outbox.exempt = acks > 0;
        let room = self.quic.datagrams().max_size().unwrap_or(0);
        let size = self.lane.as_ref().map_or(0, |l| l.size(number));
        let mut packet = 0;
        self.outbox.probing = false;
        while count < most && !self.outbox.probing {
            let next = self.outbox.waiting.front();
            let Some((_, data)) = next.filter(|(n, _)| *n == number) else {
                break;
            };
            // QUIC fills packets up to a size that this path may not carry.
            let joined = packet + DATAGRAM_HEADER + data.len();
            let joins = packet > 0 && joined <= room + SLACK;
            // One that looks whether it fits leaves alone.
            let probes = data.len() > size;
            if count > 0 && (probes || joins && joined > size) {
                break;
            }
            self.outbox.probing = probes;
            packet = if joins { joined } else { data.len() };
            let Some((_, data)) = self.outbox.waiting.pop_front() else {
                break;
            };
            self.outbox.acks = self.outbox.acks.saturating_sub(1);
            // One that is refused, as too large after the path's MTU fell, is lost.
            count += usize::from(self.quic.datagrams().send(data, false).is_ok());
        }
        self.outbox.queued = (count > 0).then_some((number, count));
    }

    /// Makes the lane write what is next but for acknowledgements; false if that is nothing.
    fn fill(&mut self, now: Instant) -> bool {
        self.look(now);
        let Some(room) = self.quic.datagrams().max_size() else {
            return false;
        };
        self.data(room, now) || {
            self.mark_idle();
            // Not while data waits that a scheduler holds back, as strict shares do.
            self.reinject && !self.busy && self.reinject(room, now)
        }
    }

    fn post(&mut self, number: u32, data: Bytes) -> bool {
        self.outbox.waiting.push_back((number, data));
        true
    }

    /// Before anything else that waits.
    fn first_acknowledge(&mut self, now: Instant) -> bool {
        if !self.lane.as_ref().is_some_and(|l| l.ack_due(now)) {
            return false;
        }
        self.look(now);
        let room = self.quic.datagrams().max_size();
        room.is_some_and(|room| self.acknowledge(room, now))
    }

    /// On the fastest path ([`Acks`]), and now and then on the next before it: who only acknowledges does
    /// not notice that a path is dead, and QUIC's own acknowledgements go with the first.
    fn acknowledge(&mut self, room: usize, now: Instant) -> bool {
        let Some(lane) = self.lane.as_mut().filter(|l| l.ack_due(now)) else {
            return false;
        };
        // The lane of who only acknowledges measures little. QUIC sees the queue that
        // acknowledgements make, which no window holds back.
        let slots = self.shared.lock();
        let seen = self.views.iter().zip(&self.paths).filter(|(v, _)| v.usable);
        let time = |(v, p): (_, &Path)| (v, slots[p.slot].srtt);
        let mut paths: Vec<(&PathView, Duration)> = seen.map(time).collect();
        drop(slots);
        paths.sort_by_key(|(v, below)| (v.backup, v.srtt.is_zero(), v.srtt.max(*below)));
        // On a backup nothing leaves as long as there is another.
        let others = paths.iter().filter(|(v, _)| !v.backup).count();
        paths.truncate(others.max(1));
        if self.outbox.on == Acks::InTurn && !paths.is_empty() {
            self.outbox.turn += 1;
            let n = paths.len();
            paths.rotate_left(self.outbox.turn % n);
        }
        let copied = self.outbox.copied;
        let again = copied.is_none_or(|t| now >= t + COPY_EVERY);
        paths.truncate(if again { 2 } else { 1 });
        if again {
            self.outbox.copied = Some(now);
            paths.reverse();
        }
        if paths.is_empty() {
            return false;
        }
        let Some(data) = lane.write_ack(room, now) else {
            return false;
        };
        let copies = paths.iter().map(|(v, _)| (v.id, data.clone()));
        self.outbox.acks = paths.len();
        self.outbox.waiting.extend(copies);
        true
    }

    /// Paths from which nothing comes back: QUIC asks them (with its probes), the peer is
    /// told not to acknowledge there, and what they are held for ends with the first
    /// acknowledgement of what was sent since.
    pub(super) fn watch(&mut self, now: Instant) {
        let Some(lane) = &mut self.lane else {
            return;
        };
        let quic = &self.quic;
        let available = |p: &Path| quic.path_status(p.id) == Ok(PathStatus::Available);
        let asked = self
            .quiet
            .look(&self.paths, &self.shared, lane, available, now);
        if let Some(id) = asked {
            let _ = self.quic.ping_path(id);
            self.outbox.own.stir();
        }
        let mut changed = Vec::new();
        let all = self.paths.iter_mut().enumerate();
        for (i, p) in all.filter(|(_, p)| p.established) {
            let since = lane.suspect(p.number);
            let newest = self.shared.lock()[p.slot].newest;
            if newest > p.newest {
                p.newest = newest;
                lane.heard(p.number, now);
            }
            let back = since.is_some_and(|s| newest.is_some_and(|n| n >= s));
            if back {
                lane.revive(p.number, now);
            }
            let held = since.is_some() && !back;
            if held != p.held {
                p.held = held;
                p.ask.set(held, now);
                let _ = self.quic.ping_path(p.id);
                changed.push(i);
            }
        }
        if !changed.is_empty() {
            self.look_alive(now);
        }
        for i in changed {
            self.want(i, now);
        }
    }

    fn data(&mut self, room: usize, now: Instant) -> bool {
        let time = self.time(now);
        let Some(lane) = &mut self.lane else {
            return false;
        };
        let (waiting, send_window) = lane.flow();
        self.busy = waiting > 0;
        if waiting == 0 {
            return false;
        }
        let flow = |waiting| Flow {
            waiting,
            send_window,
        };
        let lost = lane.lost();
        let again = (lost > 0).then(|| {
            let late = |i: &usize| lane.is_late(self.views[*i].id, now);
            let late = (0..self.views.len()).filter(late).collect();
            let scheduler = &mut self.scheduler;
            scheduler.decide_lost(time, &flow(lost), &self.views, late)
        });
        let (what, decision) = match again {
            Some(again) if !matches!(again, Decision::Wait(_)) || waiting == lost => {
                (What::All, again)
            }
            _ => {
                let new = flow(waiting - lost);
                (What::New, self.scheduler.decide(time, &new, &self.views))
            }
        };
        lane.leave(self.outbox.own.room());
        match decision {
            Decision::Send { path, most } => {
                let view = &self.views[path];
                for _ in 0..burst(view, most) {
                    let next = lane.write_next(&[view.id], room, what, now);
                    // It takes all of that along.
                    lane.leave(0);
                    if next.is_empty() {
                        break;
                    }
                    self.outbox.waiting.extend(next);
                }
            }
            Decision::Copies(set) => {
                let ids: Vec<u32> = set.iter().map(|i| self.views[i].id).collect();
                self.outbox
                    .waiting
                    .extend(lane.write_next(&ids, room, what, now));
            }
            Decision::Wait(_) => {}
        }
        !self.outbox.waiting.is_empty()
    }

    fn reinject(&mut self, room: usize, now: Instant) -> bool {
        let time = self.time(now);
        let Some(lane) = &mut self.lane else {
            return false;
        };
        let Some((number, sent, pieces)) = lane.oldest() else {
            return false;
        };
        let first = pieces[0];
        let mut on = match self.outbox.again {
            Some((piece, on)) if piece == first => on,
            _ => Paths::default(),
        };
        if let Some(i) = self.views.iter().position(|v| v.id == number) {
            on.insert(i);
        }
        let waited = now.saturating_duration_since(sent);
        let oldest = Oldest {
            on,
            sent: time - waited,
            bytes: u64::from(transport::PAYLOAD),
        };
        let Some(i) = reinject(time, &oldest, &self.views) else {
            return false;
        };
        on.insert(i);
        self.outbox.again = Some((first, on));
        lane.leave(self.outbox.own.room());
        match lane.write_copy(self.views[i].id, &pieces, room, now) {
            Some(data) => self.post(self.views[i].id, data),
            None => false,
        }
    }
}
