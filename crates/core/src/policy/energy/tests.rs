//! The policy over links and radios of a closed loop, second by second.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;

use super::choice::{Candidate, Need, cheapest};
use super::cost::Cost;
use super::*;
use crate::control::{
    AccessSnapshot, Activity, Carried, DirectionSnapshot, Estimate, LimitedBy, PerDirection,
};
use crate::energy::{AffineParameters, Interval, Parameters, PowerModel, sets};
use crate::{AccessKind, AccessState, Rate};

/// Radios over affine models: (name, capacity in Mbit/s, base mW, mW for each Mbit/s, tail s).
type Radio = (&'static str, f64, f64, f64, f64);

const WIFI: Radio = ("wifi", 30.0, 300.0, 20.0, 0.5);
const LTE: Radio = ("lte", 40.0, 1200.0, 15.0, 10.0);

fn parameters((_, _, base_mw, per_mbps, tail_s): Radio) -> Parameters {
    Parameters::Affine(AffineParameters {
        base_mw,
        down_mw_per_mbps: per_mbps,
        up_mw_per_mbps: per_mbps,
        uplink_mw: 0.0,
        promotion_ms: 250.0,
        promotion_mw: base_mw,
        tail_ms: tail_s * 1e3,
        tail_mw: 0.9 * base_mw,
        idle_mw: 20.0,
        rsrp: None,
        sinr: None,
    })
}

fn at(s: f64) -> Time {
    Time::from_nanos((s * 1e9) as u64)
}

/// Traffic and energy of a run.
#[derive(Debug, Default)]
struct Outcome {
    mbit: f64,
    joules: f64,
    /// Names of those that carry, whenever they changed, with the second.
    sets: Vec<(usize, String)>,
    why: Vec<String>,
}

/// Knowledge of capacities that the loop has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Estimates {
    /// Counters of interfaces alone, as at a device that downloads.
    Nothing,
    /// Capacity of each access.
    All,
}

struct Loop {
    radios: Vec<Radio>,
    snapshot: Snapshot,
    policy: Box<dyn Policy>,
    models: Vec<Box<dyn PowerModel>>,
    active: BTreeSet<String>,
}

impl Loop {
    fn new(radios: &[Radio], policy: Box<dyn Policy>, estimates: Estimates) -> Self {
        let access = |r: &Radio| AccessSnapshot {
            kind: AccessKind::Other,
            state: AccessState::Active,
            enabled: true,
            backup: false,
            configured_weight: 1.0,
            requested_weight: None,
            expected: PerDirection::default(),
            directions: PerDirection {
                down: DirectionSnapshot {
                    estimate: (estimates == Estimates::All).then(|| Estimate {
                        capacity: Rate::from_mbps(r.1),
                        at_least: false,
                        at: Time::ZERO,
                        source: "expected".to_owned(),
                    }),
                    activity: None,
                },
                up: DirectionSnapshot::default(),
            },
            power: Some(parameters(*r)),
            carried: None,
        };
        Self {
            snapshot: Snapshot {
                at: Time::ZERO,
                accesses: radios.iter().map(|r| (r.0.to_owned(), access(r))).collect(),
            },
            models: radios.iter().map(|r| parameters(*r).make()).collect(),
            radios: radios.to_vec(),
            policy,
            active: BTreeSet::new(),
        }
    }

