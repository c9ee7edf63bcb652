//! Behaviour of the policies on snapshots made by hand.

use proptest::prelude::*;

use super::*;
use crate::AccessState;
use crate::control::{
    Activity, CapacitySettings, DirectionSnapshot, Estimate, LimitedBy, PerDirection,
};
use crate::{AccessKind, Rate};

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn access(weight: f64) -> AccessSnapshot {
    AccessSnapshot {
        kind: AccessKind::Wifi,
        state: AccessState::Active,
        enabled: true,
        backup: false,
        configured_weight: weight,
        requested_weight: None,
        expected: PerDirection::default(),
        directions: PerDirection::default(),
        power: None,
        carried: None,
    }
}

fn estimate(mbps: f64, at_least: bool) -> Option<Estimate> {
    Some(Estimate {
        capacity: Rate::from_mbps(mbps),
        at_least,
        at: Time::ZERO,
        source: "passive".to_owned(),
    })
}

fn known(mbps: f64) -> AccessSnapshot {
    let mut access = access(1.0);
    access.directions.down.estimate = estimate(mbps, false);
    access
}

fn snapshot(accesses: &[(&str, AccessSnapshot)]) -> Snapshot {
    Snapshot {
        at: Time::ZERO,
        accesses: accesses
            .iter()
            .map(|(n, a)| ((*n).to_owned(), a.clone()))
            .collect(),
    }
}

fn down(steering: &Steering) -> Vec<f64> {
    steering.accesses.values().map(|a| a.weight.down).collect()
}

/// Weights down that a new `capacity` decides for these accesses.
fn first(accesses: &[(&str, AccessSnapshot)]) -> Vec<f64> {
    let mut policy = Capacity::new(CapacitySettings::default());
    down(&policy.decide(ms(1), &snapshot(accesses)).unwrap())
}

#[test]
fn names_are_those_of_the_registry() {
    for name in names() {
        let policy = by_name(name, &PolicySettings::default()).unwrap();
        assert_eq!(policy.name(), name);
    }
    let error = by_name("capcity", &PolicySettings::default()).unwrap_err();
    let text = "no policy is called \"capcity\": expected one of static, capacity, energy, \
                interface-selection, tuning";
    assert_eq!(error.to_string(), text);
}

#[test]
fn static_follows_configuration_and_requests() {
    let mut policy = StaticWeights::default();
    let mut nr = access(3.0);
    let steering = policy.decide(
        ms(0),
        &snapshot(&[("nr", nr.clone()), ("wifi", known(60.0))]),
    );
    assert_eq!(down(&steering.unwrap()), [3.0, 1.0]);
    let same = snapshot(&[("nr", nr.clone()), ("wifi", known(600.0))]);
    assert_eq!(policy.decide(ms(1), &same), None);
    nr.requested_weight = Some(0.5);
    let steering = policy.decide(
        ms(2),
        &snapshot(&[("nr", nr.clone()), ("wifi", access(1.0))]),
    );
    let steering = steering.unwrap();
    assert_eq!(steering.why, "nr has weight 0.5 instead of 3");
    assert_eq!(down(&steering), [0.5, 1.0]);
    nr.backup = true;
    let steering = policy.decide(
        ms(3),
        &snapshot(&[("nr", nr.clone()), ("wifi", access(1.0))]),
    );
    assert_eq!(steering.unwrap().why, "nr is a backup now");
    nr.enabled = false;
    let steering = policy.decide(ms(3), &snapshot(&[("nr", nr)])).unwrap();
    assert_eq!(steering.why, "wifi is configured no more");
    assert_eq!(steering.accesses["nr"].role, AccessRole::Off);
}

#[test]
fn capacities_are_rounded_as_the_paper_does() {
    // Paper 000, figure 3: 354, 1233 and 12.5 Mbit/s.
    let accesses = [
        ("a", known(354.0)),
        ("b", known(1233.0)),
        ("c", known(12.5)),
    ];
    assert_eq!(first(&accesses), [350.0, 1230.0, 13.0]);
    assert_eq!(first(&[("a", known(3.44)), ("b", known(0.01))]), [3.4, 0.1]);
    assert_eq!(
        first(&[("a", known(0.0)), ("b", known(300.0))]),
        [0.1, 300.0]
    );
}

