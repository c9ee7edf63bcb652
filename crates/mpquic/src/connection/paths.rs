//! Life of the paths of a connection: opened, validated, moved, silent, closed, and what is
//! expected of them meanwhile.
//!
//! The sooner the peer knows of a path that this end closes, the sooner it sends elsewhere what
//! was under way there.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use noq_proto::{FourTuple, PathAbandonReason, PathError, PathId, PathStatus, VarInt};

use super::dead_paths::{Evidence, dead};
use super::path_set::{Path, PathSet};
use super::{Connection, Event, expectations};
use crate::access::label;
use crate::congestion::{CongestionSet, Gate};
use crate::lane::Lane;
use crate::pacer::Pacer;
use crate::transport::PATH_IDLE;

/// Paths are pinged so often.
const PING: Duration = Duration::from_secs(2);
/// Interval of pings on the stream lane, whose paths end sooner.
const PING_ON_STREAMS: Duration = Duration::from_secs(1);
/// Beside three round trips, the time that a ping waits while those of other paths are answered.
const UNANSWERED: Duration = Duration::from_millis(400);
/// Connection ids for further paths arrive some time after the handshake.
const NO_CIDS_YET: Duration = Duration::from_millis(5);
/// Error code that a path is closed with whose access is lost (draft-ietf-quic-multipath,
/// PATH_UNSTABLE_OR_POOR).
const LOST: VarInt = VarInt::from_u32(0x3e76);
/// A path that answers later than this after it began has lost its first packets, or an answer.
const FIRST_TRY: Duration = Duration::from_millis(500);
/// A path on which something came back within this lives: pings are 2 s apart.
const LIVES: Duration = Duration::from_secs(5);

/// Returns how long an answer to a ping may take at this longest round trip.
fn answer_wait(max_rtt: Duration) -> Duration {
    UNANSWERED + 3 * max_rtt
}

/// Returns the time up to which pings are late: for so long that they should be answered, while
/// what was sent on another path then or later is. None while no ping waits, as for most bursts.
fn late_pings(paths: &PathSet, congestion: &CongestionSet, now: Instant) -> Option<Instant> {
    if paths.iter().all(|p| p.pinged_at.is_none()) {
        return None;
    }
    let (anywhere, _) = paths.newest_acked(congestion)?;
    let long_ago = now.checked_sub(answer_wait(paths.max_rtt(congestion)))?;
    Some(anywhere.min(long_ago))
}

impl Connection {
    /// The path that the connection begins on.
    pub(super) fn begin_first(&mut self) {
        self.track(PathId::ZERO, self.accesses.initial(), self.began);
    }

    /// The handshake is done: the first path is validated, others may be opened.
    pub(super) fn begin_others(&mut self, now: Instant) {
        self.ping_at = Some(now + self.ping_interval());
        self.establish(PathId::ZERO, now);
        self.accesses.open_all(now);
        self.open_paths(now);
    }

    /// Takes up a path of QUIC; does nothing if it is known or gone.
    fn track(&mut self, id: PathId, access: Option<usize>, now: Instant) {
        if self.paths.by_id(id).is_some() {
            return;
        }
        let slot = self.quic.congestion_state(id).and_then(Gate::slot);
        let (Some(slot), Ok(network)) = (slot, self.quic.network_path(id)) else {
            return;
        };
        self.paths.add(Path {
            expected: self.expectations.take(id),
            ..Path::new(id, access, network, slot, now)
        });
        if let Some(i) = access {
            self.send_expectation(i, false);
        }
    }

    /// A path is validated.
    pub(super) fn establish(&mut self, id: PathId, now: Instant) {
        let access = self.access_of(id);
        self.track(id, access, now);
        let Some(path) = self.paths.by_id_mut(id) else {
            return;
        };
        if path.established {
            return;
        }
        path.established = true;
        path.access = path.access.or(access);
        let waited = now.saturating_duration_since(path.began) > FIRST_TRY;
        path.began = now;
        self.name_new_path(id);
        let Some(path) = self.paths.by_id_mut(id) else {
            return;
        };
        let (slot, access) = (path.slot, path.access);
        if let Some(i) = access {
            self.accesses.opened(i);
        }
        // The first path of a connection is opened before the peer can be told, and what the peer
        // says of another one comes with that.
        self.paths.tell_status(id, &mut self.quic, &self.accesses);
        if self.quic.remote_path_status(id).is_some() {
            self.on_remote_status(id, now);
        }
        self.congestion.lock()[slot].validated(waited);
        self.resume(id, slot, access, now);
        let access = self.accesses.name(access);
        self.events.push_back(Event::PathUp { access });
        self.close_unusable(now);
        self.look_for_dead(now);
    }

