//! Raises: how an access whose own weight holds it back shows what it can carry.
//!
//! A strict scheduler shares exactly by weights, so the access that is full first limits all
//! others. Their delivery shows no more than their weight allows, and an estimate that follows
//! delivery would never rise. As in BBR's probing for bandwidth
//! (draft-cardwell-ccwg-bbr, "ProbeBW_UP"), they are given more than their estimate for a
//! moment. BBR's gain is kept for the first try. One that succeeds shows that much more may be
//! free, so the next gains double, as in BBR's startup.
//!
//! A raise that meets a full access costs something: that access, over its capacity by a
//! quarter, holds back all others to four fifths until its next sample. Raises therefore end
//! with the first sample that shows a full access, all of a direction begin together (which
//! costs no more than one), and an access that was full rests.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::control::{DirectionSnapshot, LimitedBy};
use crate::{Rate, Time};

/// Gain of the first try (BBR's probing for bandwidth).
const FIRST_GAIN: f64 = 1.25;

/// Gain after a try that succeeded (BBR's startup).
const NEXT_GAIN: f64 = 2.0;

/// Rise of an estimate that shows that a try succeeded: half the first gain, because a round
/// of samples may begin before the weights changed.
const SUCCESS: f64 = 1.1;

/// Time after which a try that shows nothing is given up: a round trip of a slow access, the
/// way to the engine, and a round of samples.
const TRY_FOR: Duration = Duration::from_millis(400);

/// Rest of an access that was full, or that was raised in vain. Shorter ones cost more; longer
/// ones find a rise of ten times later than after 1 s (`tests/closed_loop.rs` has both).
const REST: Duration = Duration::from_millis(500);

/// Raises of one direction.
#[derive(Debug, Default)]
pub(super) struct Raises {
    raised: BTreeMap<String, Raised>,
    /// Moment at which each access was last full, or last raised in vain.
    rested: BTreeMap<String, Time>,
}

#[derive(Debug)]
struct Raised {
    from: Rate,
    gain: f64,
    since: Time,
}

impl Raises {
    /// Returns what `access` is to be weighed as while it is raised.
    pub(super) fn target(&self, access: &str) -> Option<Rate> {
        let raised = self.raised.get(access)?;
        Some(raised.from.scaled(raised.gain))
    }

    /// Takes in what accesses carry now; `accesses` are those that share the traffic, `least`
    /// is what an access is weighed as that seems to carry nothing.
    pub(super) fn update(
        &mut self,
        now: Time,
        accesses: &BTreeMap<&str, &DirectionSnapshot>,
        least: Rate,
    ) {
        let (raised, rested) = (&mut self.raised, &mut self.rested);
        raised.retain(|name, raised| {
            let Some(capacity) = accesses
                .get(name.as_str())
                .and_then(|a| held_back(a, least))
            else {
                return false;
            };
            if capacity >= raised.from.scaled(SUCCESS) {
                *raised = Raised {
                    from: capacity,
                    gain: NEXT_GAIN,
                    since: now,
                };
            } else if now.since(raised.since) >= TRY_FOR {
                rested.insert(name.clone(), now);
                return false;
            }
            true
        });
        rested.retain(|_, since| now.since(*since) < REST);
        for (name, access) in accesses {
            if is_full(access) {
                rested.insert((*name).to_owned(), now);
            }
        }
        // Where no access is full, the weights hold nothing back: there is no more to send.
        if !raised.is_empty() || !accesses.values().any(|a| is_full(a)) {
            return;
        }
        for (name, access) in accesses
            .iter()
            .filter(|(name, _)| !rested.contains_key(**name))
        {
            if let Some(from) = held_back(access, least) {
                let one = Raised {
                    from,
                    gain: FIRST_GAIN,
                    since: now,
                };
                raised.insert((*name).to_owned(), one);
            }
        }
    }
}

/// Whether an access carries all that it can.
fn is_full(access: &DirectionSnapshot) -> bool {
    let limited_by = access.activity.as_ref().map(|a| a.limited_by);
    limited_by == Some(LimitedBy::Nothing)
}

/// Returns the estimate of an access that the scheduler holds back, at least `least`; `None` for
/// others.
fn held_back(access: &DirectionSnapshot, least: Rate) -> Option<Rate> {
    let activity = access.activity.as_ref()?;
    let estimate = access.estimate.as_ref()?;
    (activity.limited_by == LimitedBy::Scheduler).then_some(estimate.capacity.max(least))
}
