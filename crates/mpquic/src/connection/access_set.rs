//! Accesses of a connection, as they are steered now, and when paths are opened on them.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use noq_proto::{FourTuple, PathId};

use super::rate_limit::RateLimit;
use crate::access::{Access, labelled};

/// How soon an attempt that failed is repeated, at first and at most.
const MIN_RETRY: Duration = Duration::from_millis(100);
const MAX_RETRY: Duration = Duration::from_secs(5);

/// The opening of a path on an access.
#[derive(Clone, Copy, Debug, Default)]
struct Opening {
    /// When to try (again).
    retry: Option<Instant>,
    wait: Duration,
}

/// Accesses, by their numbers.
#[derive(Debug)]
pub(super) struct AccessSet {
    all: Vec<Access>,
    openings: Vec<Opening>,
    /// Whether the socket of each is full.
    socket_full: Vec<bool>,
    rate_limits: Vec<RateLimit>,
    /// Access that the connection began on, whose address QUIC is not told.
    initial: Option<usize>,
}

impl Deref for AccessSet {
    type Target = [Access];

    fn deref(&self) -> &Self::Target {
        &self.all
    }
}

impl DerefMut for AccessSet {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.all
    }
}

impl AccessSet {
    pub(super) fn new(all: Vec<Access>, initial: Option<usize>) -> Self {
        Self {
            openings: vec![Opening::default(); all.len()],
            socket_full: vec![false; all.len()],
            rate_limits: vec![RateLimit::default(); all.len()],
            all,
            initial,
        }
    }

    /// Adds an access; returns its number.
    pub(super) fn add(&mut self, access: Access) -> usize {
        self.all.push(access);
        self.openings.push(Opening::default());
        self.socket_full.push(false);
        self.rate_limits.push(RateLimit::default());
        self.all.len() - 1
    }

    /// Returns the access that the connection began on, at the device.
    pub(super) fn initial(&self) -> Option<usize> {
        self.initial
    }

    /// Returns the name of an access.
    pub(super) fn name(&self, access: Option<usize>) -> Option<String> {
        access.map(|i| self.all[i].name.clone())
    }

    /// Returns the access of a path, by the address that leads over it.
    pub(super) fn of_path(
        &self,
        id: PathId,
        network: Option<FourTuple>,
        client: bool,
    ) -> Option<usize> {
        if id == PathId::ZERO && self.initial.is_some() {
            return self.initial;
        }
        let network = network?;
        if client {
            return labelled(network.local_ip()?);
        }
        let address = network.remote().ip().to_canonical();
        let mut all = self.all.iter();
        all.position(|a| !a.registered && a.address.is_some_and(|n| n.contains(&address)))
    }

    /// Notes whether the socket of an access is full.
    pub(super) fn set_socket_full(&mut self, access: usize, full: bool) {
        if let Some(slot) = self.socket_full.get_mut(access) {
            *slot = full;
        }
    }

    /// Returns whether the socket of an access is full.
    pub(super) fn is_socket_full(&self, access: Option<usize>) -> bool {
        access.is_some_and(|i| self.socket_full[i])
    }

    /// Counts bytes of the IP layer that leave on an access.
    pub(super) fn count_sent(&mut self, access: Option<usize>, bytes: u64, now: Instant) {
        let Some(i) = access else { return };
        match self.all[i].limit {
            Some(rate) => self.rate_limits[i].sent(now, bytes, rate),
            None => self.rate_limits[i].lift(),
        }
    }

    /// Returns how many bytes leave at a time on an access whose rate is limited.
    pub(super) fn ahead(&self, access: Option<usize>) -> Option<u64> {
        self.all[access?].limit.map(RateLimit::ahead)
    }

    /// Returns until when the limit of an access keeps it from sending; `None` where it does not.
    pub(super) fn limited_until(&self, access: Option<usize>, now: Instant) -> Option<Instant> {
        let i = access?;
        self.all[i]
            .limit
            .and_then(|_| self.rate_limits[i].wait(now))
    }

    /// Schedules the opening of a path on every access for now.
    pub(super) fn open_all(&mut self, now: Instant) {
        for opening in &mut self.openings {
            opening.retry = Some(now);
        }
    }

    /// Schedules the opening of a path on an access for now, whatever failed before.
    pub(super) fn open_anew(&mut self, access: usize, now: Instant) {
        self.openings[access] = Opening {
            retry: Some(now),
            wait: Duration::ZERO,
        };
    }

    /// Schedules the opening of a path on an access.
    pub(super) fn open_at(&mut self, access: usize, at: Instant) {
        self.openings[access].retry = Some(at);
    }

    /// Schedules the opening of a path on an access for later, as an attempt has failed or its
    /// path has ended: after 100 ms at first, and twice as long each time, up to 5 s.
    pub(super) fn open_later(&mut self, access: usize, now: Instant) {
        let opening = &mut self.openings[access];
        opening.wait = (opening.wait * 2).clamp(MIN_RETRY, MAX_RETRY);
        opening.retry = Some(now + opening.wait);
    }

    /// Notes that an access has a path.
    pub(super) fn opened(&mut self, access: usize) {
        self.openings[access] = Opening::default();
    }

    /// Cancels all openings.
    pub(super) fn cancel_openings(&mut self) {
        self.openings.iter_mut().for_each(|o| o.retry = None);
    }

    /// Returns whether a path is to be opened on an access now, once.
    pub(super) fn take_opening(&mut self, access: usize, now: Instant) -> bool {
        let retry = &mut self.openings[access].retry;
        retry.take_if(|t| *t <= now).is_some()
    }

    /// Returns when the next path is to be opened.
    pub(super) fn opening_due(&self) -> Option<Instant> {
        self.openings.iter().filter_map(|o| o.retry).min()
    }
}