    /// A new path begins with what is expected of it, or with what the path before it on
    /// its access carried.
    fn resume(&mut self, id: PathId, slot: usize, access: Option<usize>, now: Instant) {
        // One that is still there is on its way out: an access has one path at a time.
        let before = self.paths.iter().find(|p| p.id != id && p.access == access);
        if let Some(slot) = before.filter(|p| p.established).map(|p| p.slot) {
            self.congestion.save(slot, access, now);
        }
        let expected = self.expected_rate(id);
        if let Some(path) = self.paths.by_id_mut(id) {
            path.min_expected = expected;
        }
        let rtt = self.quic.rtt(id);
        // What was is only a guess at what will be.
        let jump = expectations::expected_jump(expected, rtt)
            .or_else(|| self.congestion.carried_jump(access, rtt, now));
        if let Some(jump) = jump {
            self.congestion.lock()[slot].resume(jump);
        }
    }

    /// Returns the interval of pings of all paths.
    pub(super) fn ping_interval(&self) -> Duration {
        match self.lane {
            Some(_) => PING,
            None => PING_ON_STREAMS,
        }
    }

    /// A path that only receives sends nothing, as acknowledgements leave elsewhere, and
    /// would end at the other end for having been idle; what arrives on it keeps the
    /// library from pinging.
    pub(super) fn ping_paths(&mut self, now: Instant) {
        if self.quic.is_closed() {
            self.ping_at = None;
        }
        if self.ping_at.is_none_or(|t| t > now) {
            return;
        }
        self.ping_at = Some(now + self.ping_interval());
        self.keys.check(&mut self.quic);
        self.follow_peer_statuses(now);
        self.close_silent(now);
        self.look_for_dead(now);
        self.ping_established(now);
        // Later than what is judged, and not for ever.
        self.answers_due = Some(
            now + answer_wait(self.paths.max_rtt(&self.congestion)) + Duration::from_millis(1),
        );
    }

    /// Takes a status that the peer has sent of a path; perhaps not for the last time: frames
    /// overtake each other on paths, and the library tells of those that count no more, too.
    pub(super) fn on_remote_status(&mut self, id: PathId, now: Instant) {
        let theirs = self.quic.remote_path_status(id);
        if let Some(p) = self.paths.by_id_mut(id) {
            p.status.set_peer(theirs);
        }
        self.follow_peer_statuses(now);
    }

    fn follow_peer_statuses(&mut self, now: Instant) {
        let (quic, accesses) = (&mut self.quic, &self.accesses);
        if self.paths.follow_peer_statuses(quic, accesses, now) {
            self.control.mark_pending();
        }
    }

    fn access_of(&self, id: PathId) -> Option<usize> {
        let network = self.quic.network_path(id).ok();
        self.accesses.of_path(id, network, self.is_client())
    }

    /// At the proxy, follows devices that have moved: to another address, with which
    /// comes another congestion controller (RFC 9000 9.4).
    pub(super) fn follow(&mut self, now: Instant) {
        for i in 0..self.paths.len() {
            let id = self.paths[i].id;
            let Ok(network) = self.quic.network_path(id) else {
                continue;
            };
            if network == self.paths[i].network {
                continue;
            }
            let slot = self.quic.congestion_state(id).and_then(Gate::slot);
            let access = self.access_of(id);
            let path = &mut self.paths[i];
            path.network = network;
            path.access = access.or(path.access);
            let (old, access, established) = (path.slot, path.access, path.established);
            if let Some(slot) = slot.filter(|s| *s != old) {
                path.slot = slot;
                path.pacer = Pacer::default();
                self.congestion.lock()[slot].scheduled = established;
                self.congestion.save(old, access, now);
                self.resume(id, slot, access, now);
            }
        }
    }