#[test]
fn without_estimates_weights_are_as_configured() {
    assert_eq!(
        first(&[("a", access(3.0)), ("b", access(0.25))]),
        [3.0, 0.25]
    );
    // Lower bounds alone tell how the weights shared little traffic, not what is possible.
    let mut bound = access(3.0);
    bound.directions.down.estimate = estimate(2.0, true);
    assert_eq!(first(&[("a", bound), ("b", access(1.0))]), [3.0, 1.0]);
}

#[test]
fn one_without_estimate_has_its_configured_share() {
    assert_eq!(
        first(&[("a", access(2.0)), ("b", known(300.0))]),
        [600.0, 300.0]
    );
    let mut bound = access(1.0);
    bound.directions.down.estimate = estimate(400.0, true);
    assert_eq!(
        first(&[("a", bound.clone()), ("b", known(300.0))]),
        [400.0, 300.0]
    );
    bound.directions.down.estimate = estimate(4.0, true);
    assert_eq!(first(&[("a", bound), ("b", known(300.0))]), [300.0, 300.0]);
    assert_eq!(
        first(&[("a", access(0.0)), ("b", known(300.0))]),
        [0.0, 300.0]
    );
}

#[test]
fn an_access_keeps_its_weight_while_lost_and_returns_with_its_share() {
    let mut policy = Capacity::new(CapacitySettings::default());
    let both = snapshot(&[("nr", known(100.0)), ("wifi", known(600.0))]);
    assert_eq!(down(&policy.decide(ms(0), &both).unwrap()), [100.0, 600.0]);
    let mut lost = access(1.0);
    lost.state = AccessState::Silent;
    let without = snapshot(&[("nr", known(100.0)), ("wifi", lost)]);
    assert_eq!(policy.decide(ms(1000), &without), None);
    let back = snapshot(&[("nr", known(100.0)), ("wifi", access(1.0))]);
    let steering = policy.decide(ms(2000), &back).unwrap();
    assert_eq!(down(&steering), [100.0, 100.0]);
    assert_eq!(
        steering.why,
        "wifi has its configured share down: weight 100 instead of 600"
    );
}

#[test]
fn backups_have_weights_for_when_they_carry() {
    let mut backup = known(40.0);
    backup.backup = true;
    let mut policy = Capacity::new(CapacitySettings::default());
    let steering = policy.decide(ms(0), &snapshot(&[("lte", backup), ("nr", known(300.0))]));
    let steering = steering.unwrap();
    assert_eq!(down(&steering), [40.0, 300.0]);
    assert_eq!(steering.accesses["lte"].role, AccessRole::Backup);
}

#[test]
fn changes_wait_for_hysteresis_and_interval() {
    let mut policy = Capacity::new(CapacitySettings::default());
    let at = |mbps| snapshot(&[("nr", known(mbps)), ("wifi", known(600.0))]);
    assert!(policy.decide(ms(0), &at(300.0)).is_some());
    assert_eq!(policy.decide(ms(99), &at(30.0)), None);
    let steering = policy.decide(ms(100), &at(30.0)).unwrap();
    assert_eq!(
        steering.why,
        "nr carries 30 Mbit/s down by passive: weight 30 instead of 300"
    );
    assert_eq!(policy.decide(ms(1000), &at(31.0)), None);
    assert!(policy.decide(ms(1100), &at(32.0)).is_some());
    // Roles do not wait.
    let mut off = known(30.0);
    off.enabled = false;
    let steering = policy.decide(ms(1101), &snapshot(&[("nr", off), ("wifi", known(600.0))]));
    assert_eq!(steering.unwrap().why, "nr is off now");
}

fn carrying(mbps: f64, limited_by: LimitedBy) -> AccessSnapshot {
    let mut access = known(mbps);
    access.directions.down.activity = Some(Activity {
        rate: Rate::from_mbps(mbps),
        limited_by,
    });
    access
}

