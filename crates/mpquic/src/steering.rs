//! How a connection shares its sending among its paths.

use std::collections::BTreeMap;

pub use braid_api::{Acks, Lane};
use braid_core::class::{ClassSteering, MAX_CLASSES};
use braid_core::sched::WrrMode;
use braid_core::sched::{SCHEDULERS, Scheduler, by_name};

use crate::Error;

/// The schedulers, by name: that of the default class, and those of others.
#[derive(Clone, Debug, PartialEq)]
pub struct Steering {
    /// Scheduler of the default class: one of [`braid_core::sched::SCHEDULERS`].
    pub scheduler: String,
    /// How round robin treats full windows.
    pub wrr_mode: WrrMode,
    /// On the datagram lane, what blocks the receiver is sent again on a faster path when
    /// there is nothing else to send ([`braid_core::sched::xlink`]).
    pub reinject: bool,
    /// Steering of other classes by their numbers, 1 to 7, on the datagram lane. Data of a class
    /// that is not here goes as the default's.
    pub classes: BTreeMap<u8, ClassSteering>,
}

/// Schedulers of a connection.
#[derive(Debug)]
pub struct Schedulers {
    /// Scheduler of the default class.
    pub default: Box<dyn Scheduler>,
    /// Schedulers of other classes.
    pub others: BTreeMap<u8, Box<dyn Scheduler>>,
}

impl Default for Steering {
    /// `minrtt`.
    fn default() -> Self {
        Self {
            scheduler: "minrtt".to_owned(),
            wrr_mode: WrrMode::WorkConserving,
            reinject: false,
            classes: BTreeMap::new(),
        }
    }
}

/// Streams of QUIC itself tell nothing of what waits, and cannot be copied.
fn needs_datagrams(scheduler: &dyn Scheduler) -> bool {
    scheduler.copies() || scheduler.needs_flow()
}

/// The names of some schedulers, for messages.
fn names(of: impl Fn(&dyn Scheduler) -> bool) -> String {
    let all = SCHEDULERS.iter();
    let some = all.filter(|(_, make)| of(&*make(WrrMode::Strict)));
    some.map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn unknown(name: &str) -> Error {
    Error::UnknownScheduler {
        name: name.to_owned(),
        known: names(|_| true),
    }
}

impl Steering {
    /// Makes the schedulers, for a lane.
    ///
    /// # Errors
    /// [`Error::UnknownScheduler`], [`Error::NeedsDatagramLane`], or [`Error::BadClass`].
    pub fn make(&self, lane: Lane) -> Result<Schedulers, Error> {
        let others = self.classes.iter().map(|(number, class)| {
            let bad = |why: String| Error::BadClass {
                number: *number,
                why,
            };
            if *number == 0 || usize::from(*number) >= MAX_CLASSES {
                return Err(bad(format!("numbers are 1 to {}", MAX_CLASSES - 1)));
            }
            if lane == Lane::Stream {
                return Err(bad("on the stream lane all data is of one class".into()));
            }
            class
                .check()
                .map_err(|fault| bad(format!("{}: {}", fault.key, fault.what)))?;
            let made = class.make().ok_or_else(|| unknown(&class.mode))?;
            Ok((*number, made))
        });
        Ok(Schedulers {
            default: self.default_class(lane)?,
            others: others.collect::<Result<_, _>>()?,
        })
    }

    fn default_class(&self, lane: Lane) -> Result<Box<dyn Scheduler>, Error> {
        let name = &self.scheduler;
        let made = by_name(name, self.wrr_mode).ok_or_else(|| unknown(name))?;
        if lane == Lane::Stream && needs_datagrams(&*made) {
            return Err(Error::NeedsDatagramLane {
                name: name.clone(),
                others: names(|s| !needs_datagrams(s)),
            });
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_lane_cannot_do_is_said() {
        let of = |name: &str, lane| {
            let steering = Steering {
                scheduler: name.to_owned(),
                ..Steering::default()
            };
            steering
                .make(lane)
                .map(|s| s.default.name())
                .map_err(|e| e.to_string())
        };
        for (name, _) in SCHEDULERS {
            assert_eq!(of(name, Lane::Datagram).as_deref(), Ok(*name));
        }
        assert_eq!(of("wrr", Lane::Stream).as_deref(), Ok("wrr"));
        let refused = of("ecf", Lane::Stream).unwrap_err();
        assert!(
            refused.contains("lane = \"datagram\", or one of minrtt, rr"),
            "{refused}"
        );
        let class = ClassSteering {
            mode: "redundant".to_owned(),
            ..ClassSteering::default()
        };
        let with = |number: u8, lane| {
            let steering = Steering {
                classes: [(number, class.clone())].into(),
                ..Steering::default()
            };
            steering.make(lane).map_err(|e| e.to_string())
        };
        let made = with(7, Lane::Datagram).unwrap();
        assert_eq!(made.others[&7].name(), "redundant");
        assert!(with(8, Lane::Datagram).unwrap_err().contains("1 to 7"));
        let refused = with(1, Lane::Stream).unwrap_err();
        assert!(refused.contains("stream lane"), "{refused}");
        let unknown = of("fifo", Lane::Datagram).unwrap_err();
        assert!(unknown.starts_with("unknown packet scheduler \"fifo\": there are minrtt"));
    }
}