    /// A path has ended.
    pub(super) fn abandoned(&mut self, id: PathId, reason: &PathAbandonReason, now: Instant) {
        self.expectations.take(id);
        self.names.take(id);
        let Some(path) = self.paths.remove(id) else {
            return;
        };
        self.congestion.save(path.slot, path.access, now);
        if let Some(lane) = &mut self.lane {
            lane.forget(path.number);
            lane.forget_expectation(id);
        }
        if let Some(i) = path.access {
            self.accesses.open_later(i, now);
        }
        if path.established {
            let access = self.accesses.name(path.access);
            let why = match reason {
                _ if path.given_up => "nothing came back on it",
                PathAbandonReason::ApplicationClosed { .. } => "closed by this end",
                PathAbandonReason::RemoteAbandoned { .. } => "closed by the other end",
                PathAbandonReason::TimedOut => "nothing came back on it",
                _ => "its network changed",
            };
            let why = why.to_owned();
            self.events.push_back(Event::PathDown { access, why });
        }
    }

    /// Opens what is missing and due: at the device alone, as the draft has it.
    pub(super) fn open_paths(&mut self, now: Instant) {
        if !self.is_client() || !self.connected || self.quic.is_closed() {
            self.accesses.cancel_openings();
            return;
        }
        for i in 0..self.accesses.len() {
            if !self.accesses.take_opening(i, now) {
                continue;
            }
            let has = self.paths.iter().any(|p| p.access == Some(i) && !p.stale);
            if self.accesses[i].usable() && !has {
                self.open_path(i, now);
            }
        }
    }

    fn open_path(&mut self, i: usize, now: Instant) {
        let Some(remote) = self.remote() else {
            return;
        };
        let network = FourTuple::new(remote, Some(label(i)));
        // As a backup only once it is established: the library tells the peer of changes alone (noq-proto
        // 1.4, populate_packet: of an initial status it means to, but has taken back the condition before).
        match self.quic.open_path(network, PathStatus::Available, now) {
            // It is tried until it answers, or its address changes: the peer does not hear of
            // one that has ended before, and its identifier is used up for good.
            Ok(id) => self.track(id, Some(i), now),
            Err(PathError::RemoteCidsExhausted) => self.accesses.open_at(i, now + NO_CIDS_YET),
            Err(PathError::MultipathNotNegotiated) => {}
            Err(_) => self.accesses.open_later(i, now),
        }
    }

    fn remote(&self) -> Option<SocketAddr> {
        let id = self.quic.paths().first().copied()?;
        Some(self.quic.network_path(id).ok()?.remote())
    }

    /// The device's link of access number `i` has changed.
    pub(crate) fn link(&mut self, i: usize, up: bool, address: Option<IpAddr>, now: Instant) {
        let before = self.accesses[i].clone();
        let access = &mut self.accesses[i];
        (access.up, access.address) = (up, address.map(Into::into));
        if *access == before {
            return;
        }
        if before.usable() {
            // At once: what was sent there is sent again elsewhere.
            self.close_unusable(now);
            if self.accesses[i].usable() {
                self.moved(i, now);
            }
        }
        if self.accesses[i].usable() {
            self.accesses.open_anew(i, now);
            self.open_paths(now);
        }
    }

    /// The address of an access has changed: what was under way to the old one is sent
    /// again at once where there is another path. The last one stays until it is
    /// replaced: the peer may follow it, and does if nothing is lost meanwhile.
    fn moved(&mut self, i: usize, now: Instant) {
        let may_close: Vec<bool> = self.paths.iter().map(|p| self.paths.may_close(p)).collect();
        for (path, may_close) in self.paths.iter_mut().zip(may_close) {
            // One that may not be closed is tried again from the new address.
            if path.access == Some(i) && may_close {
                path.stale = true;
                let _ = self.quic.ping_path(path.id);
            }
        }
        self.close_unusable(now);
    }

