//! `passive`: capacity from the traffic that flows anyway.
//!
//! The delivery rate is filtered as in BBR (draft-cardwell-ccwg-bbr, "Delivery Rate" and
//! "MaxBwFilter"): the estimate is the maximum over a window, and a sample that something else
//! limited can raise it and never lower it. Three things differ, because the rate is that of
//! an access and not of one flow. A round sums all paths. The window is time and not round
//! trips, because paths of one access have different ones. Its clock runs only while the
//! access was full, so an idle access keeps what it knows.

use std::collections::VecDeque;
use std::time::Duration;

use super::{Estimator, Round};
use crate::control::{Direction, Estimate, LimitedBy, PerDirection};
use crate::{Rate, Time};

/// Time of a full access for which its maximum counts after a deep fall. It must outlast pauses
/// of a radio (handover, scanning: up to 0.3 s), and with a round of samples and a decision
/// after it must end within 1 s: so deep a fall is to be believed.
const FILTER_WINDOW: Duration = Duration::from_millis(500);

/// Time for which the maximum counts otherwise: two rounds of samples, of which one may be low
/// by accident. An estimate that is late on a slow access holds back a strict scheduler.
const SHORT_WINDOW: Duration = Duration::from_millis(200);

/// Fall that is deep: to less than this share of the maximum. Smaller ones are what fading and
/// congestion control do; deeper ones may be a pause.
const DEEP_FALL: f64 = 0.25;

/// Estimator of delivered traffic.
#[derive(Debug, Default)]
pub struct Passive {
    filters: PerDirection<MaxFilter>,
}

impl Estimator for Passive {
    fn name(&self) -> &'static str {
        "passive"
    }

    fn on_round(&mut self, direction: Direction, round: &Round) {
        self.filters.get_mut(direction).update(round);
    }

    fn on_lost(&mut self) {
        self.filters = PerDirection::default();
    }

    fn estimate(&self, direction: Direction) -> Option<Estimate> {
        let filter = self.filters.get(direction);
        filter.max().map(|capacity| Estimate {
            capacity,
            at_least: !filter.was_full,
            at: filter.newest,
            source: self.name().to_owned(),
        })
    }
}

/// Windowed maximum (Kathleen Nichols' algorithm, exact): a queue of falling rates.
#[derive(Debug, Default)]
struct MaxFilter {
    /// Time for which the access was full.
    full_for: Duration,
    /// Rates and the value of `full_for` at which each was seen, the highest first.
    rates: VecDeque<(Duration, Rate)>,
    /// Whether the access was ever full, so that its rate is more than a lower bound.
    was_full: bool,
    /// End of the newest round that counted.
    newest: Time,
}

impl MaxFilter {
    fn max(&self) -> Option<Rate> {
        let (_, long) = *self.rates.front()?;
        // Queued rates fall, so the first within the short window is the highest there.
        let short = self
            .rates
            .iter()
            .find(|(seen, _)| self.age(*seen) < SHORT_WINDOW);
        match short {
            Some((_, short)) if *short >= long.scaled(DEEP_FALL) => Some(*short),
            _ => Some(long),
        }
    }

    fn age(&self, seen: Duration) -> Duration {
        self.full_for.saturating_sub(seen)
    }

    fn update(&mut self, round: &Round) {
        let rate = round.rate();
        if round.limited_by == LimitedBy::Nothing {
            self.was_full = true;
            self.full_for += round.elapsed();
            while let Some((seen, _)) = self.rates.front()
                && self.age(*seen) >= FILTER_WINDOW
            {
                self.rates.pop_front();
            }
        } else if self.max().is_some_and(|max| rate <= max) || rate == Rate::ZERO {
            return;
        }
        while self.rates.back().is_some_and(|(_, low)| *low <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.full_for, rate));
        self.newest = round.to;
    }
}
