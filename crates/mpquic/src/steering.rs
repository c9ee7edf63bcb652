//! How a connection shares its sending among its paths.

pub use braid_api::{Acks, Lane};
use braid_core::sched::WrrMode;
use braid_core::sched::{SCHEDULERS, Scheduler, by_name};

use crate::Error;

/// The scheduler, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steering {
    /// One of [`braid_core::sched::SCHEDULERS`].
    pub scheduler: String,
    /// How round robin treats full windows.
    pub wrr_mode: WrrMode,
    /// On the datagram lane, what blocks the receiver is sent again on a faster path when
    /// there is nothing else to send ([`braid_core::sched::xlink`]).
    pub reinject: bool,
}

impl Default for Steering {
    /// `minrtt`.
    fn default() -> Self {
        Self {
            scheduler: "minrtt".to_owned(),
            wrr_mode: WrrMode::WorkConserving,
            reinject: false,
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

impl Steering {
    /// The scheduler, for a lane.
    ///
    /// # Errors
    /// [`Error::UnknownScheduler`], or [`Error::NeedsDatagramLane`].
    pub fn make(&self, lane: Lane) -> Result<Box<dyn Scheduler>, Error> {
        let name = &self.scheduler;
        let made = by_name(name, self.wrr_mode).ok_or_else(|| Error::UnknownScheduler {
            name: name.clone(),
            known: names(|_| true),
        })?;
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
                .map(|s| s.name())
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
        let unknown = of("fifo", Lane::Datagram).unwrap_err();
        assert!(unknown.starts_with("unknown packet scheduler \"fifo\": there are minrtt"));
    }
}
