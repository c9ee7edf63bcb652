//! Packet schedulers of a connection, one for each class, and the paths as they are shown them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use braid_core::Time;
use braid_core::class::{DEFAULT_NUMBER, MAX_CLASSES};
use braid_core::sched::{Decision, Flow, MOST_BURST, MOST_PATHS, PathView, Paths};
use noq_proto::{Connection as Quic, PathStatus, Transmit};

use super::access_set::AccessSet;
use super::class_set::{ClassSet, Order, Place};
use super::path_set::{Path, PathSet};
use super::path_watch::PathWatch;
use crate::congestion::{CongestionSet, Slot};
use crate::lane::Lane;
use crate::pacer::LONGEST_BURST;

/// Maximum packets of a burst.
pub(super) const BURST: NonZeroUsize = NonZeroUsize::new(MOST_BURST as usize).expect("not zero");

/// Schedulers, and their view of the paths.
pub(super) struct PathScheduler {
    classes: ClassSet,
    /// Class that was written last.
    writing: u8,
    /// Bytes that have left of each class on each access, while there are classes.
    sent: BTreeMap<(u8, usize), u64>,
    /// Views of the first paths, in their order; kept for their room.
    views: Vec<PathView>,
    /// Their accesses.
    places: Vec<Place>,
    /// Whether a limit of the rate keeps each from sending.
    limited: Vec<bool>,
    watch: PathWatch,
    /// Whether data waited when the scheduler was asked last.
    has_data: bool,
    /// When a path that has to wait may send.
    paced_until: Option<Instant>,
}

impl PathScheduler {
    pub(super) fn new(classes: ClassSet) -> Self {
        Self {
            classes,
            writing: DEFAULT_NUMBER,
            sent: BTreeMap::new(),
            views: Vec::new(),
            places: Vec::new(),
            limited: Vec::new(),
            watch: PathWatch::default(),
            has_data: false,
            paced_until: None,
        }
    }

    /// Returns the classes, to be steered otherwise from the next packet on.
    pub(super) fn classes(&mut self) -> &mut ClassSet {
        &mut self.classes
    }

    /// Returns whether something of some class may be reinjected: not while data waits that a
    /// scheduler holds back, as strict shares do.
    pub(super) fn may_reinject(&self) -> bool {
        !self.has_data && self.classes.any_reinjects()
    }

    /// Returns in which classes what blocks the receiver is reinjected, by their numbers.
    pub(super) fn reinjecting(&mut self) -> [bool; MAX_CLASSES] {
        std::array::from_fn(|class| self.classes.reinjects(class as u8))
    }

    /// Returns the paths as they were at the latest [`PathScheduler::update_views`].
    pub(super) fn views(&self) -> &[PathView] {
        &self.views
    }

    /// Returns whether data waited when the scheduler was asked last.
    pub(super) fn has_data(&self) -> bool {
        self.has_data
    }

    /// Notes whether data waits.
    pub(super) fn set_has_data(&mut self, has_data: bool) {
        self.has_data = has_data;
    }

    /// Returns when a path that has to wait may send.
    pub(super) fn paced_until(&self) -> Option<Instant> {
        self.paced_until
    }

    /// Handles the passing of time.
    pub(super) fn on_timeout(&mut self, now: Instant) {
        self.paced_until = self.paced_until.filter(|t| *t > now);
    }

