//! Choice of what is sent next, and on which path, on either lane.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use braid_core::Time;
use braid_core::class::DEFAULT_NUMBER;
use braid_core::sched::xlink::{Oldest, reinject};
use braid_core::sched::{Decision, Flow, PathView, only_backups, takes_part};
use noq_proto::Transmit;

use super::Connection;
use super::path_scheduler::{BURST, burst, ip_bytes};
use super::path_set::Open;
use crate::lane::Selection;
use crate::transport;

/// A burst of UDP datagrams that is to be sent.
#[derive(Debug)]
pub struct Outgoing {
    /// Part of the buffer to send, where to and from where.
    pub transmit: Transmit,
    /// The access that it leaves on; none where that is left to the routing.
    pub access: Option<usize>,
}

impl Connection {
    /// Writes the next burst into `buf`, which is empty; none if nothing is to be sent
    /// now.
    pub fn poll_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Outgoing> {
        if self.burst_quota == Some(0) {
            return None;
        }
        self.paths.count_load(now);
        let outgoing = self.next_outgoing(now, buf);
        if outgoing.is_none() && self.scheduler.has_data() {
            self.paths.note_load(&self.congestion, &self.accesses, now);
        }
        outgoing
    }

    fn next_outgoing(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Outgoing> {
        self.follow(now);
        self.paths.note_in_flight(&self.congestion);
        let transmit = match self.connected && !self.quic.is_closed() {
            true if self.lane.is_some() => self.lane_transmit(now, buf),
            true => self.stream_transmit(now, buf),
            false => self.poll_quic(Open::All, BURST, now, buf),
        }?;
        self.burst_quota = self.burst_quota.map(|q| q.saturating_sub(1));
        let path = self.paths.of_transmit(&transmit, self.is_client());
        let access = match path {
            Some(i) => {
                let p = &mut self.paths[i];
                let slot = &self.congestion.lock()[p.slot];
                // What no window holds back, such as acknowledgements, no pacer does: neither
                // may it hold up the rest.
                let bytes = slot.in_flight.saturating_sub(p.in_flight_before);
                p.pacer.sent(now, bytes, slot);
                self.scheduler.count_sent((p.number, p.access), &transmit);
                let access = p.access;
                self.accesses.count_sent(access, ip_bytes(&transmit), now);
                access
            }
            None => self.accesses.initial(),
        };
        Some(Outgoing { transmit, access })
    }

    /// Polls QUIC for a burst with these gates open.
    fn poll_quic(
        &mut self,
        open: Open,
        packets: NonZeroUsize,
        now: Instant,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.paths.set_gates(&self.congestion, open);
        self.quic.poll_transmit(now, packets, buf)
    }

    fn update_views(&mut self, now: Instant) {
        let times = (self.time(now), now);
        if let Some(lane) = &self.lane {
            let of = (&mut self.quic, &**lane);
            self.scheduler
                .watch(&mut self.paths, &self.congestion, of, times);
        }
        self.scheduler.update_views(
            &self.paths,
            &self.accesses,
            &self.congestion,
            (&self.quic, self.lane.as_deref()),
            now,
        );
    }

    /// Returns the time as schedulers are told it.
    fn time(&self, now: Instant) -> Time {
        Time::from(now.duration_since(self.began))
    }

    /// Writes a ping for the first path for which it is due and that can send one. A path that
    /// the library has closed cannot: the others are not to wait for it.
    fn ping_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        while let Some(i) = self.paths.iter().position(|p| p.ping.is_due()) {
            self.paths[i].ping.sent();
            if self.quic.ping_path(self.paths[i].id).is_err() {
                continue;
            }
            self.paths.set_gates(&self.congestion, Open::Only(i));
            self.paths.set_exempt(&self.congestion, Some(i));
            let transmit = self.quic.poll_transmit(now, NonZeroUsize::MIN, buf);
            self.paths.set_exempt(&self.congestion, None);
            if transmit.is_some() {
                return transmit;
            }
        }
        None
    }

