//! Selection: which accesses carry and which rest, as demand comes and goes.
//!
//! ```text
//!            short of room: widen             demand is less, for a while: the cheaper set
//! few ────────────────────────────> more ────────────────────────────> few
//!            └ capacity not known: a trial, taken back where it carries no more
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use super::choice::{Candidate, Need, cheapest, price_of};
use super::cost::Cost;
use super::load::{FLOOR, Known, Load, carried, newest, plus};
use crate::control::{Direction, EnergySettings, LimitedBy, PerDirection, Snapshot};
use crate::energy::Parameters;
use crate::{Rate, Time};

/// Part of a capacity from which on it counts as full.
const FILL: f64 = 0.85;
/// Least demand that is reckoned with: keep-alives wake a radio, too.
const LEAST: Rate = Rate::from_bps(64_000);
/// Time for which room must have been short before more accesses are used. Waking a cellular radio
/// costs as much energy as seconds of carrying; a page is loaded by then.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that traffic has to fill what it is given in a trial.
const TRIAL: Duration = Duration::from_secs(4);
/// Growth by which a trial has to raise what is carried.
const GROWTH: f64 = 1.1;
/// Part of what was carried before a trial, below which the traffic has ended meanwhile: nothing
/// was learned.
const ENDED: f64 = 0.5;
/// Time until a trial that did not help is made again, doubled each time up to the longest.
const AGAIN: Duration = Duration::from_secs(60);
const AGAIN_LONGEST: Duration = Duration::from_secs(960);
/// Time for which a set is thought to be used, to set its power against waking its radios.
const HORIZON: Duration = Duration::from_secs(60);
/// Part of the price that another set must save.
const WORTH: f64 = 0.98;

/// Accesses that carry, and why.
#[derive(Debug)]
pub(super) struct Selection {
    settings: EnergySettings,
    chosen: BTreeSet<String>,
    load: Load,
    /// Moment of the rates that were looked at last.
    seen: Option<Time>,
    /// Need at that moment.
    need: Need,
    short_since: Option<Time>,
    lull: Option<Lull>,
    trial: Option<Trial>,
    refused: PerDirection<Option<Refused>>,
}

/// Time in which a cheaper set would have sufficed.
#[derive(Clone, Copy, Debug)]
struct Lull {
    since: Time,
    /// Highest demand in it.
    peak: PerDirection<Rate>,
}

/// Use of more accesses, to see whether they carry more.
#[derive(Clone, Debug)]
struct Trial {
    from: BTreeSet<String>,
    before: PerDirection<Rate>,
    directions: PerDirection<bool>,
    since: Time,
}

/// Demand that more accesses did not serve better.
#[derive(Clone, Copy, Debug)]
struct Refused {
    up_to: Rate,
    until: Time,
    times: u32,
}

impl Selection {
    pub(super) fn new(settings: EnergySettings) -> Self {
        let fill = FILL;
        Self {
            settings,
            chosen: BTreeSet::new(),
            load: Load::default(),
            seen: None,
            need: Need::Rates {
                rates: PerDirection::default(),
                fill,
            },
            short_since: None,
            lull: None,
            trial: None,
            refused: PerDirection::default(),
        }
    }

    /// Whether an access carries, of those that may rest. Before a choice, all do.
    pub(super) fn carries(&self, access: &str) -> bool {
        self.chosen.is_empty() || self.chosen.contains(access)
    }

    /// Takes in what was observed; returns the reason where the set is another one now.
    pub(super) fn update(&mut self, now: Time, snapshot: &Snapshot) -> Option<String> {
        let may: BTreeSet<&str> = may_rest(snapshot).map(|(name, _)| name).collect();
        if may.is_empty() {
            return None;
        }
        let lost = self.chosen.iter().find(|name| !may.contains(&***name));
        if self.chosen.is_empty() || lost.is_some() {
            let why = match lost {
                None => "fewest radios at first".to_owned(),
                Some(lost) => format!("without {lost}"),
            };
            return self.begin(now, snapshot, &why);
        }
        let at = newest(snapshot)?;
        if self.seen == Some(at) {
            return None;
        }
        self.seen = Some(at);
        self.load.update(now, snapshot);
        let demand = carried(snapshot);
        if let Some(trial) = self.trial.clone() {
            if now.since(trial.since) < TRIAL {
                return None;
            }
            self.trial = None;
            return self.judge(now, &trial, demand);
        }
        let short = PerDirection::from_fn(|d| self.is_short(now, snapshot, d, *demand.get(d)));
        if !short.down && !short.up {
            self.short_since = None;
            self.need = rates(demand);
            return self.economise(now, snapshot, demand);
        }
        self.need = Need::Room {
            directions: short,
            keep: f64::from(self.settings.keep_percent) / 100.0,
        };
        let candidates = self.candidates(now, snapshot, true);
        if price_of(&self.chosen, &candidates, self.need).suffices {
            self.short_since = None;
            return self.economise(now, snapshot, demand);
        }
        self.lull = None;
        let since = *self.short_since.get_or_insert(now);
        if now.since(since) < PATIENCE {
            return None;
        }
        let best = cheapest(&candidates, self.need)?;
        self.widen(now, snapshot, best.set, (demand, short))
    }

