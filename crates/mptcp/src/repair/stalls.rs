//! Finds subflows that make no progress while their access answers: a NAT has forgotten their
//! five-tuple, or packets of their size do not pass.
//!
//! Liveness of an address says nothing about a single subflow on it. The sender of data knows:
//! retransmissions are not acknowledged although what was sent later on the same path was
//! answered. What this end receives, only the other end can judge: it is [asked](braid_access::probe::query)
//! about subflows that are quiet.
//!
//! An idle subflow, one that the scheduler does not choose, and one whose peer reads nothing
//! have nothing outstanding. TCP probes a zero window (RFC 9293 3.8.6.1), and a peer that is
//! there acknowledges the probes; it probes as well where this machine itself refuses to send,
//! as a filter of its own does. On a congested access, acknowledgements come
//! late, but probes that were sent later come later still.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

use crate::diag::TcpSocket;
use braid_access::probe::query::{self, Subject, Verdict};

/// Silence of a subflow that is a stall at the earliest.
const QUIET: Duration = Duration::from_secs(1);
/// Retransmission timeouts in a row (RFC 6298 5) that are no coincidence.
const TIMEOUTS: u8 = 2;
/// A retransmission that is due within this is waited for: it may succeed.
const SOON: Duration = Duration::from_millis(250);
/// Time that the last retransmission has for its acknowledgement at least.
const ANSWER: Duration = Duration::from_millis(200);
/// The kernel's longest timeout (`TCP_RTO_MAX`).
const RTO_MAX: Duration = Duration::from_secs(120);
/// Silence of a subflow after which the other end is asked about it.
const ASK: Duration = Duration::from_millis(500);
/// Interval of questions about a subflow of a connection that is busy elsewhere, and the
/// longest one about others.
const AGAIN: Duration = Duration::from_millis(240);
const AGAIN_MAX: Duration = Duration::from_secs(16);
/// A connection on which something came this lately is busy.
const BUSY: Duration = Duration::from_millis(500);
/// How long it is told that subflows on an address stalled.
const TOLD: Duration = Duration::from_secs(60);

/// Both ends of a subflow, this one first.
pub type Ends = (SocketAddr, SocketAddr);

/// Sending side of a subflow as its socket tells it (`tcp_info`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Data is outstanding, or probes of a window are.
    pub unacked: bool,
    /// Retransmission timeouts in a row, or probes of a window.
    pub timeouts: u8,
    /// Time since an acknowledgement or data last came.
    pub quiet: Duration,
    /// Time since data was last sent, retransmissions included.
    pub sent_ago: Duration,
    /// Time from the last retransmission or probe to the next.
    pub rto: Duration,
    /// Smoothed round-trip time.
    pub srtt: Duration,
}

impl Progress {
    /// Returns what a socket tells. Sockets count time in ticks (jiffies) up to the last one,
    /// which was `since_tick` ago.
    pub fn of(socket: &TcpSocket, since_tick: Duration) -> Self {
        let t = &socket.tcp;
        let ago = |ms: u32| Duration::from_millis(ms.into()) + since_tick;
        // With nothing in flight the kernel probes, and leaves the timeout as it is.
        let probes = t.unacked == 0 && t.probes > 0;
        let doubled = if probes { t.backoff } else { 0 };
        let rto = Duration::from_micros(t.rto_us.into());
        Self {
            unacked: t.unacked > 0 || probes,
            timeouts: t.retransmits.max(t.probes),
            quiet: ago(t.last_ack_recv_ms.min(t.last_data_recv_ms)),
            sent_ago: ago(t.last_data_sent_ms),
            rto: (rto * (1 << doubled.min(16))).min(RTO_MAX),
            srtt: Duration::from_micros(t.rtt_us.into()),
        }
    }

    /// Whether retransmissions are not acknowledged, and the next one is not due soon.
    pub fn stalls(&self) -> bool {
        let patience = ANSWER.max(self.srtt * 2).min(QUIET);
        let next = self.rto.saturating_sub(self.sent_ago);
        self.unacked
            && self.timeouts >= TIMEOUTS
            && self.quiet >= QUIET
            && self.sent_ago >= patience
            && next >= SOON
    }
}

