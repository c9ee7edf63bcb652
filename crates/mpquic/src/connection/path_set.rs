//! Paths of a connection: each with its state, and what is asked of all of them.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use noq_proto::{Connection as Quic, FourTuple, PathId, PathStatus, Transmit};

use super::access_set::AccessSet;
use super::load::Load;
use super::path_heard::PathHeard;
use super::path_ping::PathPing;
use super::path_status::{PathStatusState, status};
use crate::congestion::CongestionSet;
use crate::lane::Expectation;
use crate::pacer::Pacer;

/// Paths that may be closed before they are validated. The peer does not know of those, and their
/// identifiers are used up for good: of the few that it allows, most are left for others.
const MAX_GIVEN_UP: u32 = 8;

/// Gates that are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Open {
    All,
    Only(usize),
    None,
}

/// A path that may carry data.
#[derive(Clone, Debug)]
pub(super) struct Path {
    pub(super) id: PathId,
    /// Number of the path for the scheduler.
    pub(super) number: u32,
    pub(super) access: Option<usize>,
    pub(super) network: FourTuple,
    /// Slot of its congestion controller.
    pub(super) slot: usize,
    pub(super) pacer: Pacer,
    /// Bytes on their way before the burst that is written now.
    pub(super) in_flight_before: u64,
    /// Whether it is validated.
    pub(super) established: bool,
    /// Time when it began, or was validated.
    pub(super) began: Instant,
    /// Whether it is being closed as nothing has come back on it.
    pub(super) given_up: bool,
    /// Whether it is to be replaced, as the device no longer has its address.
    pub(super) stale: bool,
    /// Whether nothing comes back on it: it is a backup to QUIC then.
    pub(super) held: bool,
    /// When something arrived on it last, on the stream lane.
    pub(super) heard: PathHeard,
    /// Pings whether anything does, while it is held.
    pub(super) ping: PathPing,
    /// When it was pinged as all paths are, until an acknowledgement tells of that or later.
    pub(super) pinged_at: Option<Instant>,
    /// When it was a backup at rest last, and owed no answer to a ping.
    pub(super) rested_at: Option<Instant>,
    pub(super) status: PathStatusState,
    /// Send time of the newest packet that QUIC had acknowledged at the last inspection.
    pub(super) quic_acked_sent_at: Option<Instant>,
    /// Times for which data waited, and whether the path had room meanwhile.
    pub(super) load: Load,
    /// Rate that the path carries to the peer, as the peer says.
    pub(super) expected: Option<Expectation>,
    /// Minimum rate that was expected of it since its controller began, bytes per second.
    pub(super) min_expected: Option<u64>,
}

impl Path {
    /// Makes a path that is not validated yet.
    pub(super) fn new(
        id: PathId,
        access: Option<usize>,
        network: FourTuple,
        slot: usize,
        now: Instant,
    ) -> Self {
        Self {
            id,
            number: 0,
            access,
            network,
            slot,
            pacer: Pacer::default(),
            in_flight_before: 0,
            established: false,
            began: now,
            given_up: false,
            stale: false,
            held: false,
            heard: PathHeard::new(now),
            ping: PathPing::default(),
            pinged_at: None,
            rested_at: None,
            status: PathStatusState::default(),
            quic_acked_sent_at: None,
            load: Load::default(),
            expected: None,
            min_expected: None,
        }
    }

    /// Returns whether its access is lost, or another address of it has taken its place.
    pub(super) fn is_lost(&self, accesses: &AccessSet) -> bool {
        let usable = self.access.is_none_or(|i| accesses[i].usable());
        self.stale || !usable
    }
}

/// Paths that may carry data.
#[derive(Debug, Default)]
pub(super) struct PathSet {
    paths: Vec<Path>,
    /// Number of paths that there have been.
    created: u32,
    /// Number of those that were closed before they were validated.
    given_up: u32,
}

impl Deref for PathSet {
    type Target = [Path];

    fn deref(&self) -> &Self::Target {
        &self.paths
    }
}

impl DerefMut for PathSet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.paths
    }
}

impl PathSet {
    /// Adds a path, and numbers it.
    pub(super) fn add(&mut self, path: Path) {
        self.created += 1;
        self.paths.push(Path {
            number: self.created,
            ..path
        });
    }

    /// Returns whether a path may be closed: one that is not validated may not always.
    pub(super) fn may_close(&self, path: &Path) -> bool {
        path.established || self.given_up < MAX_GIVEN_UP
    }

    /// Removes a path that has ended.
    pub(super) fn remove(&mut self, id: PathId) -> Option<Path> {
        let at = self.paths.iter().position(|p| p.id == id)?;
        let path = self.paths.remove(at);
        self.given_up += u32::from(!path.established);
        Some(path)
    }

    /// Returns the path with an identifier of QUIC.
    pub(super) fn by_id(&self, id: PathId) -> Option<&Path> {
        self.paths.iter().find(|p| p.id == id)
    }