    /// Chooses without regard to what was chosen.
    fn begin(&mut self, now: Time, snapshot: &Snapshot, why: &str) -> Option<String> {
        (self.short_since, self.lull, self.trial) = (None, None, None);
        let need = match self.need {
            Need::Rates { rates: r, .. } => rates(r),
            room => room,
        };
        let candidates = self.candidates(now, snapshot, true);
        let all = || candidates.iter().map(|c| c.name.to_owned()).collect();
        let set = cheapest(&candidates, need).map_or_else(all, |c| c.set);
        (self.chosen != set).then(|| {
            let text = format!("{why}: {} by energy", listed(&set));
            self.chosen = set;
            text
        })
    }

    /// Uses these accesses: for good where it is known what those in use carry, else as a trial.
    fn widen(
        &mut self,
        now: Time,
        snapshot: &Snapshot,
        set: BTreeSet<String>,
        (demand, short): (PerDirection<Rate>, PerDirection<bool>),
    ) -> Option<String> {
        if set == self.chosen {
            return None;
        }
        let mut wanted = Direction::ALL.into_iter().filter(|d| *short.get(*d));
        let firm = wanted.all(|d| self.room(now, snapshot, d).firm);
        let text = format!(
            "{} carries all that it can, {}: {} from now on",
            listed(&self.chosen),
            mbps(demand, short),
            listed(&set)
        );
        let from = std::mem::replace(&mut self.chosen, set);
        self.short_since = None;
        if !firm {
            self.trial = Some(Trial {
                from,
                before: demand,
                directions: short,
                since: now,
            });
        }
        Some(text)
    }

    /// Keeps what a trial has brought, or takes it back.
    fn judge(&mut self, now: Time, trial: &Trial, demand: PerDirection<Rate>) -> Option<String> {
        let before = |d| *trial.before.get(d);
        let grew = |d: Direction| *demand.get(d) >= before(d).scaled(GROWTH);
        let tried = Direction::ALL
            .into_iter()
            .filter(|d| *trial.directions.get(*d));
        let (helped, not): (Vec<_>, Vec<_>) = tried.partition(|d| grew(*d));
        for &d in &helped {
            self.load.were_full(now, &trial.from, d);
            *self.refused.get_mut(d) = None;
        }
        if !helped.is_empty() {
            return None;
        }
        let went_on = |d: &&Direction| *demand.get(**d) >= before(**d).scaled(ENDED);
        for &d in not.iter().filter(went_on) {
            let times = self.refused.get(d).map_or(0, |r| r.times);
            let wait = AGAIN.saturating_mul(1 << times.min(10)).min(AGAIN_LONGEST);
            *self.refused.get_mut(d) = Some(Refused {
                up_to: before(d).scaled(GROWTH),
                until: Time::from_nanos(now.as_nanos().saturating_add(wait.as_nanos() as u64)),
                times: times + 1,
            });
        }
        let text = format!(
            "{} carry no more, {}: {} again",
            listed(&self.chosen),
            mbps(demand, trial.directions),
            listed(&trial.from)
        );
        self.chosen.clone_from(&trial.from);
        Some(text)
    }

    /// Goes over to a set that serves the same for less, once it has done for a while.
    fn economise(
        &mut self,
        now: Time,
        snapshot: &Snapshot,
        demand: PerDirection<Rate>,
    ) -> Option<String> {
        let peak = self.lull.map_or(demand, |l| higher(l.peak, demand));
        let need = match self.need {
            Need::Rates { .. } => rates(peak),
            room => room,
        };
        let candidates = self.candidates(now, snapshot, matches!(need, Need::Room { .. }));
        let used = price_of(&self.chosen, &candidates, need);
        let best = cheapest(&candidates, need);
        let best = best.filter(|b| {
            let woken = candidates
                .iter()
                .filter(|c| b.set.contains(c.name) && !self.chosen.contains(c.name));
            let wake: f64 = woken.map(|c| c.cost.wake_joules).sum();
            let saved = (used.power_mw - b.price.power_mw) / 1e3 * HORIZON.as_secs_f64();
            let pays = match need {
                Need::Rates { .. } => saved > wake,
                Need::Room { .. } => true,
            };
            b.set != self.chosen && b.price.worth < WORTH * used.worth && pays
        });
        let Some(best) = best else {
            self.lull = None;
            return None;
        };
        let since = self.lull.map_or(now, |l| l.since);
        self.lull = Some(Lull { since, peak });
        if now.since(since) < Duration::from_millis(self.settings.hold_ms) {
            return None;
        }
        self.lull = None;
        let text = format!(
            "{} suffices for {}: {:.0} mW less",
            listed(&best.set),
            mbps(peak, PerDirection::from_fn(|_| true)),
            used.power_mw - best.price.power_mw
        );
        self.chosen = best.set;
        Some(text)
    }