    /// Closes the paths of accesses that are lost, once there is another to tell of it and
    /// of what new paths need: one that is not established yet cannot.
    fn close_unusable(&mut self, now: Instant) {
        let (paths, accesses) = (&self.paths, &self.accesses);
        if !self.is_client() || !paths.iter().any(|p| p.established && !p.is_lost(accesses)) {
            return;
        }
        let lost = paths
            .iter()
            .filter(|p| p.is_lost(accesses) && paths.may_close(p));
        let mut ids: Vec<PathId> = lost.map(|p| p.id).collect();
        ids.retain(|id| self.quic.close_path(now, *id, LOST).is_ok());
        if !ids.is_empty() && self.lane.is_some() {
            self.send_closed(&ids);
        }
    }

    /// Closes paths on which nothing has come back for [`PATH_IDLE`], while there is one on which
    /// something does: they are opened anew. Where there is none, all of them stay, as the
    /// first that comes back brings the session with it.
    fn close_silent(&mut self, now: Instant) {
        if !self.is_client() || self.lane.is_none() {
            return;
        }
        let since: Vec<Duration> = {
            let slots = self.congestion.lock();
            let since = |p: &Path| now.saturating_duration_since(p.proved_at(&slots[p.slot]));
            self.paths.iter().map(since).collect()
        };
        let accesses = &self.accesses;
        let mut all = self.paths.iter().zip(&since);
        let lives = |(p, t): (&Path, &Duration)| {
            p.established && !p.held && !p.is_lost(accesses) && *t < LIVES
        };
        if !all.any(lives) {
            return;
        }
        let all = self.paths.iter_mut().zip(since);
        for (p, _) in all.filter(|(p, t)| p.established && *t >= PATH_IDLE) {
            p.given_up = self.quic.close_path(now, p.id, LOST).is_ok();
        }
    }

    /// Looks for dead paths of the stream lane. The device closes them, and the proxy sends
    /// nothing there until it does or something arrives.
    fn look_for_dead(&mut self, now: Instant) {
        if self.lane.is_some() {
            return;
        }
        let mut all = Vec::new();
        for p in self.paths.iter_mut().filter(|p| p.established) {
            let arrived = self.quic.path_stats(p.id).map_or(0, |s| s.udp_rx.datagrams);
            let slot = &self.congestion.lock()[p.slot];
            let acked = slot.newest_acked_sent_at;
            all.push(Evidence {
                silent_for: p.heard.inspect(arrived, now),
                proved: acked.map_or(p.began, |at| at.max(p.began)),
                srtt: slot.srtt,
            });
        }
        let client = self.is_client();
        let established = (0..self.paths.len()).filter(|i| self.paths[*i].established);
        let established: Vec<usize> = established.collect();
        for (i, dead) in established.into_iter().zip(dead(&all)) {
            let p = &mut self.paths[i];
            if client {
                p.given_up |= dead && self.quic.close_path(now, p.id, LOST).is_ok();
            } else if dead != p.held {
                p.held = dead;
                self.note_held(i, now);
            }
        }
    }

    /// Tells of a path that is held from now on, or no longer.
    fn note_held(&mut self, i: usize, now: Instant) {
        let p = &self.paths[i];
        let (access, silent) = (self.accesses.name(p.access), p.held);
        self.events.push_back(Event::PathSilent { access, silent });
        self.paths
            .change_status(i, &mut self.quic, &self.accesses, now);
        self.control.mark_pending();
    }

    /// Tells the peer on all other paths: which of them is the fastest for it, the queues of both
    /// ends say, and this end knows of one.
    fn send_closed(&mut self, ids: &[PathId]) {
        let (paths, quic, accesses) = (&self.paths, &self.quic, &self.accesses);
        let may = |p: &&Path| {
            p.established && !p.held && !p.is_lost(accesses) && paths.takes_data(p, quic)
        };
        let others: Vec<u32> = paths.iter().filter(may).map(|p| p.number).collect();
        self.outbox.push_first(&others, &Lane::write_closed(ids));
    }

    /// Takes the paths that the peer has closed: nothing leaves there from now on.
    pub(super) fn apply_peer_closed_paths(&mut self, now: Instant) {
        let Some(lane) = &mut self.lane else {
            return;
        };
        for id in lane.take_closed_paths() {
            if let Some(p) = self.paths.by_id(id) {
                lane.suspect(p.number, now);
            }
        }
    }

