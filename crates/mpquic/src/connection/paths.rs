//! Paths of a connection, and the opening of those that are missing.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use noq_proto::{FourTuple, PathAbandonReason, PathError, PathId};

use super::ask::Ask;
use super::status::{Said, status};
use super::{Connection, Event};
use crate::access::{label, labelled};
use crate::congestion::{Gate, Saved};
use crate::lane::Expectation;
use crate::pacer::Pacer;

/// How soon an attempt that failed is repeated, at first and at most.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(5);
/// Paths are pinged so often.
const PING: Duration = Duration::from_secs(2);
/// Interval of pings on the stream lane, whose paths end sooner.
const PING_ON_STREAMS: Duration = Duration::from_secs(1);
/// Connection ids for further paths arrive some time after the handshake.
const NO_CIDS_YET: Duration = Duration::from_millis(5);

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
    pub(super) before: u64,
    /// Validated.
    pub(super) established: bool,
    /// When it began.
    pub(super) began: Instant,
    /// Nothing has come back on it, and it is being closed for that.
    pub(super) given_up: bool,
    /// From an address that the device no longer has: to be replaced.
    pub(super) stale: bool,
    /// Nothing comes back on it: it is to QUIC as a backup is.
    pub(super) held: bool,
    /// Asked whether anything does, while it is held.
    pub(super) ask: Ask,
    pub(super) said: Said,
    /// When the newest packet was sent that QUIC had acknowledged when it was looked.
    pub(super) newest: Option<Instant>,
    /// Rate that the path carries to the peer, as the peer says.
    pub(super) expected: Option<Expectation>,
    /// The least that was expected of it since its controller began, bytes per second.
    pub(super) foreseen: Option<u64>,
}

/// The opening of a path on an access.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Opening {
    /// When to try (again).
    pub(super) retry: Option<Instant>,
    wait: Duration,
}

impl Opening {
    fn failed(&mut self, now: Instant) {
        self.wait = (self.wait * 2).clamp(RETRY_FIRST, RETRY_MOST);
        self.retry = Some(now + self.wait);
    }
}

impl Connection {
    /// The path that the connection begins on.
    pub(super) fn begin_first(&mut self) {
        self.track(PathId::ZERO, self.first, self.began);
    }

    /// The handshake is done: the first path is validated, others may be opened.
    pub(super) fn begin_others(&mut self, now: Instant) {
        self.ping = Some(now + self.ping_interval());
        self.establish(PathId::ZERO, now);
        for opening in &mut self.opening {
            opening.retry = Some(now);
        }
        self.open_paths(now);
    }

    /// Takes up a path of QUIC; does nothing if it is known or gone.
    fn track(&mut self, id: PathId, access: Option<usize>, now: Instant) {
        if self.paths.iter().any(|p| p.id == id) {
            return;
        }
        let slot = self.quic.congestion_state(id).and_then(Gate::slot);
        let (Some(slot), Ok(network)) = (slot, self.quic.network_path(id)) else {
            return;
        };
        self.numbers += 1;
        self.paths.push(Path {
            id,
            number: self.numbers,
            access,
            network,
            slot,
            pacer: Pacer::default(),
            before: 0,
            established: false,
            began: now,
            given_up: false,
            stale: false,
            held: false,
            ask: Ask::default(),
            said: Said::default(),
            newest: None,
            expected: self.expected.remove(&id),
            foreseen: None,
        });
        if let Some(i) = access {
            self.tell_expected(i, false);
        }
    }

    /// A path is validated.
    pub(super) fn establish(&mut self, id: PathId, now: Instant) {
        let access = self.access_of(id);
        self.track(id, access, now);
        let Some(path) = self.paths.iter_mut().find(|p| p.id == id) else {
            return;
        };
        if path.established {
            return;
        }
        path.established = true;
        path.access = path.access.or(access);
        if let Some(i) = path.access {
            self.opening[i] = Opening::default();
        }
        let (slot, access) = (path.slot, path.access);
        self.shared.lock()[slot].scheduled = true;
        self.resume(id, slot, access, now);
        let access = self.name(access);
        self.events.push_back(Event::PathUp { access });
        self.close_unusable(now);
    }