    /// Writes the next burst of a connection on streams of QUIC.
    fn stream_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(ping) = self.ping_transmit(now, buf) {
            return Some(ping);
        }
        self.update_views(now);
        // How much waits, the library does not tell.
        let flow = Flow {
            waiting: u64::from(transport::PAYLOAD),
            send_window: u64::MAX,
        };
        let time = self.time(now);
        let decision = self.scheduler.decide(DEFAULT_NUMBER, time, &flow);
        let Decision::Send { path, most } = decision else {
            self.scheduler.mark_idle(&self.paths, &self.congestion);
            // Acknowledgements and probes leave all the same.
            return self.poll_quic(Open::None, BURST, now, buf);
        };
        let packets = burst(&self.scheduler.views()[path], most) as usize;
        let packets = NonZeroUsize::new(packets).unwrap_or(NonZeroUsize::MIN);
        if let Some(transmit) = self.poll_quic(Open::Only(path), packets, now, buf) {
            self.scheduler.set_has_data(true);
            return Some(transmit);
        }
        self.scheduler.set_has_data(false);
        self.scheduler.mark_idle(&self.paths, &self.congestion);
        if self.stream_blocked {
            self.drain_slowest(now);
        }
        // No data waits, and what else there is may leave on any path.
        self.poll_quic(Open::All, NonZeroUsize::MIN, now, buf)
    }

    /// The peer's window is full, and a path has room: the slowest holds the window up.
    fn drain_slowest(&mut self, now: Instant) {
        let slowest = self.scheduler.slowest_beside_room();
        if let Some(p) = slowest.and_then(|n| self.paths.by_number(n)) {
            self.congestion.lock()[p.slot].drain(now);
        }
    }

    /// Writes the next burst of a connection with a datagram lane.
    fn lane_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let transmit = self.next_burst(now, buf);
        if transmit.is_none()
            && let Some(lane) = &mut self.lane
        {
            lane.defer(now);
        }
        transmit
    }

    fn next_burst(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        self.detect_silence(now);
        loop {
            if let Some(sent) = self.queued_transmit(now, buf) {
                return Some(sent);
            }
            if self.outbox.queued().is_some() {
                // There is no room for them now; acknowledgements leave all the same.
                return self.poll_quic(Open::None, BURST, now, buf);
            }
            if let Some(ping) = self.ping_transmit(now, buf) {
                return Some(ping);
            }
            if self.outbox.is_empty() && self.write_ack(now) {
                self.outbox.enqueue(&mut self.quic, self.lane.as_deref());
                continue;
            }
            // An acknowledgement of the lane takes along what QUIC has to say; before it, QUIC's
            // own would leave on its first path, however slow that is.
            let soon = self.lane.as_ref().is_some_and(|l| l.will_acknowledge(now));
            if self.control.is_wanted() && !soon {
                if let Some(transmit) = self.poll_quic(Open::All, BURST, now, buf) {
                    return Some(transmit);
                }
                self.control.drained();
            }
            if self.outbox.is_empty() && !self.fill(now) {
                return None;
            }
            self.outbox.enqueue(&mut self.quic, self.lane.as_deref());
        }
    }

    /// Sends what is in QUIC's queue.
    fn queued_transmit(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        let queued = self.outbox.queued()?;
        // Where nothing comes back, or QUIC sends no data any more, they would hold up all others.
        let (paths, quic) = (&self.paths, &self.quic);
        let path = paths
            .iter()
            .position(|p| p.number == queued.path && !p.held && paths.takes_data(p, quic));
        self.paths
            .set_gates(&self.congestion, path.map_or(Open::All, Open::Only));
        let exempt = path.filter(|_| queued.exempt);
        self.paths.set_exempt(&self.congestion, exempt);
        let probing = path.filter(|_| queued.probing).map(|p| self.paths[p].slot);
        if let Some(slot) = probing {
            self.congestion.lock()[slot].probing = true;
        }
        let packets = NonZeroUsize::new(queued.count.min(BURST.get()));
        let packets = packets.unwrap_or(NonZeroUsize::MIN);
        let transmit = self.quic.poll_transmit(now, packets, buf);
        if transmit.is_some() {
            self.control.ack_sent();
        }
        self.paths.set_exempt(&self.congestion, None);
        if let Some(slot) = probing {
            self.congestion.lock()[slot].probing = false;
        }
        self.outbox.forget_queued(&mut self.quic);
        transmit
    }

    /// Writes an acknowledgement of the lane, before anything else that waits, if one is due.
    fn write_ack(&mut self, now: Instant) -> bool {
        if !self.lane.as_ref().is_some_and(|l| l.ack_due(now)) {
            return false;
        }
        self.update_views(now);
        let room = self.quic.datagrams().max_size();
        let (Some(room), Some(lane)) = (room, &mut self.lane) else {
            return false;
        };
        let paths = self.scheduler.ack_paths(&self.paths, &self.congestion);
        self.outbox
            .push_ack(paths, now, || lane.write_ack(room, now))
    }

    /// Writes what the lane has next but for acknowledgements; false if that is nothing.
    fn fill(&mut self, now: Instant) -> bool {
        self.update_views(now);
        let Some(room) = self.quic.datagrams().max_size() else {
            return false;
        };
        self.write_data(room, now) || {
            self.scheduler.mark_idle(&self.paths, &self.congestion);
            self.scheduler.may_reinject() && self.reinject(room, now)
        }
    }

    /// Writes data of the class whose turn it is, or of the next one whose scheduler sends; false
    /// if none does.
    fn write_data(&mut self, room: usize, now: Instant) -> bool {
        let Some(lane) = &mut self.lane else {
            return false;
        };
        lane.prepare(now);
        let with_room: Vec<u32> = match lane.has_copies() {
            true => free(self.scheduler.views()).collect(),
            false => Vec::new(),
        };
        let lane = &*lane;
        let waits = |class| {
            let copies = || with_room.iter().any(|path| lane.has_copy(class, *path));
            lane.waiting_in(class) > 0 || copies()
        };
        let (order, count) = self.scheduler.order(lane.classes(), waits);
        self.scheduler.set_has_data(count > 0);
        for (asked, class) in order[..count].iter().enumerate() {
            let active = self.lane.as_ref().map_or(1, |l| l.active(*class));
            let written = self.write_class(*class, room, now);
            if written > 0 {
                self.scheduler
                    .written(*class, written, active, &order[..asked]);
                return true;
            }
        }
        false
    }

    /// Writes data of one class, which has some; returns the bytes, none if its scheduler sends
    /// nothing now.
    fn write_class(&mut self, class: u8, room: usize, now: Instant) -> usize {
        let time = self.time(now);
        let Some(lane) = &mut self.lane else {
            return 0;
        };
        self.scheduler.show(class, &self.accesses);
        if lane.has_copies() {
            // What has left elsewhere comes before what is new.
            for path in free(self.scheduler.shown(class)) {
                if let Some(copy) = lane.write_pending_copy(class, path, room, now) {
                    let written = copy.len();
                    self.outbox.extend([(path, copy)]);
                    return written;
                }
            }
        }
        let (waiting, send_window) = lane.flow(class);
        if waiting == 0 {
            return 0;
        }
        let flow = |waiting| Flow {
            waiting,
            send_window,
        };
        let lost = lane.retransmit_bytes(class);
        let retransmit = (lost > 0).then(|| {
            let late = |number| lane.paths().is_late(number, now);
            self.scheduler
                .decide_retransmit(class, time, &flow(lost), late)
        });
        let (selection, decision) = match retransmit {
            Some(decision) if !matches!(decision, Decision::Wait(_)) || waiting == lost => {
                (Selection::All, decision)
            }
            _ => {
                let new = flow(waiting - lost);
                (Selection::New, self.scheduler.decide(class, time, &new))
            }
        };
        lane.leave(self.control.room());
        let by_delay = self.scheduler.by_delay(class);
        let views = self.scheduler.shown(class);
        match decision {
            Decision::Send { path, most } => {
                let view = &views[path];
                let usable = views.iter().filter(|v| v.usable && !v.backup);
                let fastest = usable.map(|v| v.srtt).min().filter(|_| by_delay);
                let fastest = fastest.unwrap_or(view.srtt);
                lane.set_behind(view.srtt.saturating_sub(fastest) / 2);
                for _ in 0..burst(view, most) {
                    let next = lane.write_next((&[view.id], &[]), room, (class, selection), now);
                    // It takes all of that along.
                    lane.leave(0);
                    if next.is_empty() {
                        break;
                    }
                    self.outbox.extend(next);
                }
            }
            Decision::Copies(set) => {
                lane.set_behind(Duration::ZERO);
                let ids: Vec<u32> = set.iter().map(|i| views[i].id).collect();
                let backups = only_backups(views);
                let full = |v: &&PathView| takes_part(v, backups) && !ids.contains(&v.id);
                let later: Vec<u32> = views.iter().filter(full).map(|v| v.id).collect();
                let copies = lane.write_next((&ids, &later), room, (class, selection), now);
                self.outbox.extend(copies);
            }
            Decision::Wait(_) => {}
        }
        // Nothing else waited there.
        self.outbox.bytes()
    }

    fn reinject(&mut self, room: usize, now: Instant) -> bool {
        let time = self.time(now);
        let Some(lane) = &mut self.lane else {
            return false;
        };
        let classes = self.scheduler.reinjecting();
        let Some((class, number, sent, pieces)) = lane.oldest(classes) else {
            return false;
        };
        self.scheduler.show(class, &self.accesses);
        let views = self.scheduler.shown(class);
        let mut on = self.outbox.reinjected_on(pieces[0]);
        if let Some(i) = views.iter().position(|v| v.id == number) {
            on.insert(i);
        }
        let waited = now.saturating_duration_since(sent);
        let oldest = Oldest {
            on,
            sent: time - waited,
            bytes: u64::from(transport::PAYLOAD),
        };
        let Some(i) = reinject(time, &oldest, views) else {
            return false;
        };
        on.insert(i);
        self.outbox.set_reinjected(pieces[0], on);
        lane.leave(self.control.room());
        let number = views[i].id;
        let copy = lane.write_copy(number, &pieces, room, now);
        let written = copy.is_some();
        self.outbox.extend(copy.map(|data| (number, data)));
        written
    }
}

/// Returns the numbers of the usable paths that have room.
fn free(views: &[PathView]) -> impl Iterator<Item = u32> {
    let free = views.iter().filter(|v| v.usable && v.has_room());
    free.map(|v| v.id)
}