/// A subflow of a connection that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Token of the connection here.
    pub token: u32,
    /// Name of the subflow in queries to the other end; absent where nobody there answers.
    pub subject: Option<Subject>,
    /// Its ends.
    pub ends: Ends,
    /// One of the ends wants it used as a backup only.
    pub backup: bool,
    /// How it fares.
    pub progress: Progress,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When the other end was asked last, and the wait until the next question.
    asked: Time,
    wait: Duration,
    /// Nothing came for [`ASK`].
    quiet: bool,
    /// When the question was sent to which the other end said that it stalls.
    stalls_there: Option<Time>,
    /// Since when it stalls, by whichever end.
    stalls: Option<Time>,
}

/// Stalls on an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalled {
    /// Beginning of the silence of the subflow that stalled last.
    pub since: Time,
    /// When a subflow was last seen to stall.
    pub last: Time,
    /// Subflows that stalled since a minute without any.
    pub subflows: u32,
}

/// Questions to the other end about subflows of one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The address they are on, from which the question is to be sent.
    pub address: IpAddr,
    /// To be found in the response.
    pub number: u32,
    /// The subflows.
    pub subjects: Vec<Subject>,
}

#[derive(Clone, Debug)]
struct Asked {
    at: Time,
    address: IpAddr,
    subjects: Vec<(Subject, Ends)>,
}

/// Subflows that stall.
#[derive(Clone, Debug, Default)]
pub struct Stalls {
    entries: BTreeMap<Ends, Entry>,
    number: u32,
    /// By number.
    asked: BTreeMap<u32, Asked>,
    by_address: BTreeMap<IpAddr, Stalled>,
    /// Addresses on which a subflow fell quiet, as of the last look, while others of its
    /// connection carry data, and since when.
    fell_quiet: BTreeMap<IpAddr, Time>,
}

impl Stalls {
    /// Takes the subflows as they are `now`; returns what the other end is to be asked.
    /// `answered` is when the last packet was sent from an address that was answered; absent
    /// if the access does not answer.
    pub fn look(
        &mut self,
        looks: &[Look],
        answered: &dyn Fn(IpAddr) -> Option<Time>,
        now: Time,
    ) -> Vec<Question> {
        let there: BTreeSet<Ends> = looks.iter().map(|l| l.ends).collect();
        self.entries.retain(|ends, _| there.contains(ends));
        self.asked.retain(|_, a| now.since(a.at) < AGAIN_MAX);
        self.by_address.retain(|_, s| now.since(s.last) < TOLD);
        self.fell_quiet.clear();
        let mut busy: BTreeSet<u32> = BTreeSet::new();
        busy.extend(
            looks
                .iter()
                .filter(|l| l.progress.quiet < BUSY)
                .map(|l| l.token),
        );
        let mut ask: BTreeMap<IpAddr, Vec<(Time, Subject, Ends)>> = BTreeMap::new();
        for l in looks {
            let address = l.ends.0.ip();
            let Some(answered) = answered(address) else {
                self.entries.remove(&l.ends);
                continue;
            };
            let entry = self.entries.entry(l.ends).or_insert(Entry {
                asked: Time::ZERO,
                wait: AGAIN,
                quiet: false,
                stalls_there: None,
                stalls: None,
            });
            let began = now - l.progress.quiet;
            let heard_since = |t: Time| began >= t;
            if entry.stalls_there.is_some_and(heard_since) {
                entry.stalls_there = None;
            }
            // A packet that left in the latter half of the silence was answered.
            let answers = answered >= began + l.progress.quiet / 2;
            let here = l.progress.stalls() && answers;
            let there = entry.stalls_there.is_some() && l.progress.quiet >= QUIET;
            if !here && !there {
                entry.stalls = None;
            } else if entry.stalls.is_none() {
                entry.stalls = Some(now);
                let known = self.by_address.get(&address);
                let subflows = known.map_or(0, |s| s.subflows).saturating_add(1);
                let stalled = Stalled {
                    since: began,
                    last: now,
                    subflows,
                };
                self.by_address.insert(address, stalled);
            } else if let Some(known) = self.by_address.get_mut(&address) {
                known.last = now;
            }
            if l.progress.quiet < ASK {
                (entry.wait, entry.quiet) = (AGAIN, false);
                continue;
            }
            let busy = busy.contains(&l.token);
            if !std::mem::replace(&mut entry.quiet, true) && busy && !l.backup {
                self.fell_quiet.insert(address, began);
            }
            let wait = if busy { AGAIN } else { entry.wait };
            let Some(subject) = l.subject.filter(|_| !l.backup) else {
                continue;
            };
            if now.since(entry.asked) >= wait {
                let all = ask.entry(address).or_default();
                all.push((entry.asked, subject, l.ends));
            }
        }
        self.ask(ask, now)
    }