    /// Runs for as many seconds as there are demands, Mbit/s towards the device.
    fn run(mut self, demand: &[f64]) -> Outcome {
        let mut outcome = Outcome::default();
        for (second, &wanted) in demand.iter().enumerate() {
            let now = at(second as f64);
            if let Some(steering) = self.policy.decide(now, &self.snapshot) {
                let all = steering.accesses.iter();
                let active = all.filter(|(_, a)| a.role == AccessRole::Active);
                self.active = active.map(|(name, _)| name.clone()).collect();
                let set: Vec<&str> = self.active.iter().map(String::as_str).collect();
                let set = set.join("+");
                if outcome.sets.last().is_none_or(|(_, s)| *s != set) {
                    outcome.sets.push((second, set));
                    outcome.why.push(steering.why);
                }
            }
            let of = |r: &Radio| f64::from(u8::from(self.active.contains(r.0))) * r.1;
            let room: f64 = self.radios.iter().map(of).sum();
            let carried: Vec<f64> = self
                .radios
                .iter()
                .map(|r| wanted.min(room) * of(r) / room.max(1e-9))
                .collect();
            for ((r, model), mbps) in self.radios.iter().zip(&mut self.models).zip(&carried) {
                let interval = Interval::at_rates(Duration::from_secs(1), *mbps, 0.0);
                outcome.joules += model.advance(&interval).total_joules();
                outcome.mbit += mbps;
                let access = self.snapshot.accesses.get_mut(r.0).unwrap();
                access.carried = Some(Carried {
                    at: at(second as f64 + 0.9),
                    rate: PerDirection {
                        down: Rate::from_mbps(*mbps),
                        up: Rate::ZERO,
                    },
                });
            }
        }
        outcome
    }
}

fn energy(keep_percent: u32) -> Box<dyn Policy> {
    let mut settings = PolicySettings::default();
    settings.energy.keep_percent = keep_percent;
    Box::new(Energy::by_demand(&settings))
}

/// Runs `energy`, and beside it all accesses all the time.
fn beside(radios: &[Radio], estimates: Estimates, keep: u32, demand: &[f64]) -> (Outcome, Outcome) {
    let all = Box::new(Capacity::new(PolicySettings::default().capacity));
    (
        Loop::new(radios, energy(keep), estimates).run(demand),
        Loop::new(radios, all, estimates).run(demand),
    )
}

#[test]
fn what_one_radio_carries_wakes_no_other() {
    let (few, all) = beside(&[WIFI, LTE], Estimates::All, 90, &[8.0; 60]);
    assert_eq!(few.sets, [(0, "wifi".to_owned())], "{:?}", few.why);
    assert_eq!(few.mbit, all.mbit);
    // 300 mW and 20 for each of 8 Mbit/s, and the idle LTE, instead of 1500 and 136.
    assert!((few.joules - 60.0 * 0.48).abs() < 0.5, "{few:?}");
    assert!(few.joules < 0.33 * all.joules, "{few:?} {all:?}");
}

#[test]
fn traffic_that_takes_all_it_gets_has_what_is_to_be_kept() {
    for estimates in [Estimates::All, Estimates::Nothing] {
        let (few, all) = beside(&[WIFI, LTE], estimates, 90, &[1e3; 120]);
        let sets: Vec<&str> = few.sets.iter().map(|(_, s)| s.as_str()).collect();
        assert_eq!(sets, ["wifi", "lte+wifi"], "{:?}", few.why);
        assert!(few.sets[1].0 <= 4, "{few:?}");
        assert!(few.mbit > 0.97 * all.mbit, "{estimates:?} {few:?}");
    }
    // Half of 70 Mbit/s is to be kept: LTE alone has it, at less for each bit than Wi-Fi with it.
    let (few, _) = beside(
        &[("wifi", 30.0, 900.0, 90.0, 0.5), LTE],
        Estimates::All,
        50,
        &[1e3; 60],
    );
    assert_eq!(few.sets.last().unwrap().1, "lte", "{:?}", few.why);
}

#[test]
fn a_radio_rests_again_after_the_burst() {
    let demand: Vec<f64> = [vec![0.2; 20], vec![60.0; 20], vec![0.2; 60]].concat();
    for estimates in [Estimates::All, Estimates::Nothing] {
        let (few, all) = beside(&[WIFI, LTE], estimates, 90, &demand);
        let sets: Vec<&str> = few.sets.iter().map(|(_, s)| s.as_str()).collect();
        assert_eq!(sets, ["wifi", "lte+wifi", "wifi"], "{:?}", few.why);
        // Two seconds of patience, ten of holding on.
        assert!((22..=24).contains(&few.sets[1].0), "{few:?}");
        assert!((50..=53).contains(&few.sets[2].0), "{few:?}");
        assert!(few.joules < 0.75 * all.joules, "{few:?} {all:?}");
    }
    // A page that is loaded within the patience wakes nobody.
    let demand: Vec<f64> = [vec![0.1; 9], vec![60.0; 2], vec![0.1; 9]]
        .concat()
        .repeat(5);
    let (few, _) = beside(&[WIFI, LTE], Estimates::Nothing, 90, &demand);
    assert_eq!(few.sets.len(), 1, "{:?}", few.why);
}