    /// Shows the scheduler the paths as they are.
    pub(super) fn update_views(
        &mut self,
        paths: &PathSet,
        accesses: &AccessSet,
        congestion: &CongestionSet,
        (quic, lane): (&Quic, Option<&Lane>),
        now: Instant,
    ) {
        let short_queues = lane.is_some_and(|l| l.wants_short_queues(now));
        let mut slots = congestion.lock();
        self.paced_until = None;
        self.views.clear();
        self.places.clear();
        self.limited.clear();
        for p in paths.iter().take(MOST_PATHS) {
            let slot = &mut slots[p.slot];
            slot.ease(now);
            let mut view = view(p, slot);
            if short_queues {
                view.window = slot.short_window();
            }
            let mut beside = 1.0;
            if let Some(access) = p.access.map(|i| &accesses[i]) {
                let others = paths.iter().filter(|o| o.access == p.access);
                beside = others.filter(|o| o.established).count().max(1) as f64;
                view.weight = access.weight / beside;
                view.priority = access.priority;
                view.backup = access.backup;
                view.usable &= access.usable();
            }
            if let Some(lane) = lane.map(Lane::paths) {
                (view.srtt, view.rttvar) = lane.rtt(p.number).unwrap_or((view.srtt, view.rttvar));
                view.usable &= lane.suspect_since(p.number).is_none();
            }
            // To QUIC, it is a backup then, and no data leaves there.
            view.backup |= quic.path_status(p.id) == Ok(PathStatus::Backup);
            if accesses.is_socket_full(p.access) {
                view.in_flight = view.window.max(1);
            }
            if let Some(ahead) = accesses.ahead(p.access) {
                let ahead = ahead.max(view.segment);
                view.window = view.window.min(view.in_flight + ahead);
            }
            let wait = p.pacer.wait(now, slot).filter(|_| view.has_room());
            if let Some(at) = wait {
                view.in_flight = view.window.max(1);
                self.paced_until = Some(self.paced_until.map_or(at, |t| t.min(at)));
            }
            slot.idle &= view.has_room();
            // Its window is not in full use, however much waits.
            let limited = accesses.limited_until(p.access, now);
            if let Some(at) = limited {
                slot.idle = true;
                view.in_flight = view.window.max(1);
                self.paced_until = Some(self.paced_until.map_or(at, |t| t.min(at)));
            }
            self.limited.push(limited.is_some());
            self.views.push(view);
            self.places.push((p.access, beside));
        }
        // Where nothing comes back on any path, all of them are tried.
        if lane.is_some() && !self.views.iter().any(|v| v.usable) {
            for (view, p) in self.views.iter_mut().zip(paths.iter()) {
                view.usable = p.established;
            }
        }
    }

    /// Looks at the paths for the thresholds of classes, where there are any.
    pub(super) fn watch(
        &mut self,
        paths: &mut PathSet,
        congestion: &CongestionSet,
        (quic, lane): (&mut Quic, &Lane),
        times: (Time, Instant),
    ) {
        if self.classes.has_thresholds() {
            let lets_return = |rtt| self.classes.let_return(rtt);
            let of = (quic, lane);
            self.watch.look(paths, congestion, of, lets_return, times);
        }
    }

    /// Returns those of the first `classes` that wait, the one whose turn it is in front.
    pub(super) fn order(&mut self, classes: u8, waits: impl Fn(u8) -> bool) -> Order {
        self.classes.turns().order(classes, waits)
    }

    /// Shows a class the paths as they were at the latest [`PathScheduler::update_views`].
    pub(super) fn show(&mut self, class: u8, accesses: &AccessSet) {
        let watch = &self.watch;
        let measured = |path: &PathView| watch.measured(path);
        self.classes
            .show(class, &self.views, &self.places, accesses, measured);
    }

    /// Returns the paths as a class was shown them last.
    pub(super) fn shown(&mut self, class: u8) -> &[PathView] {
        self.classes.shown(class, &self.views).1
    }

    /// Notes that data of a class was written, which has so many streams and flows, after others were
    /// asked that send nothing now.
    pub(super) fn written(&mut self, class: u8, bytes: usize, active: usize, asked: &[u8]) {
        self.writing = class;
        self.classes.turns().sent(class, bytes, active, asked);
    }

    /// Whether the scheduler of a class prefers the path on which data arrives first.
    pub(super) fn by_delay(&mut self, class: u8) -> bool {
        self.classes.shown(class, &self.views).0.by_delay()
    }

    /// Returns where data of a class leaves next.
    pub(super) fn decide(&mut self, class: u8, time: Time, flow: &Flow) -> Decision {
        let (scheduler, views) = self.classes.shown(class, &self.views);
        scheduler.decide(time, flow, views)
    }

