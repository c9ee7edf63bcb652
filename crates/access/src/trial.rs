//! Addresses over which subflows cannot be opened although the server lives: they give way to
//! others of their interface, or to another interface with the same address. None of this is
//! known before it is tried.
//!
//! An address *fails* when two retransmissions of its SYN were not answered while another
//! address has an established subflow to the same server. It is tried again when its interface
//! or the address itself comes anew, or where the others have failed as well.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use braid_core::Time;

/// So many retransmissions of a SYN without an answer are a failure: three seconds.
const RETRANSMISSIONS: u8 = 2;

/// A subflow, or an attempt to open one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its address here.
    pub local: IpAddr,
    /// Where it leads.
    pub remote: SocketAddr,
    /// State of the subflow: established, or not yet.
    pub open: bool,
    /// Retransmissions without an answer.
    pub retransmissions: u8,
}

/// An address in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried<'a> {
    /// The name of its interface.
    pub interface: &'a str,
    /// The address.
    pub address: IpAddr,
    /// Nothing comes back on it any more.
    pub silent: bool,
    /// Another interface has the same address.
    pub doubled: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Something came back since it is in use.
    heard: bool,
    failed: Option<Time>,
}

/// Knowledge of addresses from trying them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trials {
    entries: BTreeMap<(String, IpAddr), Entry>,
}

impl Trials {
    /// Forgets what is not `there` (interfaces that are up, with their addresses), and that
    /// something was heard on what is not in use.
    pub fn keep(&mut self, there: &BTreeSet<(String, IpAddr)>, used: &BTreeSet<(String, IpAddr)>) {
        self.entries.retain(|key, _| there.contains(key));
        for (key, entry) in &mut self.entries {
            entry.heard &= used.contains(key);
        }
    }

    /// Takes what the sockets tell of addresses in use. Returns whether it is news.
    pub fn look(&mut self, used: &[Tried<'_>], attempts: &[Attempt], now: Time) -> bool {
        let before = self.entries.clone();
        for u in used {
            let mine = || attempts.iter().filter(|a| a.local == u.address);
            let entry = self.entries.entry((u.interface.into(), u.address));
            let entry = entry.or_default();
            if u.silent && u.doubled {
                entry.heard = false;
                entry.failed.get_or_insert(now);
                continue;
            }
            if mine().any(|a| a.open) {
                *entry = Entry {
                    heard: true,
                    failed: None,
                };
                continue;
            }
            let lives = |to| {
                let mut all = attempts.iter();
                all.any(|a| a.open && a.local != u.address && a.remote == to)
            };
            let gone = |a: &Attempt| a.retransmissions >= RETRANSMISSIONS && lives(a.remote);
            if mine().any(gone) {
                // Anew, so that of several that have failed each has its turn.
                *entry = Entry {
                    heard: false,
                    failed: Some(now),
                };
            }
        }
        self.entries != before
    }

    /// A probe was answered.
    pub fn answered(&mut self, interface: &str, address: IpAddr) -> bool {
        let entry = self.entries.entry((interface.to_owned(), address));
        let entry = entry.or_default();
        let news = !entry.heard;
        *entry = Entry {
            heard: true,
            failed: None,
        };
        news
    }

    /// Takes everything that was heard for old: the proxy is another.
    pub fn unheard(&mut self) {
        self.entries.values_mut().for_each(|e| e.heard = false);
    }

    /// When it failed last; those that did not come first.
    pub fn failed(&self, interface: &str, address: IpAddr) -> Option<Time> {
        self.of(interface, address).failed
    }

    /// Whether something came back since it is in use.
    pub fn heard(&self, interface: &str, address: IpAddr) -> bool {
        self.of(interface, address).heard
    }

    fn of(&self, interface: &str, address: IpAddr) -> Entry {
        let key = (interface.to_owned(), address);
        self.entries.get(&key).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a(k: u8) -> IpAddr {
        IpAddr::from([10, 77, k, 2])
    }

    fn attempt(k: u8, server: u8, open: bool, retransmissions: u8) -> Attempt {
        Attempt {
            local: a(k),
            remote: SocketAddr::from(([192, 0, 2, server], 80)),
            open,
            retransmissions,
        }
    }

    fn tried(k: u8) -> Tried<'static> {
        Tried {
            interface: "d",
            address: a(k),
            silent: false,
            doubled: false,
        }
    }

    fn at(n: u64) -> Time {
        Time::from_nanos(n)
    }

    #[test]
    fn one_fails_where_the_server_answers_another_and_is_cleared_by_an_answer() {
        let mut t = Trials::default();
        let failed = |t: &Trials, k| t.failed("d", a(k)).is_some();
        let both = [tried(1), tried(2)];
        t.look(
            &both,
            &[attempt(1, 1, false, 1), attempt(2, 1, true, 0)],
            at(1),
        );
        assert!(!failed(&t, 1), "one may be lost");
        t.look(
            &both,
            &[attempt(1, 1, false, 2), attempt(2, 2, true, 0)],
            at(2),
        );
        assert!(!failed(&t, 1), "it may be the server");
        let news = t.look(
            &both,
            &[attempt(1, 1, false, 2), attempt(2, 1, true, 0)],
            at(3),
        );
        assert!(news && failed(&t, 1) && !failed(&t, 2) && t.heard("d", a(2)));
        assert!(!t.look(&both, &[attempt(2, 1, true, 0)], at(4)));
        assert!(failed(&t, 1), "nothing is tried meanwhile");
        assert!(t.answered("d", a(1)) && !failed(&t, 1) && !t.answered("d", a(1)));
        // It may have been another network in which it was heard.
        t.look(
            &both,
            &[attempt(1, 1, false, 2), attempt(2, 1, true, 0)],
            at(5),
        );
        assert!(failed(&t, 1) && !t.heard("d", a(1)));
    }

    #[test]
    fn what_comes_anew_is_tried_anew() {
        let mut t = Trials::default();
        let silent = Tried {
            silent: true,
            doubled: true,
            ..tried(1)
        };
        assert!(t.look(&[silent], &[], at(7)));
        assert!(!t.look(&[silent], &[], at(8)));
        assert_eq!(t.failed("d", a(1)), Some(at(7)));
        assert_eq!(t.failed("e", a(1)), None, "the other interface");
        let there = BTreeSet::from([("d".to_owned(), a(1))]);
        t.keep(&there, &BTreeSet::new());
        assert!(t.failed("d", a(1)).is_some());
        t.keep(&BTreeSet::new(), &BTreeSet::new());
        assert_eq!(t, Trials::default());
        t.answered("d", a(1));
        t.keep(&there, &there);
        assert!(t.heard("d", a(1)));
        t.keep(&there, &BTreeSet::new());
        assert!(!t.heard("d", a(1)), "it may have died since");
    }
}