/// A stream of 12 Mbit/s looks like a full line to who does not know what the line carries.
#[test]
fn a_trial_that_does_not_help_is_taken_back_and_made_less_often() {
    let (few, _) = beside(&[WIFI, LTE], Estimates::Nothing, 90, &[12.0; 600]);
    let tried: Vec<usize> = few
        .sets
        .iter()
        .filter(|(_, s)| s == "lte+wifi")
        .map(|(t, _)| *t)
        .collect();
    assert!((3..=5).contains(&tried.len()), "{:?}", few.sets);
    assert!(
        tried[0] <= 4 && tried[1] - tried[0] >= 60 && tried[2] - tried[1] >= 120,
        "{tried:?}"
    );
    assert_eq!(few.sets.last().unwrap().1, "wifi");
    // More demand is another question, and asked at once.
    let demand: Vec<f64> = [vec![12.0; 30], vec![60.0; 30]].concat();
    let (few, _) = beside(&[WIFI, LTE], Estimates::Nothing, 90, &demand);
    let last = few.sets.last().unwrap();
    assert!(
        last.1 == "lte+wifi" && last.0 <= 34,
        "{:?} {:?}",
        few.sets,
        few.why
    );
}

/// Traffic that ends during a trial has shown nothing: the next one is tried with at once.
#[test]
fn a_trial_that_traffic_does_not_outlast_is_no_refusal() {
    let demand: Vec<f64> = [vec![60.0; 5], vec![0.1; 20], vec![60.0; 10]].concat();
    let (few, _) = beside(&[WIFI, LTE], Estimates::Nothing, 90, &demand);
    let tried = few.sets.iter().filter(|(_, s)| s == "lte+wifi");
    let tried: Vec<usize> = tried.map(|(t, _)| *t).collect();
    assert_eq!(tried.len(), 2, "{:?} {:?}", few.sets, few.why);
    assert!((25..=29).contains(&tried[1]), "{:?}", few.sets);
}

#[test]
fn who_sends_knows_whether_it_is_full() {
    let mut policy = energy(90);
    let mut all = Loop::new(&[WIFI, LTE], energy(90), Estimates::Nothing).snapshot;
    let mut turn = |second: f64, limited_by| {
        let wifi = all.accesses.get_mut("wifi").unwrap();
        let rate = Rate::from_mbps(12.0);
        wifi.directions.up.activity = Some(Activity { rate, limited_by });
        let rate = PerDirection {
            down: Rate::ZERO,
            up: rate,
        };
        wifi.carried = Some(Carried {
            at: at(second),
            rate,
        });
        let decided = policy.decide(at(second), &all);
        decided.map(|s| (s.accesses["lte"].role, s.why))
    };
    assert_eq!(
        turn(0.0, LimitedBy::Application).unwrap().0,
        AccessRole::Backup
    );
    for second in 1..20 {
        assert_eq!(turn(f64::from(second), LimitedBy::Application), None);
    }
    let changed: Vec<_> = (20..24)
        .filter_map(|s| turn(f64::from(s), LimitedBy::Nothing))
        .collect();
    let expected = "wifi carries all that it can, 12.0 Mbit/s up: lte + wifi from now on";
    assert_eq!(changed, [(AccessRole::Active, expected.to_owned())]);
}

