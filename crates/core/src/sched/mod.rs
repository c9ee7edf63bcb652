//! Packet schedulers: which path carries what is sent next.
//!
//! A scheduler sees every path of one connection as a [`PathView`] and what is to
//! be sent as a [`Flow`], and answers with a [`Decision`]. It keeps no socket, no
//! clock and no randomness; time is passed in. The engine asks before every
//! burst, sends at most what the decision allows on the path that it names, and
//! reports what has left with [`Scheduler::sent`].
//!
//! The names are those of scenarios and of the kernel's schedulers in
//! `kernel/mptcp`, whose behaviour these share. To add one: a file here and a
//! line in [`SCHEDULERS`].

mod active_standby;
mod blest;
mod burst;
mod ecf;
mod loss_share;
mod minrtt;
mod mode;
mod priority_based;
mod redundant;
mod retransmission;
mod round;
mod rr;
mod smallest_delay;
#[cfg(test)]
mod tests;
mod thresholds;
mod view;
mod wrr;
pub mod xlink;

use std::fmt::Debug;

pub use active_standby::{ActiveStandby, confine};
pub use blest::Blest;
pub use burst::{MOST_BURST, burst};
pub use ecf::Ecf;
pub use loss_share::LossShare;
pub use minrtt::MinRtt;
pub use mode::WrrMode;
pub use priority_based::PriorityBased;
pub use redundant::Redundant;
pub use rr::RoundRobin;
pub use smallest_delay::SmallestDelay;
pub use thresholds::{Measured, ThresholdGate, Thresholds};
pub use view::{Flow, PathView, only_backups, takes_part};
pub use wrr::WeightedRoundRobin;

use crate::Time;

/// More paths than this are not scheduled: [`Paths`] is a set of so many.
pub const MOST_PATHS: usize = 64;

/// A set of paths, by their place in the slice that the scheduler was shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paths(u64);

impl Paths {
    /// Adds number `i`, below [`MOST_PATHS`]; others are ignored.
    pub fn insert(&mut self, i: usize) {
        if i < MOST_PATHS {
            self.0 |= 1 << i;
        }
    }

    /// Whether number `i` is in it.
    pub fn contains(self, i: usize) -> bool {
        i < MOST_PATHS && self.0 >> i & 1 == 1
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Their numbers, the least first.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MOST_PATHS).filter(move |i| self.contains(*i))
    }
}

impl FromIterator<usize> for Paths {
    fn from_iter<T: IntoIterator<Item = usize>>(all: T) -> Self {
        let mut set = Self::default();
        all.into_iter().for_each(|i| set.insert(i));
        set
    }
}

/// Decision of a scheduler: what to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Send on the path of this number.
    Send {
        /// Its place in the slice.
        path: usize,
        /// At most so many bytes before the scheduler is asked again; a packet that
        /// was begun within them may end beyond.
        most: u64,
    },
    /// Send one packet on each of these.
    Copies(Paths),
    /// Send nothing.
    Wait(Until),
}

/// Condition that ends a wait; whatever else changes, the scheduler may be asked as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// There is room in the window of the path of this number.
    Room(usize),
    /// There is room in the window of any.
    AnyRoom,
    /// There is a path that can be used.
    Path,
}

/// One packet scheduler, with the state of one connection.
pub trait Scheduler: Debug + Send {
    /// Its name in scenarios.
    fn name(&self) -> &'static str;

    /// Says what to do with the packet that is next. `flow.waiting` is above 0.
    fn decide(&mut self, now: Time, flow: &Flow, paths: &[PathView]) -> Decision;

    /// Says what to do with what was lost, of which `flow.waiting` bytes are to be sent again;
    /// `late` are the paths from which nothing has come back for a round trip. Where this waits,
    /// [`Scheduler::decide`] is asked for what is new.
    fn decide_lost(&mut self, now: Time, flow: &Flow, paths: &[PathView], late: Paths) -> Decision {
        match self.free_for_lost(paths) {
            Some(free) => retransmission::decide(paths, free, flow.waiting, late),
            None => self.decide(now, flow, paths),
        }
    }

    /// The paths among which what was lost may leave on whichever is done with it first; none
    /// where it is decided on as anything else.
    fn free_for_lost(&self, _paths: &[PathView]) -> Option<Paths> {
        None
    }

    /// `bytes` have left on `paths[path]`.
    fn sent(&mut self, _paths: &[PathView], _path: usize, _bytes: u64) {}

    /// Whether it asks for copies, which streams of QUIC itself cannot have.
    fn copies(&self) -> bool {
        false
    }

    /// Whether it prefers the path on which data arrives first: then a packet may rather wait a little
    /// for that one than leave on another.
    fn by_delay(&self) -> bool {
        false
    }

    /// Whether it decides by what the [`Flow`] says, which streams of QUIC itself do not
    /// tell.
    fn needs_flow(&self) -> bool {
        false
    }
}

/// Makes a scheduler; round robin is strict or not.
type Make = fn(WrrMode) -> Box<dyn Scheduler>;

/// Every scheduler, by name.
pub const SCHEDULERS: &[(&str, Make)] = &[
    ("minrtt", |_| Box::new(MinRtt)),
    ("rr", |mode| Box::new(RoundRobin::new(mode))),
    ("wrr", |mode| Box::new(WeightedRoundRobin::new(mode))),
    ("redundant", |_| Box::new(Redundant::default())),
    ("active-standby", |_| Box::new(ActiveStandby)),
    ("priority-based", |_| Box::new(PriorityBased)),
    ("smallest-delay", |_| Box::new(SmallestDelay::default())),
    ("blest", |_| Box::new(Blest::default())),
    ("ecf", |_| Box::new(Ecf::default())),
];

/// A new scheduler called `name`.
pub fn by_name(name: &str, mode: WrrMode) -> Option<Box<dyn Scheduler>> {
    let found = SCHEDULERS.iter().find(|(n, _)| *n == name);
    found.map(|(_, make)| make(mode))
}
