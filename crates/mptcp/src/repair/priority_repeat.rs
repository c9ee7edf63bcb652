//! Finds peers that have not heard which access is a backup.
//!
//! `MP_PRIO` (RFC 8684 3.3.8) rides on one acknowledgement that nobody repeats: where it is
//! lost, the peer goes on to send over what is to rest, or leaves alone what is to carry. And
//! kernels without "mptcp: pm: prio: skip closed subflows" tell it to the first subflow on an
//! address, even if that one is closed. What is received shows the former, the flags of the
//! subflows the latter.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

/// After a change, what was under way may arrive for so long.
const SETTLE: Duration = Duration::from_millis(500);
/// How long what is received is counted; twice as long with each attempt.
const WINDOW: Duration = Duration::from_millis(500);
/// More than what a few repeated segments are.
const SOME: u64 = 32_000;
/// So much over others, and the peer could have used the access.
const MUCH: u64 = 256_000;
/// After so many attempts nothing helps.
const TRIES: u32 = 3;

/// A subflow over which data may flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subflow {
    /// The connection.
    pub token: u32,
    /// The local and the remote end.
    pub ends: (SocketAddr, SocketAddr),
    /// The peer was asked to use it as a backup only.
    pub backup: bool,
    /// Bytes received on it so far.
    pub received: u64,
}

/// Remedy where a peer has not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Ask for the opposite, and at once for the same again: the kernel sends changes only.
    Repeat,
    /// Delete the endpoint and add it again: its subflows join with the flag.
    Replace,
}

/// Whether peers heard of one address.
#[derive(Clone, Debug)]
struct Entry {
    backup: bool,
    since: Time,
    tries: u32,
    /// Bytes received before counting began, and the time when it began.
    counted: Option<(Time, Counts)>,
}

/// Bytes received, of the connections in doubt, by the ends.
type Counts = BTreeMap<(u32, (SocketAddr, SocketAddr)), u64>;

/// The addresses where it is in doubt.
#[derive(Clone, Debug, Default)]
pub struct PriorityRepeat {
    entries: BTreeMap<IpAddr, Entry>,
    /// Backups that are used all the same.
    gave_up: BTreeSet<IpAddr>,
}

/// Verdict of a window on one connection.
#[derive(PartialEq)]
enum Heard {
    Yes,
    No(Remedy),
    /// Too little was received.
    Open,
}

impl PriorityRepeat {
    /// Returns the remedies that are due, and where, as subflows are `now` on the endpoints, which
    /// are told with whether each is a backup.
    pub fn check(
        &mut self,
        endpoints: &BTreeMap<IpAddr, bool>,
        subflows: &[Subflow],
        now: Time,
    ) -> Vec<(IpAddr, Remedy)> {
        self.entries
            .retain(|a, e| endpoints.get(a) == Some(&e.backup));
        self.gave_up.retain(|a| endpoints.get(a) == Some(&true));
        let on = |a: IpAddr| subflows.iter().filter(move |s| s.ends.0.ip() == a);
        for (a, backup) in endpoints {
            if on(*a).any(|s| s.backup != *backup) {
                self.doubt(*a, *backup, now);
            }
        }
        let mut remedies = Vec::new();
        self.entries.retain(|a, e| {
            if now.since(e.since) < SETTLE {
                return true;
            }
            let verdict = match on(*a).any(|s| s.backup != e.backup) {
                true => Heard::No(Remedy::Replace),
                false => e.count(*a, subflows, now),
            };
            let Heard::No(remedy) = verdict else {
                return verdict == Heard::Open;
            };
            match e.tries < TRIES {
                true => remedies.push((*a, remedy)),
                false if e.backup => _ = self.gave_up.insert(*a),
                false => {}
            }
            e.tries += 1;
            (e.since, e.counted) = (now, None);
            e.tries <= TRIES
        });
        remedies
    }

    /// Peers were asked to use an address as a backup, or no more so.
    pub fn asked(&mut self, address: IpAddr, backup: bool, now: Time) {
        self.entries.remove(&address);
        self.gave_up.remove(&address);
        self.doubt(address, backup, now);
    }

    /// Whether it is a backup that peers went on to use, however often they were asked.
    pub fn gave_up(&self, address: IpAddr) -> bool {
        self.gave_up.contains(&address)
    }

    fn doubt(&mut self, address: IpAddr, backup: bool, now: Time) {
        self.entries.entry(address).or_insert(Entry {
            backup,
            since: now,
            tries: 0,
            counted: None,
        });
    }
}

impl Entry {
    /// Counts what is received, and judges by it at the end of a window.
    fn count(&mut self, address: IpAddr, subflows: &[Subflow], now: Time) -> Heard {
        let mine = subflows.iter().filter(|s| s.ends.0.ip() == address);
        let tokens: BTreeSet<u32> = mine.map(|s| s.token).collect();
        if tokens.is_empty() {
            return Heard::Yes;
        }
        let all = subflows.iter().filter(|s| tokens.contains(&s.token));
        let current: Counts = all
            .clone()
            .map(|s| ((s.token, s.ends), s.received))
            .collect();
        let window = WINDOW * (1 << self.tries);
        let Some((begin, before)) = &self.counted else {
            self.counted = Some((now, current));
            return Heard::Open;
        };
        if now.since(*begin) < window {
            return Heard::Open;
        }
        // Of subflows that are new the past is not known: they joined with the flag.
        let grew = |s: &Subflow| {
            let then = before.get(&(s.token, s.ends));
            then.map_or(0, |b| s.received.saturating_sub(*b))
        };
        let judged = tokens.iter().map(|token| {
            let (mut here, mut primaries, mut backups) = (0, 0, 0);
            for s in all.clone().filter(|s| s.token == *token) {
                match (s.ends.0.ip() == address, s.backup) {
                    (true, _) => here += grew(s),
                    (false, false) => primaries += grew(s),
                    (false, true) => backups += grew(s),
                }
            }
            self.judge(here, primaries, backups)
        });
        // One that has not heard outweighs those of which it is open, and these the rest.
        let worst = judged.max_by_key(|heard| match heard {
            Heard::Yes => 0,
            Heard::Open => 1,
            Heard::No(_) => 2,
        });
        let verdict = worst.unwrap_or(Heard::Yes);
        self.counted = Some((now, current));
        verdict
    }

    /// By what was received here, on other primaries, and on other backups.
    fn judge(&self, here: u64, primaries: u64, backups: u64) -> Heard {
        // The last attempt is another one.
        let remedy = match self.tries + 1 < TRIES {
            true => Remedy::Repeat,
            false => Remedy::Replace,
        };
        match self.backup {
            // Where the others fail a backup has to carry.
            true if here > SOME && primaries > SOME => Heard::No(remedy),
            true if here <= SOME && primaries > MUCH => Heard::Yes,
            false if here > SOME && backups <= SOME => Heard::Yes,
            // The peer uses one as the other: which of them it did not hear of cannot be told.
            false if here > SOME => Heard::No(Remedy::Repeat),
            false if here == 0 && backups > MUCH => Heard::No(remedy),
            // It may be that one is enough.
            false if here == 0 && primaries > MUCH => Heard::No(Remedy::Repeat),
            _ => Heard::Open,
        }
    }
}

#[cfg(test)]
mod tests;
