//! Choice of what is sent next, and on which path.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

use braid_core::sched::{Decision, Flow, MOST_BURST, MOST_PATHS, PathView};
use noq_proto::{PathStatus, Transmit};

use super::Connection;
use super::paths::Path;
use crate::congestion::Slot;
use crate::pacer::LONGEST_BURST;

pub(super) const BURST: NonZeroUsize = NonZeroUsize::new(MOST_BURST as usize).expect("not zero");

/// Gates that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    All,
    Only(usize),
    None,
}

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
        if self.quota == Some(0) {
            return None;
        }
        self.follow(now);
        self.note_in_flight();
        let transmit = match self.connected && !self.quic.is_closed() {
            true if self.lane.is_some() => self.lane_transmit(now, buf),
            true => self.scheduled(now, buf),
            false => {
                self.set_gates(Open::All);
                self.quic.poll_transmit(now, BURST, buf)
            }
        }?;
        self.quota = self.quota.map(|q| q.saturating_sub(1));
        let path = self.path_of(&transmit);
        if let Some(i) = path {
            let slots = self.shared.lock();
            let p = &mut self.paths[i];
            let slot = &slots[p.slot];
            // What no window holds back, such as acknowledgements, no pacer does: neither may
            // it hold up the rest.
            let bytes = slot.in_flight.saturating_sub(p.before);
            p.pacer.sent(now, bytes, slot);
            drop(slots);
            self.count(i, &transmit);
        }
        let access = match path {
            Some(i) => self.paths[i].access,
            None => self.first,
        };
        Some(Outgoing { transmit, access })
    }

    fn note_in_flight(&mut self) {
        let slots = self.shared.lock();
        for p in &mut self.paths {
            p.before = slots[p.slot].in_flight;
        }
    }

    /// Shares are of all that a link carries, while there is data to share; acknowledgements
    /// of what the peer sends are nobody's share.
    fn count(&mut self, path: usize, transmit: &Transmit) {
        let packets = transmit
            .size
            .div_ceil(transmit.segment_size.unwrap_or(transmit.size).max(1));
        let headers = match transmit.destination {
            SocketAddr::V4(_) => 28,
            SocketAddr::V6(_) => 48,
        };
        let bytes = (transmit.size + packets * headers) as u64;
        let number = self.paths[path].number;
        let view = self.views.iter().position(|v| v.id == number);
        if let Some(i) = view.filter(|_| self.busy) {
            self.scheduler.sent(&self.views, i, bytes);
        }
    }

    fn scheduled(&mut self, now: Instant, buf: &mut Vec<u8>) -> Option<Transmit> {
        if let Some(asked) = self.ask(now, buf) {
            return Some(asked);
        }
        self.look(now);
        // How much waits, the library does not tell.
        let flow = Flow {
            waiting: u64::from(crate::transport::PAYLOAD),
            send_window: u64::MAX,
        };
        let time = self.time(now);
        let decision = self.scheduler.decide(time, &flow, &self.views);
        let Decision::Send { path, most } = decision else {
            self.mark_idle();
            // Acknowledgements and probes leave all the same.
            self.set_gates(Open::None);
            return self.quic.poll_transmit(now, BURST, buf);
        };
        self.set_gates(Open::Only(path));
        let packets = NonZeroUsize::new(burst(&self.views[path], most) as usize);
        let packets = packets.unwrap_or(NonZeroUsize::MIN);
        if let Some(transmit) = self.quic.poll_transmit(now, packets, buf) {
            self.busy = true;
            return Some(transmit);
        }
        self.busy = false;
        self.mark_idle();
        if self.blocked {
            self.drain_slowest(now);
        }
        // No data waits, and what else there is may leave on any path.
        self.set_gates(Open::All);
        self.quic.poll_transmit(now, NonZeroUsize::MIN, buf)
    }

    /// The peer's window is full, and a path has room: the slowest holds the window up.
    fn drain_slowest(&mut self, now: Instant) {
        let busy = |v: &&PathView| v.usable && v.in_flight > 0;
        let slowest = self.views.iter().filter(busy).max_by_key(|v| v.srtt);
        let room = |v: &PathView| v.usable && v.has_room();
        let Some(number) = slowest.map(|v| v.id) else {
            return;
        };
        if self.views.iter().any(|v| v.id != number && room(v))
            && let Some(p) = self.paths.iter().find(|p| p.number == number)
        {
            self.shared.lock()[p.slot].drain(now);
        }
    }

    /// Shows the scheduler the paths as they are.
    pub(super) fn look(&mut self, now: Instant) {
        let mut slots = self.shared.lock();
        self.paced = None;
        self.views.clear();
        for p in self.paths.iter().take(MOST_PATHS) {
            let slot = &mut slots[p.slot];
            slot.ease(now);
            let mut view = view(p, slot);
            if let Some(access) = p.access.map(|i| &self.accesses[i]) {
                let beside = self.paths.iter().filter(|o| o.access == p.access);
                let beside = beside.filter(|o| o.established).count().max(1);
                view.weight = access.weight / beside as f64;
                view.priority = access.priority;
                view.backup = access.backup;
                view.usable &= access.usable();
            }
            if let Some(lane) = &self.lane {
                (view.srtt, view.rttvar) = lane.rtt(p.number).unwrap_or((view.srtt, view.rttvar));
                view.usable &= lane.suspect(p.number).is_none();
            }
            // To QUIC, it is a backup then, and no data leaves there.
            view.backup |= self.quic.path_status(p.id) == Ok(PathStatus::Backup);
            if p.access.is_some_and(|i| self.full[i]) {
                view.in_flight = view.window.max(1);
            }
            let wait = p.pacer.wait(now, slot).filter(|_| view.has_room());
            if let Some(at) = wait {
                view.in_flight = view.window.max(1);
                self.paced = Some(self.paced.map_or(at, |t| t.min(at)));
            }
            slot.idle &= view.has_room();
            self.views.push(view);
        }
        // Where nothing comes back on any path, all of them are tried.
        if self.lane.is_some() && !self.views.iter().any(|v| v.usable) {
            for (view, p) in self.views.iter_mut().zip(&self.paths) {
                view.usable = p.established;
            }
        }
    }

    /// Nothing is sent now: those that could have are not in full use.
    pub(super) fn mark_idle(&mut self) {
        let mut slots = self.shared.lock();
        for (p, view) in self.paths.iter().zip(&self.views) {
            slots[p.slot].idle = view.has_room();
        }
    }

    pub(super) fn set_gates(&mut self, open: Open) {
        let mut slots = self.shared.lock();
        for (i, p) in self.paths.iter().enumerate() {
            slots[p.slot].open = match open {
                Open::All => true,
                Open::Only(path) => path == i,
                Open::None => false,
            };
        }
    }

    /// The path that a burst leaves on.
    pub(super) fn path_of(&self, t: &Transmit) -> Option<usize> {
        let client = self.is_client();
        let same = |p: &Path| match client {
            true => p.network.local_ip() == t.src_ip,
            false => p.network.remote() == t.destination,
        };
        self.paths.iter().position(same)
    }
}

/// How many packets leave on a path at once, at least one: what is sent next on it may be
/// what the receiver waits for, and waits behind them.
pub(super) fn burst(view: &PathView, most: u64) -> u64 {
    let long = match view.rate() {
        0.0 => u64::MAX,
        rate => (rate * LONGEST_BURST.as_secs_f64()) as u64,
    };
    let bytes = most.min(view.room()).min(long).min(view.burst());
    (bytes / view.segment).max(1)
}

fn view(p: &Path, slot: &Slot) -> PathView {
    PathView {
        id: p.number,
        usable: p.established && slot.alive,
        backup: false,
        priority: 0,
        weight: 1.0,
        window: slot.window,
        in_flight: slot.in_flight,
        segment: slot.mtu.max(1),
        srtt: slot.srtt,
        rttvar: slot.rttvar,
        lost: slot.lost,
    }
}