    /// Whether those in use carry all that they can in a direction.
    fn is_short(&self, now: Time, snapshot: &Snapshot, d: Direction, demand: Rate) -> bool {
        if demand < FLOOR {
            return false;
        }
        let refused = self.refused.get(d);
        if refused.is_some_and(|r| now < r.until && demand <= r.up_to) {
            return false;
        }
        let room = self.room(now, snapshot, d);
        // Whoever sends knows what limits it.
        let activities = self.chosen.iter().filter_map(|name| {
            let access = snapshot.accesses.get(name)?;
            access.directions.get(d).activity
        });
        let mut limits = activities.map(|a| a.limited_by).peekable();
        if !room.firm && limits.peek().is_some() {
            return limits.any(|l| l == LimitedBy::Nothing);
        }
        demand >= room.capacity.scaled(FILL)
    }

    /// Returns what those in use are known to carry together.
    fn room(&self, now: Time, snapshot: &Snapshot, d: Direction) -> Known {
        let none = Known {
            capacity: Rate::ZERO,
            firm: true,
        };
        let all = self.chosen.iter();
        all.fold(none, |sum, name| {
            match self.load.capacity(now, snapshot, name, d) {
                Some(known) => Known {
                    capacity: plus(sum.capacity, known.capacity),
                    firm: sum.firm && known.firm,
                },
                None => Known { firm: false, ..sum },
            }
        })
    }

    /// Returns the accesses that may carry. Of one that rests more is hoped for than is known: as
    /// much as those in use carry on average. Without hope one of which nothing is known carries
    /// next to nothing.
    fn candidates<'s>(&self, now: Time, snapshot: &'s Snapshot, hope: bool) -> Vec<Candidate<'s>> {
        let used = self.chosen.len().max(1) as f64;
        let hoped = PerDirection::from_fn(|d| match hope {
            true => self.room(now, snapshot, d).capacity.scaled(1.0 / used),
            false => FLOOR,
        });
        let capacity = |name: &str, d: Direction| {
            let known = self.load.capacity(now, snapshot, name, d);
            match known {
                Some(k) if k.firm || self.chosen.contains(name) => k.capacity,
                Some(k) => k.capacity.max(*hoped.get(d)),
                None => *hoped.get(d),
            }
        };
        let all = may_rest(snapshot).map(|(name, power)| Candidate {
            name,
            capacity: PerDirection::from_fn(|d| capacity(name, d).max(FLOOR)),
            cost: Cost::of(power),
        });
        all.collect()
    }
}

/// Returns the accesses that may rest: usable, no backups by wish, with a power model.
pub(super) fn may_rest(snapshot: &Snapshot) -> impl Iterator<Item = (&str, Parameters)> {
    let usable = snapshot
        .accesses
        .iter()
        .filter(|(_, a)| a.is_usable() && !a.backup);
    usable.filter_map(|(name, a)| Some((name.as_str(), a.power?)))
}

fn rates(demand: PerDirection<Rate>) -> Need {
    Need::Rates {
        rates: PerDirection::from_fn(|d| (*demand.get(d)).max(LEAST)),
        fill: FILL,
    }
}

fn higher(a: PerDirection<Rate>, b: PerDirection<Rate>) -> PerDirection<Rate> {
    PerDirection::from_fn(|d| (*a.get(d)).max(*b.get(d)))
}

fn listed(set: &BTreeSet<String>) -> String {
    let all: Vec<&str> = set.iter().map(String::as_str).collect();
    all.join(" + ")
}

fn mbps(rates: PerDirection<Rate>, of: PerDirection<bool>) -> String {
    let wanted = Direction::ALL.into_iter().filter(|d| *of.get(*d));
    let all: Vec<String> = wanted
        .map(|d| format!("{:.1} Mbit/s {d}", rates.get(d).as_mbps()))
        .collect();
    all.join(" and ")
}
