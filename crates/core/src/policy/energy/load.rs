//! Load: what accesses carry, and how much they have been seen to carry.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::control::{Direction, PerDirection, Snapshot};
use crate::{Rate, Time};

/// Rate that any access is thought to carry: less tells nothing, as keep-alives of one at rest.
pub(super) const FLOOR: Rate = Rate::from_bps(256_000);
/// Time for which a rate counts that an access has carried: cells and neighbours change.
const MEMORY: Duration = Duration::from_secs(600);
/// Time for which it counts as all that the access carries.
const FULL: Duration = Duration::from_secs(60);

/// Highest rate that an access has carried lately.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Peak {
    rate: Rate,
    at: Time,
    /// Moment at which it was known to be all that the access can carry.
    full: Option<Time>,
}

/// Capacity as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Known {
    pub(super) capacity: Rate,
    /// Whether it is more than a lower bound.
    pub(super) firm: bool,
}

/// Rates of all accesses, now and lately.
#[derive(Debug, Default)]
pub(super) struct Load {
    peaks: BTreeMap<(String, Direction), Peak>,
}

impl Load {
    /// Takes in what accesses have carried until `now`.
    pub(super) fn update(&mut self, now: Time, snapshot: &Snapshot) {
        self.peaks.retain(|_, p| now.since(p.at) < MEMORY);
        for (name, access) in &snapshot.accesses {
            if !access.is_usable() {
                // It may come back in another cell.
                self.peaks.retain(|(n, _), _| n != name);
                continue;
            }
            let Some(carried) = &access.carried else {
                continue;
            };
            for d in Direction::ALL {
                let rate = *carried.rate.get(d);
                let before = self.peaks.get(&(name.clone(), d));
                // What is a little more still is what it carries when full.
                let full = before.and_then(|p| p.full.filter(|_| rate <= p.rate.scaled(1.1)));
                if before.is_none_or(|p| rate >= p.rate) && rate >= FLOOR {
                    let at = now;
                    self.peaks
                        .insert((name.clone(), d), Peak { rate, at, full });
                }
            }
        }
    }

    /// Notes that what these accesses have carried was all that they can.
    pub(super) fn were_full(&mut self, now: Time, set: &BTreeSet<String>, d: Direction) {
        for ((name, direction), peak) in &mut self.peaks {
            if *direction == d && set.contains(name) {
                peak.full = Some(now);
            }
        }
    }

    /// Returns what is known of an access's capacity: the estimate, else what it has carried.
    pub(super) fn capacity(
        &self,
        now: Time,
        snapshot: &Snapshot,
        name: &str,
        d: Direction,
    ) -> Option<Known> {
        let access = snapshot.accesses.get(name)?;
        let estimate = access.directions.get(d).estimate.as_ref();
        if let Some(e) = estimate.filter(|e| !e.at_least) {
            return Some(Known {
                capacity: e.capacity,
                firm: true,
            });
        }
        let peak = self.peaks.get(&(name.to_owned(), d));
        let bound = estimate.map(|e| e.capacity);
        match (peak, bound) {
            (Some(p), bound) if bound.is_none_or(|b| b <= p.rate) => Some(Known {
                capacity: p.rate,
                firm: p.full.is_some_and(|at| now.since(at) < FULL),
            }),
            (_, Some(capacity)) => Some(Known {
                capacity,
                firm: false,
            }),
            (_, None) => None,
        }
    }
}

/// Returns the sum of two rates, at most the greatest there is.
pub(super) fn plus(a: Rate, b: Rate) -> Rate {
    Rate::from_bps(a.as_bps().saturating_add(b.as_bps()))
}

/// Returns what all accesses carry together.
pub(super) fn carried(snapshot: &Snapshot) -> PerDirection<Rate> {
    let all = snapshot.accesses.values();
    let all = all.filter_map(|a| a.carried.as_ref());
    all.fold(PerDirection::default(), |sum, c| {
        PerDirection::from_fn(|d| plus(*sum.get(d), *c.rate.get(d)))
    })
}

/// Returns the moment of the newest rates.
pub(super) fn newest(snapshot: &Snapshot) -> Option<Time> {
    let all = snapshot.accesses.values();
    all.filter_map(|a| a.carried.as_ref().map(|c| c.at)).max()
}