#[test]
fn an_access_that_is_lost_is_replaced_at_once_and_wishes_stay() {
    let mut policy = energy(90);
    let mut all = Loop::new(&[WIFI, LTE], energy(90), Estimates::All).snapshot;
    let roles = |s: Steering| [s.accesses["lte"].role, s.accesses["wifi"].role];
    use AccessRole::{Active, Backup, Off};
    // Before anything is known to be there, nobody rests.
    let mut nothing = all.clone();
    for access in nothing.accesses.values_mut() {
        access.state = AccessState::Down;
    }
    let first = policy.decide(at(0.0), &nothing).unwrap();
    assert_eq!(roles(first), [Active, Active]);
    assert_eq!(
        roles(policy.decide(at(0.0), &all).unwrap()),
        [Backup, Active]
    );
    all.accesses.get_mut("wifi").unwrap().state = AccessState::Silent;
    let lost = policy.decide(at(1.0), &all).unwrap();
    assert_eq!(lost.why, "without wifi: lte by energy");
    assert_eq!(roles(lost), [Active, Backup]);
    all.accesses.get_mut("wifi").unwrap().state = AccessState::Active;
    all.accesses.get_mut("lte").unwrap().enabled = false;
    assert_eq!(roles(policy.decide(at(2.0), &all).unwrap()), [Off, Active]);
    // One without a model never rests: nobody knows what that would save.
    let lte = all.accesses.get_mut("lte").unwrap();
    (lte.enabled, lte.power) = (true, None);
    assert_eq!(
        roles(policy.decide(at(3.0), &all).unwrap()),
        [Active, Active]
    );
    all.accesses.get_mut("wifi").unwrap().backup = true;
    assert_eq!(
        roles(policy.decide(at(4.0), &all).unwrap()),
        [Active, Backup]
    );
}

/// Runs an algorithm of the paper over Wi-Fi of this rate and LTE of 40 Mbit/s.
fn paper(policy: fn(&PolicySettings) -> Energy, wifi: Radio) -> Outcome {
    let policy = Box::new(policy(&PolicySettings::default()));
    Loop::new(&[wifi, LTE], policy, Estimates::All).run(&[1e3; 60])
}

#[test]
fn interface_selection_takes_those_within_a_tenth_of_the_best() {
    let set = |wifi: f64| {
        let outcome = paper(Energy::by_throughput, ("wifi", wifi, 300.0, 20.0, 0.5));
        assert_eq!(outcome.sets.len(), 1, "{:?}", outcome.why);
        outcome.sets[0].1.clone()
    };
    assert_eq!(set(35.9), "lte");
    assert_eq!(set(36.1), "lte+wifi");
    assert_eq!(set(44.0), "lte+wifi");
    assert_eq!(set(44.9), "wifi");
    // Until all were probed, all carry.
    let policy = Box::new(Energy::by_throughput(&PolicySettings::default()));
    let outcome = Loop::new(&[WIFI, LTE], policy, Estimates::Nothing).run(&[9.0; 9]);
    assert_eq!(outcome.sets, [(0, "lte+wifi".to_owned())]);
}

#[test]
fn tuning_tries_the_fastest_alone_and_keeps_what_takes_less() {
    // 40 Mbit/s for 1800 mW, 78 for 2860: both are cheaper for a bit.
    let outcome = paper(Energy::tuned, ("wifi", 38.0, 300.0, 20.0, 0.5));
    let sets: Vec<&str> = outcome.sets.iter().map(|(_, s)| s.as_str()).collect();
    assert_eq!(sets, ["lte+wifi", "lte", "lte+wifi"], "{:?}", outcome.why);
    // A Wi-Fi that takes 4 W: LTE alone is.
    let outcome = paper(Energy::tuned, ("wifi", 38.0, 4000.0, 20.0, 0.5));
    let sets: Vec<&str> = outcome.sets.iter().map(|(_, s)| s.as_str()).collect();
    assert_eq!(sets, ["lte+wifi", "lte"], "{:?}", outcome.why);
    // Where one is selected there is nothing to tune.
    let outcome = paper(Energy::tuned, WIFI);
    assert_eq!(outcome.sets, [(0, "lte".to_owned())]);
}

#[test]
fn costs_are_those_of_the_model() {
    let cost = Cost::of(parameters(LTE));
    assert!((cost.idle_mw - 20.0).abs() < 1e-6);
    // 10 s of tail at 1080 mW instead of 20.
    assert!((cost.wake_joules - 10.6).abs() < 0.01, "{cost:?}");
    let carried = PerDirection {
        down: Rate::from_mbps(10.0),
        up: Rate::from_mbps(2.0),
    };
    assert!((cost.steady_mw(carried) - 1380.0).abs() < 1e-6);
    for set in sets::all() {
        let cost = Cost::of(set.parameters);
        assert!(
            cost.wake_joules.is_finite() && cost.idle_mw >= 0.0,
            "{}",
            set.name
        );
        assert!(cost.steady_mw(carried) > cost.idle_mw, "{}", set.name);
    }
}