#[test]
fn an_access_that_the_scheduler_holds_back_is_raised_until_it_is_full() {
    let mut policy = Capacity::new(CapacitySettings::default());
    let mut weight = |now, mbps, by| {
        let full = carrying(100.0, LimitedBy::Nothing);
        let accesses = snapshot(&[("full", full), ("held", carrying(mbps, by))]);
        policy.decide(ms(now), &accesses).map(|s| down(&s)[1])
    };
    assert_eq!(weight(0, 100.0, LimitedBy::Nothing), Some(100.0));
    assert_eq!(weight(400, 100.0, LimitedBy::Scheduler), None);
    assert_eq!(weight(500, 100.0, LimitedBy::Scheduler), Some(130.0));
    assert_eq!(weight(600, 125.0, LimitedBy::Scheduler), Some(250.0));
    assert_eq!(weight(700, 250.0, LimitedBy::Scheduler), Some(500.0));
    assert_eq!(weight(800, 420.0, LimitedBy::Nothing), Some(420.0));
    // Rests, tries, and gives up where nothing comes of it.
    assert_eq!(weight(1200, 420.0, LimitedBy::Scheduler), None);
    assert_eq!(weight(1300, 420.0, LimitedBy::Scheduler), Some(530.0));
    assert_eq!(weight(1600, 420.0, LimitedBy::Scheduler), None);
    assert_eq!(weight(1700, 420.0, LimitedBy::Scheduler), Some(420.0));
}

#[test]
fn an_access_that_seems_to_carry_nothing_is_raised_too() {
    let mut policy = Capacity::new(CapacitySettings::default());
    let mut weight = |now, mbps| {
        let full = carrying(100.0, LimitedBy::Nothing);
        let accesses = [
            ("full", full),
            ("held", carrying(mbps, LimitedBy::Scheduler)),
        ];
        let steering = policy.decide(ms(now), &snapshot(&accesses));
        steering.map(|s| down(&s)[1])
    };
    assert_eq!(weight(0, 0.0), Some(0.2));
    assert_eq!(weight(100, 0.2), Some(0.4));
    assert_eq!(weight(200, 0.4), Some(0.8));
}

#[test]
fn nothing_is_raised_while_no_access_is_full() {
    let mut policy = Capacity::new(CapacitySettings::default());
    for now in (0..5000).step_by(100) {
        let one = carrying(100.0, LimitedBy::Application);
        let accesses = snapshot(&[("a", one), ("b", carrying(100.0, LimitedBy::Scheduler))]);
        let steering = policy.decide(ms(now), &accesses);
        assert_eq!(steering.is_some(), now == 0);
    }
}

proptest! {
    #[test]
    fn weights_are_off_by_a_twentieth_at_most(bps in 1_000_000u64..100_000_000_000) {
        let mbps = bps as f64 / 1e6;
        let weight = first(&[("a", known(mbps)), ("b", known(100.0))])[0];
        prop_assert!((weight / mbps - 1.0).abs() <= 0.05 + 1e-9, "{} for {}", weight, mbps);
    }

    /// A capacity that wavers by less than a fifth of a unit changes its weight once at most.
    #[test]
    fn noise_of_a_fifth_of_a_unit_is_no_reason(
        mbps in 100.0f64..1000.0, noise in prop::collection::vec(-1.0f64..1.0, 100),
    ) {
        let mut policy = Capacity::new(CapacitySettings::default());
        let mut decisions = 0;
        for (i, n) in noise.into_iter().enumerate() {
            let accesses = [("a", known(mbps + 2.0 * n)), ("b", known(500.0))];
            let now = ms(1000 * i as u64);
            decisions += usize::from(policy.decide(now, &snapshot(&accesses)).is_some());
        }
        prop_assert!(decisions <= 2, "{} decisions", decisions);
    }

    #[test]
    fn the_same_snapshots_give_the_same_decisions(
        steps in prop::collection::vec((0.0f64..1000.0, 0usize..3, any::<bool>()), 1..100),
    ) {
        let limits = [LimitedBy::Nothing, LimitedBy::Scheduler, LimitedBy::Application];
        let run = || -> Vec<Option<Steering>> {
            let mut policy = Capacity::new(CapacitySettings::default());
            let decided = steps.iter().enumerate().map(|(i, (mbps, by, up))| {
                let mut one = carrying(*mbps, limits[*by]);
                one.directions.up = if *up { one.directions.down.clone() } else {
                    DirectionSnapshot::default()
                };
                let accesses = [("a", one), ("b", carrying(200.0, LimitedBy::Nothing))];
                policy.decide(ms(100 * i as u64), &snapshot(&accesses))
            });
            decided.collect()
        };
        let decided = run();
        for steering in decided.iter().flatten() {
            for access in steering.accesses.values() {
                let weights = [access.weight.down, access.weight.up];
                prop_assert!(weights.iter().all(|w| w.is_finite() && *w > 0.0));
            }
        }
        prop_assert_eq!(decided, run());
    }
}