    /// Returns the questions about those that were asked about least lately.
    fn ask(
        &mut self,
        all: BTreeMap<IpAddr, Vec<(Time, Subject, Ends)>>,
        now: Time,
    ) -> Vec<Question> {
        let mut questions = Vec::new();
        for (address, mut wanted) in all {
            wanted.sort_unstable();
            wanted.truncate(query::MOST);
            for (_, _, ends) in &wanted {
                if let Some(e) = self.entries.get_mut(ends) {
                    e.asked = now;
                    e.wait = (e.wait * 2).min(AGAIN_MAX);
                }
            }
            self.number = self.number.wrapping_add(1);
            let number = self.number;
            let subjects: Vec<_> = wanted.into_iter().map(|(_, s, ends)| (s, ends)).collect();
            questions.push(Question {
                address,
                number,
                subjects: subjects.iter().map(|(s, _)| *s).collect(),
            });
            let asked = Asked {
                at: now,
                address,
                subjects,
            };
            self.asked.insert(number, asked);
        }
        questions
    }

    /// Takes the response to a question; returns whether it says that a subflow stalls.
    pub fn answer(
        &mut self,
        address: IpAddr,
        number: u32,
        verdicts: &[(Subject, Verdict)],
    ) -> bool {
        let Some(asked) = self.asked.get(&number).filter(|a| a.address == address) else {
            return false;
        };
        let mut any = false;
        for (subject, ends) in &asked.subjects {
            let mut of = verdicts.iter().filter(|(s, _)| s == subject);
            let (Some((_, verdict)), Some(entry)) = (of.next(), self.entries.get_mut(ends)) else {
                continue;
            };
            match verdict {
                Verdict::Stalled => {
                    entry.stalls_there = Some(asked.at);
                    any = true;
                }
                Verdict::Progresses | Verdict::Unknown => entry.stalls_there = None,
            }
        }
        self.asked.remove(&number);
        any
    }

    /// Returns the subflows that stall now.
    pub fn now(&self) -> BTreeSet<Ends> {
        let stalls = self.entries.iter().filter(|(_, e)| e.stalls.is_some());
        stalls.map(|(ends, _)| *ends).collect()
    }

    /// Returns the addresses whose path may carry smaller packets than it did, as of the last
    /// look, and when the silence of a subflow there began: one that stalls, or one that fell
    /// quiet while others of its connection carry data, which a scheduler may also want so.
    pub fn suspects(&self) -> impl Iterator<Item = (IpAddr, Time)> {
        let stalls = self.entries.iter().filter(|(_, e)| e.stalls.is_some());
        let stalls = stalls.filter_map(|(ends, _)| {
            let address = ends.0.ip();
            Some((address, self.by_address.get(&address)?.since))
        });
        stalls.chain(self.fell_quiet.iter().map(|(a, t)| (*a, *t)))
    }

    /// Returns the stalls of the last minute on an address.
    pub fn of(&self, address: IpAddr) -> Option<Stalled> {
        self.by_address.get(&address).copied()
    }
}

/// Returns the state of a subflow that the other end asks about, among the `sockets` here:
/// stalled only if all that it may be are.
pub fn verdict(sockets: &[TcpSocket], subject: Subject, since_tick: Duration) -> Verdict {
    let is_it = |s: &&TcpSocket| {
        let ids = s.ulp.map(|u| (u.remote_id, u.local_id));
        s.carries()
            && s.token() == Some(subject.token)
            && ids == Some((subject.asker_id, subject.asked_id))
    };
    let mut all = sockets.iter().filter(is_it).peekable();
    if all.peek().is_none() {
        return Verdict::Unknown;
    }
    match all.all(|s| Progress::of(s, since_tick).stalls()) {
        true => Verdict::Stalled,
        false => Verdict::Progresses,
    }
}

#[cfg(test)]
mod tests;
