//! Behaviour of the loop on observations made by hand.

use super::*;
use crate::control::{LimitedBy, PathGone, PathMetrics, ProbeResult, StateChange};
use crate::{AccessKind, Rate};

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn settings(policy: &str, accesses: &[(&str, AccessSettings)]) -> Settings {
    let accesses = accesses.iter().map(|(n, a)| ((*n).to_owned(), a.clone()));
    Settings {
        policy: PolicySettings {
            name: policy.to_owned(),
            ..PolicySettings::default()
        },
        accesses: accesses.collect(),
    }
}

/// Observes `what` at `at_ms`, and decides.
fn step(control: &mut ControlLoop, at_ms: u64, what: What) -> Option<Decision> {
    let at = ms(at_ms);
    control.observe(&Observation { at, what }).unwrap();
    control.decide(at)
}

fn state(access: &str, state: AccessState) -> What {
    let access = access.to_owned();
    What::AccessState(StateChange { access, state })
}

/// A sample of a path of `access` that began with the loop.
fn sample(access: &str, delivered_bytes: u64) -> What {
    What::PathSample(PathMetrics {
        access: access.to_owned(),
        path: 1,
        direction: Direction::Down,
        began: ms(0),
        delivered_bytes,
        lost_bytes: 0,
        in_flight_bytes: 0,
        queued_bytes: 0,
        limited_by: LimitedBy::Nothing,
        delivery_rate: None,
        srtt_us: None,
        min_rtt_us: None,
    })
}

/// A loop of `policy` with the accesses `nr` and `wifi`, both active.
fn two(policy: &str, access: &AccessSettings) -> ControlLoop {
    let mut control = ControlLoop::new(1);
    let both = settings(policy, &[("nr", access.clone()), ("wifi", access.clone())]);
    step(&mut control, 0, What::Configuration(both)).unwrap();
    step(&mut control, 0, state("nr", AccessState::Active));
    step(&mut control, 0, state("wifi", AccessState::Active));
    control
}

fn nr_mbps(control: &ControlLoop) -> Option<f64> {
    let estimate = &control.snapshot().accesses["nr"].directions.down.estimate;
    estimate.as_ref().map(|e| e.capacity.as_mbps())
}

#[test]
fn a_lost_access_loses_its_estimate() {
    let mut control = two("capacity", &AccessSettings::new(AccessKind::Nr));
    step(&mut control, 100, sample("nr", 1_250_000));
    assert_eq!(nr_mbps(&control), Some(100.0));
    let activity = control.snapshot().accesses["nr"].directions.down.activity;
    assert_eq!(activity.unwrap().rate, Rate::from_mbps(100.0));
    step(&mut control, 200, state("nr", AccessState::Silent));
    assert_eq!(nr_mbps(&control), None);
    step(&mut control, 300, sample("nr", 1_250_000));
    assert_eq!(nr_mbps(&control), None);
    step(&mut control, 400, state("nr", AccessState::Active));
    step(&mut control, 500, sample("nr", 2_500_000));
    assert_eq!(nr_mbps(&control), Some(50.0));
    let gone = What::PathGone(PathGone {
        access: "nr".to_owned(),
        path: 1,
        direction: Direction::Down,
        began: ms(0),
        delivered_bytes: 2_500_000,
    });
    step(&mut control, 600, gone);
    assert_eq!(
        control.snapshot().accesses["nr"].directions.down.activity,
        None
    );
    assert_eq!(nr_mbps(&control), Some(50.0));
}