    /// Paths from which nothing comes back: QUIC asks them (with its probes), the peer is
    /// told not to acknowledge there, and what they are held for ends with the first
    /// acknowledgement of what was sent since.
    pub(super) fn detect_silence(&mut self, now: Instant) {
        let Some(lane) = &mut self.lane else {
            return;
        };
        let quic = &self.quic;
        let available = |p: &Path| quic.path_status(p.id) == Ok(PathStatus::Available);
        let (paths, congestion) = (&self.paths, &self.congestion);
        let ping = self
            .blackhole
            .detect(paths, congestion, lane, available, now);
        if let Some(id) = ping {
            let _ = self.quic.ping_path(id);
            self.control.mark_pending();
        }
        let mut changed = Vec::new();
        let late = late_pings(&self.paths, &self.congestion, now);
        let all = self.paths.iter_mut().enumerate();
        for (i, p) in all.filter(|(_, p)| p.established) {
            let newest = self.congestion.lock()[p.slot].newest_acked_sent_at;
            p.pinged_at = p.pinged_at.filter(|t| newest.is_none_or(|n| n < *t));
            // Where data is under way, the lane knows better what is late.
            let unanswered = p
                .pinged_at
                .is_some_and(|t| late.is_some_and(|late| t <= late));
            if unanswered && lane.paths().is_idle(p.number) {
                lane.suspect(p.number, now);
                p.pinged_at = None;
            }
            let since = lane.paths().suspect_since(p.number);
            if newest > p.quic_acked_sent_at {
                p.quic_acked_sent_at = newest;
                lane.paths_mut().on_quic_ack(p.number, now);
            }
            let back = since.is_some_and(|s| newest.is_some_and(|n| n >= s));
            if back {
                lane.paths_mut().clear_suspicion(p.number, now);
            }
            let held = since.is_some() && !back;
            if held != p.held {
                p.held = held;
                p.ping.set(held, now);
                let _ = self.quic.ping_path(p.id);
                changed.push(i);
            }
        }
        if changed.iter().any(|i| self.paths[*i].held) {
            // A peer that has begun anew tells on the first path alone, and when it is sent something.
            self.ping_at = self.ping_at.map(|_| now);
        }
        if !changed.is_empty() {
            self.check_liveness(now);
        }
        for i in changed {
            self.note_held(i, now);
        }
    }

    /// Tells the peer what the path of an access may carry to this end, where that is known
    /// or `known` before.
    pub(super) fn send_expectation(&mut self, access: usize, known: bool) {
        let rate = self.accesses[access].expected.down.map(expectations::bytes);
        let device = self.is_client();
        let Some(lane) = self.lane.as_mut().filter(|_| device) else {
            return;
        };
        let Some(rate) = rate.or(known.then_some(0)) else {
            return;
        };
        for id in self.paths.ids_of(access) {
            lane.send_expectation(id, rate);
        }
    }

    /// Applies the expectations that the peer has sent.
    pub(super) fn apply_peer_expectations(&mut self) {
        let received = match &mut self.lane {
            Some(lane) => lane.take_expectations(),
            None => return,
        };
        // Of a device that is not known anything could be heard.
        if self.is_client() || !self.expectations.is_trusted() {
            return;
        }
        for (id, expectation) in received {
            let Some(path) = self.paths.by_id_mut(id) else {
                self.expectations.keep(id, expectation);
                continue;
            };
            if path.expected.is_none_or(|e| e < expectation) {
                path.expected = Some(expectation);
                self.apply_expectation(id);
            }
        }
    }

    /// Applies a change of the rate that is expected of a path.
    pub(super) fn apply_expectation(&mut self, id: PathId) {
        let (rate, rtt) = (self.expected_rate(id), self.quic.rtt(id));
        if let Some(path) = self.paths.by_id_mut(id) {
            expectations::apply(path, rate, rtt, &self.congestion);
        }
    }

    fn expected_rate(&self, id: PathId) -> Option<u64> {
        let path = self.paths.by_id(id)?;
        expectations::expected_rate(path, &self.accesses, self.is_client())
    }
}