fn radios() -> impl Strategy<Value = Vec<(f64, f64, f64)>> {
    prop::collection::vec((0.5..500.0f64, 50.0..4000.0f64, 0.5..100.0f64), 1..5)
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

proptest! {
    /// No other set that suffices takes less, by a count of all of them that shares no code.
    #[test]
    fn the_choice_is_the_cheapest(radios in radios(), mbps in 0.1..800.0f64, keep in 0.3..1.0f64, known in any::<bool>()) {
        let radio = |i: usize| (NAMES[i], radios[i].0, radios[i].1, radios[i].2, 1.0);
        let candidates: Vec<_> = (0..radios.len()).map(|i| Candidate {
            name: NAMES[i],
            capacity: PerDirection { down: Rate::from_mbps(radios[i].0), up: Rate::ZERO },
            cost: Cost::of(parameters(radio(i))),
        }).collect();
        let total: f64 = radios.iter().map(|r| r.0).sum();
        let down = |down: bool| PerDirection { down, up: !down };
        let need = match known {
            true => Need::Rates {
                rates: PerDirection { down: Rate::from_mbps(mbps), up: Rate::ZERO },
                fill: 0.85,
            },
            false => Need::Room { directions: down(true), keep },
        };
        let mut least = f64::MAX;
        for mask in 1..1usize << radios.len() {
            let set: Vec<_> = (0..radios.len()).filter(|i| mask & (1 << i) != 0).map(|i| radios[i]).collect();
            let room: f64 = set.iter().map(|r| r.0).sum();
            let rest = (radios.len() - set.len()) as f64 * 20.0;
            let flows = if known { mbps } else { room };
            let power: f64 = set.iter().map(|r| r.1 + r.2 * flows * r.0 / room).sum::<f64>() + rest;
            let enough = if known { 0.85 * room >= mbps } else { room >= keep * total };
            if enough {
                least = least.min(if known { power } else { power / room });
            }
        }
        let choice = cheapest(&candidates, need);
        prop_assert_eq!(choice.is_some(), least < f64::MAX);
        if let Some(choice) = choice {
            prop_assert!(choice.price.suffices);
            prop_assert!((choice.price.worth / least - 1.0).abs() < 1e-5, "{:?} {}", choice, least);
        }
    }

    /// Whatever comes and goes: no demand is served worse than in the seconds of patience and
    /// trials, and radios that rest take no more than radios that carry.
    #[test]
    fn never_much_less_is_carried_and_never_more_energy_taken_for_a_bit(
        radios in radios(),
        phases in prop::collection::vec((0.0..1.5f64, 5usize..90), 1..8),
        estimates in prop::sample::select(vec![Estimates::Nothing, Estimates::All]),
    ) {
        let radios: Vec<Radio> = radios.iter().enumerate()
            .map(|(i, r)| (NAMES[i], r.0, r.1, r.2, 5.0)).collect();
        let total: f64 = radios.iter().map(|r| r.1).sum();
        let demand: Vec<f64> = phases.iter().flat_map(|(part, s)| vec![part * total; *s]).collect();
        let (few, all) = beside(&radios, estimates, 90, &demand);
        // Each phase may wait for some trials, one radio after the other.
        let waits = (8 * radios.len() * phases.len()) as f64;
        prop_assert!(few.mbit >= 0.85 * all.mbit - waits * total, "{:?} {:?}", few, all);
        // Roles change some times in a phase, and not for ever.
        prop_assert!(few.sets.len() <= 6 * phases.len() * radios.len() + 2, "{:?}", few.sets);
        let of: BTreeMap<&str, f64> = radios.iter().map(|r| (r.0, r.1)).collect();
        prop_assert!(few.sets.iter().all(|(_, s)| s.split('+').all(|n| of.contains_key(n))));
    }
}