#[test]
fn requests_hold_until_the_configuration_is_read_again() {
    let access = AccessSettings::new(AccessKind::Nr);
    let mut control = two("static", &access);
    let weights = [("nr".to_owned(), 3.0), ("unknown".to_owned(), 1.0)];
    let request = Request::Weights(weights.into());
    let decision = step(&mut control, 1, What::Request(request)).unwrap();
    assert_eq!(decision.policy, "static");
    assert_eq!(decision.steering.accesses["nr"].weight.up, 3.0);
    let request = Request::Enabled {
        access: "nr".to_owned(),
        enabled: false,
    };
    let decision = step(&mut control, 2, What::Request(request)).unwrap();
    assert_eq!(decision.steering.accesses["nr"].role, AccessRole::Off);
    let both = settings("static", &[("nr", access.clone()), ("wifi", access)]);
    let decision = step(&mut control, 3, What::Configuration(both)).unwrap();
    let nr = decision.steering.accesses["nr"];
    assert_eq!((nr.role, nr.weight.up), (AccessRole::Active, 1.0));
    assert_eq!(control.snapshot().accesses["nr"].state, AccessState::Active);
}

#[test]
fn a_request_changes_the_expectation() {
    let mut control = two("capacity", &AccessSettings::new(AccessKind::Nr));
    let request = Request::Expected {
        access: "nr".to_owned(),
        expected: PerDirection {
            down: Some(Rate::from_mbps(300.0)),
            up: None,
        },
    };
    let decision = step(&mut control, 200, What::Request(request)).unwrap();
    assert_eq!(decision.steering.accesses["nr"].weight.down, 300.0);
    assert_eq!(decision.steering.accesses["wifi"].weight.down, 300.0);
    assert_eq!(decision.steering.accesses["nr"].weight.up, 1.0);
}

#[test]
fn a_configuration_that_cannot_be_followed_changes_nothing() {
    let mut control = two("static", &AccessSettings::new(AccessKind::Nr));
    let before = control.snapshot().clone();
    let mut observe = |settings| {
        let what = What::Configuration(settings);
        let error = control
            .observe(&Observation { at: ms(9), what })
            .unwrap_err();
        error.to_string()
    };
    let error = observe(settings("smart", &[]));
    assert!(error.contains("no policy is called \"smart\""), "{error}");
    let mut access = AccessSettings::new(AccessKind::Nr);
    access.estimators.push("kpi".to_owned());
    let error = observe(settings("static", &[("nr", access)]));
    let expected =
        "access nr: no estimator is called \"kpi\": expected some of passive, probe, expected";
    assert_eq!(error, expected);
    let mut access = AccessSettings::new(AccessKind::Nr);
    access.weight = -1.0;
    let error = observe(settings("static", &[("nr", access)]));
    assert_eq!(error, "access nr: weight -1 is not 0 or more");
    assert_eq!(*control.snapshot(), before);
}

#[test]
fn one_access_is_probed_at_a_time_and_none_that_is_off() {
    let mut access = AccessSettings::new(AccessKind::Nr);
    access.estimators = vec!["probe".to_owned()];
    let mut control = two("capacity", &access);
    let order = control.next_probe(ms(30_000)).unwrap();
    assert_eq!(control.next_probe(ms(30_000)), None);
    let result = |order: &ProbeOrder, mbps| {
        What::ProbeResult(ProbeResult {
            access: order.access.clone(),
            direction: order.direction,
            bytes: 12_500_000,
            rate: Some(Rate::from_mbps(mbps)),
        })
    };
    let decision = step(&mut control, 31_000, result(&order, 100.0)).unwrap();
    let weight = decision.steering.accesses[&order.access].weight;
    assert_eq!(*weight.get(order.direction), 100.0);
    let other = control.next_probe(ms(31_000)).unwrap();
    assert_ne!(other.access, order.access);
    step(&mut control, 32_000, result(&other, 200.0));
    let request = Request::Enabled {
        access: other.access.clone(),
        enabled: false,
    };
    step(&mut control, 32_000, What::Request(request));
    step(&mut control, 32_100, result(&other, 200.0));
    let off = &control.snapshot().accesses[&other.access].directions;
    assert_eq!(off.get(other.direction).estimate, None);
    let later = (32_000..300_000).step_by(500);
    let orders: Vec<ProbeOrder> = later.filter_map(|t| control.next_probe(ms(t))).collect();
    assert!(!orders.is_empty());
    assert!(orders.iter().all(|o| o.access == order.access));
}
