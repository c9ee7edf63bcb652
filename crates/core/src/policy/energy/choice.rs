//! Choice: the set of accesses that carries what is needed for the least energy.

use std::collections::BTreeSet;

use super::cost::Cost;
use crate::Rate;
use crate::control::{Direction, PerDirection};

/// Accesses up to which every set is looked at; of more, only those of the frugal first.
const EXHAUSTIVE: usize = 8;

/// Access that may be chosen.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    /// Rates that it is thought to carry; 0 where nothing is known.
    pub(super) capacity: PerDirection<Rate>,
    pub(super) cost: Cost,
}

/// Traffic that a set has to carry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Need {
    /// This much, and no more, so that accesses are full to this part at most.
    Rates {
        rates: PerDirection<Rate>,
        fill: f64,
    },
    /// All that there is room for in these directions, and at least this part of what all carry.
    Room {
        directions: PerDirection<bool>,
        keep: f64,
    },
}

/// Set of accesses, and what it takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    pub(super) set: BTreeSet<String>,
    pub(super) price: Price,
}

/// Price of a set for a need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Price {
    /// Whether the set carries what is needed.
    pub(super) suffices: bool,
    /// Power of all radios, those at rest too, mW.
    pub(super) power_mw: f64,
    /// Number to compare with that of another set for the same need: power where the need is known,
    /// energy for each bit where it takes all that it gets.
    pub(super) worth: f64,
}

/// Returns the cheapest set that carries `need`; `None` where not even all of them do.
pub(super) fn cheapest(candidates: &[Candidate<'_>], need: Need) -> Option<Choice> {
    let sets = sets(candidates, need).into_iter();
    let priced = sets.map(|set| (price(&set, candidates, need), set));
    let enough = priced.filter(|(price, _)| price.suffices);
    // Of equal ones the smaller set.
    let (price, set) = enough.min_by(|(p, a), (q, b)| {
        let by_worth = p.worth.total_cmp(&q.worth);
        by_worth.then(a.len().cmp(&b.len()))
    })?;
    let set = set.iter().map(|c| c.name.to_owned()).collect();
    Some(Choice { set, price })
}

/// Returns the price of a set by its names.
pub(super) fn price_of(set: &BTreeSet<String>, candidates: &[Candidate<'_>], need: Need) -> Price {
    let set: Vec<_> = candidates.iter().filter(|c| set.contains(c.name)).collect();
    price(&set, candidates, need)
}

/// Returns the sets to compare.
fn sets<'c, 'a>(candidates: &'c [Candidate<'a>], need: Need) -> Vec<Vec<&'c Candidate<'a>>> {
    let n = candidates.len();
    if n <= EXHAUSTIVE {
        let members = |mask: u32| {
            let all = candidates.iter().enumerate();
            all.filter(move |(i, _)| mask & (1 << i) != 0)
                .map(|(_, c)| c)
                .collect()
        };
        return (1..1 << n).map(members).collect();
    }
    let mut order: Vec<_> = candidates.iter().collect();
    let alone = |c: &Candidate<'_>| price(&[c], std::slice::from_ref(c), need).worth;
    order.sort_by(|a, b| alone(a).total_cmp(&alone(b)));
    (1..=n).map(|k| order[..k].to_vec()).collect()
}

fn sum(set: &[&Candidate<'_>], d: Direction) -> f64 {
    set.iter().map(|c| c.capacity.get(d).as_mbps()).sum()
}

fn price(set: &[&Candidate<'_>], all: &[Candidate<'_>], need: Need) -> Price {
    let every: Vec<_> = all.iter().collect();
    let suffices = |d: Direction| match need {
        Need::Rates { rates, fill } => fill * sum(set, d) >= rates.get(d).as_mbps(),
        Need::Room { directions, keep } => {
            // The sums were added up in different orders.
            !directions.get(d) || sum(set, d) >= keep * sum(&every, d) - 1e-9
        }
    };
    let carries = |c: &Candidate<'_>| {
        PerDirection::from_fn(|d| match need {
            // Divided by capacity.
            Need::Rates { rates, .. } => rates.get(d).scaled(match sum(set, d) {
                0.0 => 1.0 / set.len() as f64,
                total => c.capacity.get(d).as_mbps() / total,
            }),
            Need::Room { directions, .. } if *directions.get(d) => *c.capacity.get(d),
            Need::Room { .. } => Rate::ZERO,
        })
    };
    let busy: f64 = set.iter().map(|c| c.cost.steady_mw(carries(c))).sum();
    let at_rest = all.iter().filter(|c| !set.iter().any(|s| s.name == c.name));
    let power_mw = busy + at_rest.map(|c| c.cost.idle_mw).sum::<f64>();
    let worth = match need {
        Need::Rates { .. } => power_mw,
        Need::Room { directions, .. } => {
            let wanted = Direction::ALL.into_iter().filter(|d| *directions.get(*d));
            power_mw
                / wanted
                    .map(|d| sum(set, d))
                    .sum::<f64>()
                    .max(f64::MIN_POSITIVE)
        }
    };
    Price {
        suffices: !set.is_empty() && Direction::ALL.into_iter().all(suffices),
        power_mw,
        worth,
    }
}