    /// Returns the path with an identifier of QUIC, to be changed.
    pub(super) fn by_id_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.paths.iter_mut().find(|p| p.id == id)
    }

    /// Returns the path with a number of the scheduler's.
    pub(super) fn by_number(&self, number: u32) -> Option<&Path> {
        self.paths.iter().find(|p| p.number == number)
    }

    /// Returns the identifiers of the paths of an access.
    pub(super) fn ids_of(&self, access: usize) -> Vec<PathId> {
        let mine = self.paths.iter().filter(|p| p.access == Some(access));
        mine.map(|p| p.id).collect()
    }

    /// Returns the place of the path that a burst leaves on.
    pub(super) fn of_transmit(&self, t: &Transmit, client: bool) -> Option<usize> {
        let same = |p: &Path| match client {
            true => p.network.local_ip() == t.src_ip,
            false => p.network.remote() == t.destination,
        };
        self.paths.iter().position(same)
    }

    /// Returns whether QUIC sends data on a path: on backups only where all are.
    pub(super) fn takes_data(&self, path: &Path, quic: &Quic) -> bool {
        let available = |p: &Path| quic.path_status(p.id) == Ok(PathStatus::Available);
        available(path) || !self.paths.iter().any(|p| p.established && available(p))
    }

    /// Opens gates, and closes the others.
    pub(super) fn set_gates(&self, congestion: &CongestionSet, open: Open) {
        let mut slots = congestion.lock();
        for (i, p) in self.paths.iter().enumerate() {
            slots[p.slot].open = match open {
                Open::All => true,
                Open::Only(path) => path == i,
                Open::None => false,
            };
        }
    }

    /// Exempts what leaves now on one path, or on none, from its window.
    pub(super) fn set_exempt(&self, congestion: &CongestionSet, path: Option<usize>) {
        let mut slots = congestion.lock();
        for (i, p) in self.paths.iter().enumerate() {
            slots[p.slot].exempt = path == Some(i);
        }
    }

    /// Notes the bytes on their way before a burst is written.
    pub(super) fn note_in_flight(&mut self, congestion: &CongestionSet) {
        let slots = congestion.lock();
        for p in &mut self.paths {
            p.in_flight_before = slots[p.slot].in_flight;
        }
    }

    /// Adds up the time since nothing more could be sent.
    pub(super) fn count_load(&mut self, now: Instant) {
        self.paths.iter_mut().for_each(|p| p.load.count(now));
    }

    /// Notes, when nothing more can be sent now though data waits, which paths have room.
    pub(super) fn note_load(
        &mut self,
        congestion: &CongestionSet,
        accesses: &AccessSet,
        now: Instant,
    ) {
        let slots = congestion.lock();
        for p in &mut self.paths {
            let slot = &slots[p.slot];
            let full = slot.in_flight + slot.mtu > slot.window
                || p.pacer.wait(now, slot).is_some()
                || accesses.limited_until(p.access, now).is_some()
                || accesses.is_socket_full(p.access);
            p.load.wait(full, now);
        }
    }

    /// Returns the longest round trip of a path that was validated.
    pub(super) fn max_rtt(&self, congestion: &CongestionSet) -> Duration {
        let slots = congestion.lock();
        let established = self.paths.iter().filter(|p| p.established);
        established
            .map(|p| slots[p.slot].srtt)
            .max()
            .unwrap_or_default()
    }

    /// Returns when the newest packet was sent that has been acknowledged on any path, and when
    /// that acknowledgement arrived.
    pub(super) fn newest_acked(&self, congestion: &CongestionSet) -> Option<(Instant, Instant)> {
        let slots = congestion.lock();
        let all = self.paths.iter().map(|p| &slots[p.slot]);
        all.filter_map(|s| s.newest_acked_sent_at.zip(s.newest_acked_at))
            .max()
    }

    /// Returns when the next ping of any path is due.
    pub(super) fn ping_due(&self) -> Option<Instant> {
        self.paths.iter().filter_map(|p| p.ping.next_at()).min()
    }

    /// Sends the status of path number `i` after a change of this end's own.
    pub(super) fn change_status(
        &mut self,
        i: usize,
        quic: &mut Quic,
        accesses: &AccessSet,
        now: Instant,
    ) {
        self.paths[i].status.change(now);
        self.send_status(i, quic, accesses);
    }

    /// Sends the statuses of the paths of an access that is used otherwise from now on. Returns
    /// whether there are any.
    pub(super) fn change_access_status(
        &mut self,
        access: usize,
        quic: &mut Quic,
        accesses: &AccessSet,
        now: Instant,
    ) -> bool {
        let mut any = false;
        for i in 0..self.paths.len() {
            if self.paths[i].access == Some(access) {
                self.change_status(i, quic, accesses, now);
                any = true;
            }
        }
        any
    }

    /// Follows what the peer wants, where it is not an answer to this end's own. Returns whether
    /// any status has changed for that.
    pub(super) fn follow_peer_statuses(
        &mut self,
        quic: &mut Quic,
        accesses: &AccessSet,
        now: Instant,
    ) -> bool {
        let mut any = false;
        for i in 0..self.paths.len() {
            if self.paths[i].status.follow_peer(now) {
                self.send_status(i, quic, accesses);
                any = true;
            }
        }
        any
    }

    /// Sends the status of a path, where the peer knows of another one.
    pub(super) fn tell_status(&self, id: PathId, quic: &mut Quic, accesses: &AccessSet) {
        if let Some(i) = self.paths.iter().position(|p| p.id == id) {
            self.send_status(i, quic, accesses);
        }
    }

    fn send_status(&self, i: usize, quic: &mut Quic, accesses: &AccessSet) {
        let p = &self.paths[i];
        // The peer takes no notice of the status of a path that it does not know yet.
        if !p.established {
            return;
        }
        let backup = p.access.is_some_and(|a| accesses[a].backup);
        let now = status(p.held || backup || p.status.is_following_peer());
        if quic.path_status(p.id).is_ok_and(|s| s != now) {
            let _ = quic.set_path_status(p.id, now);
        }
    }
}