    /// A new path begins with what is expected of it, or with what the path before it on
    /// its access carried.
    fn resume(&mut self, id: PathId, slot: usize, access: Option<usize>, now: Instant) {
        // One that is still there is on its way out: an access has one path at a time.
        let before = self.paths.iter().find(|p| p.id != id && p.access == access);
        if let Some(slot) = before.filter(|p| p.established).map(|p| p.slot) {
            self.save(slot, access, now);
        }
        let foreseen = self.expected_rate(id);
        let path = self.paths.iter_mut().find(|p| p.id == id);
        path.into_iter().for_each(|p| p.foreseen = foreseen);
        let carried = || {
            let saved = access
                .filter(|_| self.resumes)
                .and_then(|i| self.saved[i])?;
            saved.jump(self.quic.rtt(id)?, now)
        };
        // What was is only a guess at what will be.
        if let Some(jump) = self.expected_jump(id).or_else(carried) {
            self.shared.lock()[slot].resume(jump);
        }
    }

    /// A path of an access ends, or goes on elsewhere.
    fn save(&mut self, slot: usize, access: Option<usize>, now: Instant) {
        if let Some(i) = access {
            let saved = Saved::of(&self.shared.lock()[slot], now);
            self.saved[i] = saved.or(self.saved[i]);
        }
    }

    fn ping_interval(&self) -> Duration {
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
            self.ping = None;
        }
        if self.ping.is_none_or(|t| t > now) {
            return;
        }
        self.ping = Some(now + self.ping_interval());
        self.look_at_keys();
        self.settle(now);
        self.close_silent(now);
        for path in self.paths.iter().filter(|p| p.established) {
            let _ = self.quic.ping_path(path.id);
        }
    }

    /// The access of a path, by the address that leads over it.
    fn access_of(&self, id: PathId) -> Option<usize> {
        if id == PathId::ZERO && self.first.is_some() {
            return self.first;
        }
        let network = self.quic.network_path(id).ok()?;
        if self.is_client() {
            return labelled(network.local_ip()?);
        }
        let address = network.remote().ip().to_canonical();
        let mut all = self.accesses.iter();
        all.position(|a| a.address.is_some_and(|n| n.contains(&address)))
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
                self.shared.lock()[slot].scheduled = established;
                self.save(old, access, now);
                self.resume(id, slot, access, now);
            }
        }
    }

    fn name(&self, access: Option<usize>) -> Option<String> {
        access.map(|i| self.accesses[i].name.clone())
    }

    /// A path has ended.
    pub(super) fn abandoned(&mut self, id: PathId, reason: &PathAbandonReason, now: Instant) {
        self.expected.remove(&id);
        let Some(at) = self.paths.iter().position(|p| p.id == id) else {
            return;
        };
        let path = self.paths.remove(at);
        self.save(path.slot, path.access, now);
        if let Some(lane) = &mut self.lane {
            lane.forget(path.number);
            lane.expect_nothing(id);
        }
        if let Some(i) = path.access {
            self.opening[i].failed(now);
        }
        if path.established {
            let access = self.name(path.access);
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
            self.opening.iter_mut().for_each(|o| o.retry = None);
            return;
        }
        for i in 0..self.accesses.len() {
            if self.opening[i].retry.is_none_or(|t| t > now) {
                continue;
            }
            self.opening[i].retry = None;
            let has = self.paths.iter().any(|p| p.access == Some(i) && !p.stale);
            if self.accesses[i].usable() && !has {
                self.open_path(i, now);
            }
        }
    }

    fn open_path(&mut self, i: usize, now: Instant) {
        let access = &self.accesses[i];
        let Some(remote) = self.remote() else {
            return;
        };
        let status = status(access.backup);
        let network = FourTuple::new(remote, Some(label(i)));
        match self.quic.open_path(network, status, now) {
            Ok(id) => self.track(id, Some(i), now),
            Err(PathError::RemoteCidsExhausted) => {
                self.opening[i].retry = Some(now + NO_CIDS_YET);
            }
            Err(PathError::MultipathNotNegotiated) => {}
            Err(_) => self.opening[i].failed(now),
        }
    }

    fn remote(&self) -> Option<std::net::SocketAddr> {
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
            self.opening[i] = Opening {
                retry: Some(now),
                wait: Duration::ZERO,
            };
            self.open_paths(now);
        }
    }

    /// The address of an access has changed: what was under way to the old one is sent
    /// again at once where there is another path. The last one stays until it is
    /// replaced: the peer may follow it, and does if nothing is lost meanwhile.
    fn moved(&mut self, i: usize, now: Instant) {
        for path in self.paths.iter_mut().filter(|p| p.access == Some(i)) {
            path.stale = true;
            let _ = self.quic.ping_path(path.id);
        }
        self.close_unusable(now);
    }
}