    /// Returns where retransmissions of a class leave next; `is_late` says of which paths, by their
    /// numbers, nothing is to be relied on.
    pub(super) fn decide_retransmit(
        &mut self,
        class: u8,
        time: Time,
        flow: &Flow,
        is_late: impl Fn(u32) -> bool,
    ) -> Decision {
        let (scheduler, views) = self.classes.shown(class, &self.views);
        let late = |i: &usize| is_late(views[*i].id);
        let late: Paths = (0..views.len()).filter(late).collect();
        scheduler.decide_lost(time, flow, views, late)
    }

    /// Returns the bytes that have left of each class on each access, by its number, with the headers
    /// of IP, since there are classes.
    pub(super) fn sent(&self) -> &BTreeMap<(u8, usize), u64> {
        &self.sent
    }

    /// Counts a burst that left on a path. Shares are of all that a link carries, while there
    /// is data to share; acknowledgements of what the peer sends are nobody's share.
    pub(super) fn count_sent(
        &mut self,
        (number, access): (u32, Option<usize>),
        transmit: &Transmit,
    ) {
        let bytes = ip_bytes(transmit);
        if !self.has_data {
            return;
        }
        if let Some(access) = access.filter(|_| self.classes.has_others()) {
            *self.sent.entry((self.writing, access)).or_default() += bytes;
        }
        let (scheduler, views) = self.classes.shown(self.writing, &self.views);
        if let Some(i) = views.iter().position(|v| v.id == number) {
            scheduler.sent(views, i, bytes);
        }
    }

    /// Notes that nothing is sent now: paths that could have are not in full use.
    pub(super) fn mark_idle(&self, paths: &PathSet, congestion: &CongestionSet) {
        let mut slots = congestion.lock();
        let views = self.views.iter().zip(&self.limited);
        for (p, (view, limited)) in paths.iter().zip(views) {
            slots[p.slot].idle = view.has_room() || *limited;
        }
    }

    /// Returns the number of the slowest path with anything under way, if another has room.
    pub(super) fn slowest_beside_room(&self) -> Option<u32> {
        let busy = |v: &&PathView| v.usable && v.in_flight > 0;
        let slowest = self.views.iter().filter(busy).max_by_key(|v| v.srtt);
        let room = |v: &PathView| v.usable && v.has_room();
        let number = slowest.map(|v| v.id)?;
        let beside = self.views.iter().any(|v| v.id != number && room(v));
        beside.then_some(number)
    }

    /// Returns the numbers of the paths that acknowledgements may leave on, the fastest first.
    pub(super) fn ack_paths(&self, paths: &PathSet, congestion: &CongestionSet) -> Vec<u32> {
        // The lane of who only acknowledges measures little. QUIC sees the queue that
        // acknowledgements make, which no window holds back.
        let slots = congestion.lock();
        let seen = self
            .views
            .iter()
            .zip(paths.iter())
            .filter(|(v, _)| v.usable);
        let time = |(v, p): (_, &Path)| (v, slots[p.slot].srtt);
        let mut all: Vec<(&PathView, Duration)> = seen.map(time).collect();
        all.sort_by_key(|(v, below)| (v.backup, v.srtt.is_zero(), v.srtt.max(*below)));
        // On a backup nothing leaves as long as there is another.
        let others = all.iter().filter(|(v, _)| !v.backup).count();
        all.truncate(others.max(1));
        all.into_iter().map(|(v, _)| v.id).collect()
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

/// Returns the bytes of a burst with the headers of IP and UDP.
pub(super) fn ip_bytes(transmit: &Transmit) -> u64 {
    let segment = transmit.segment_size.unwrap_or(transmit.size).max(1);
    let headers = match transmit.destination {
        SocketAddr::V4(_) => 28,
        SocketAddr::V6(_) => 48,
    };
    (transmit.size + transmit.size.div_ceil(segment) * headers) as u64
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
        exceeds: false,
    }
}
