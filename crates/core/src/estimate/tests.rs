//! Properties of the estimators and of the plan of probes.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::AccessKind;
use crate::control::{LimitedBy, PathGone, PathMetrics, ProbeSettings, ProbeSpending};

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn sample(path: u64, began: Time, delivered_bytes: u64, limited_by: LimitedBy) -> PathMetrics {
    PathMetrics {
        access: "wifi".to_owned(),
        path,
        direction: Direction::Down,
        began,
        delivered_bytes,
        lost_bytes: 0,
        in_flight_bytes: 0,
        queued_bytes: 0,
        limited_by,
        delivery_rate: None,
        srtt_us: None,
        min_rtt_us: None,
    }
}

fn gone(path: u64, began: Time, delivered_bytes: u64) -> PathGone {
    PathGone {
        access: "wifi".to_owned(),
        path,
        direction: Direction::Down,
        began,
        delivered_bytes,
    }
}

/// A round of 100 ms at `mbps` that ends at `to_ms`.
fn round(to_ms: u64, mbps: u64, limited_by: LimitedBy) -> Round {
    Round {
        from: ms(to_ms - 100),
        to: ms(to_ms),
        bytes: mbps * 12_500,
        limited_by,
    }
}

fn mbps(passive: &Passive) -> Option<f64> {
    let estimate = passive.estimate(Direction::Down)?;
    Some(estimate.capacity.as_mbps())
}

#[test]
fn names_are_those_of_the_registry() {
    let access = AccessSettings::new(AccessKind::Wifi);
    for (name, _) in ESTIMATORS {
        assert_eq!(by_name(name, &access).unwrap().name(), *name);
    }
    assert!(by_name("kpi", &access).is_none());
}

#[test]
fn adopted_paths_count_from_their_first_sample() {
    let mut meter = DeliveryMeter::new(ms(1000));
    meter.on_sample(ms(1100), &sample(1, ms(0), 9_000_000, LimitedBy::Nothing));
    assert_eq!(meter.take_round().unwrap().bytes, 0);
    meter.on_sample(ms(1200), &sample(1, ms(0), 9_125_000, LimitedBy::Nothing));
    assert_eq!(meter.take_round().unwrap().rate().as_mbps(), 10.0);
}

#[test]
fn idle_time_without_paths_lowers_no_rate() {
    let mut meter = DeliveryMeter::new(ms(0));
    meter.on_sample(
        ms(10_100),
        &sample(1, ms(10_000), 125_000, LimitedBy::Nothing),
    );
    let round = meter.take_round().unwrap();
    assert_eq!((round.from, round.rate().as_mbps()), (ms(10_000), 10.0));
}

#[test]
fn one_full_path_fills_the_access() {
    let mut meter = DeliveryMeter::new(ms(0));
    meter.on_sample(ms(100), &sample(1, ms(0), 10, LimitedBy::Application));
    meter.on_sample(ms(100), &sample(2, ms(0), 10, LimitedBy::Nothing));
    meter.on_sample(ms(100), &sample(3, ms(0), 10, LimitedBy::Scheduler));
    assert_eq!(meter.take_round().unwrap().limited_by, LimitedBy::Nothing);
}

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Deliver(prop::sample::Index, u32),
    Sample,
    End(prop::sample::Index, bool),
    Round,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Begin),
        (any::<prop::sample::Index>(), any::<u32>()).prop_map(|(i, n)| Step::Deliver(i, n)),
        Just(Step::Sample),
        (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(i, s)| Step::End(i, s)),
        Just(Step::Round),
    ]
}

proptest! {
    #[test]
    fn paths_that_come_and_go_lose_no_bytes(steps in prop::collection::vec(step(), 1..200)) {
        let mut meter = DeliveryMeter::new(ms(0));
        let (mut sent, mut counted, mut next, mut now) = (0, 0, 0, 0);
        let mut paths: Vec<(u64, Time, u64)> = Vec::new();
        for step in steps {
            now += 30;
            match step {
                Step::Begin => {
                    paths.push((next, ms(now), 0));
                    next += 1;
                }
                Step::Deliver(i, n) if !paths.is_empty() => {
                    i.get_mut(&mut paths[..]).2 += u64::from(n);
                    sent += u64::from(n);
                }
                Step::Sample => for (path, began, bytes) in &paths {
                    meter.on_sample(ms(now), &sample(*path, *began, *bytes, LimitedBy::Nothing));
                },
                Step::End(i, sampled) if !paths.is_empty() => {
                    let (path, began, bytes) = paths.swap_remove(i.index(paths.len()));
                    if sampled {
                        meter.on_sample(ms(now), &sample(path, began, bytes, LimitedBy::Nothing));
                    }
                    meter.on_gone(ms(now), &gone(path, began, bytes));
                }
                Step::Round => counted += meter.take_round().map_or(0, |r| r.bytes),
                Step::Deliver(..) | Step::End(..) => {}
            }
        }
        for (path, began, bytes) in paths {
            meter.on_gone(ms(now + 100), &gone(path, began, bytes));
        }
        counted += meter.take_round().map_or(0, |r| r.bytes);
        prop_assert!(!meter.has_paths());
        prop_assert_eq!(counted, sent);
    }

    #[test]
    fn limited_rounds_raise_and_never_lower(
        full in 1u64..1000,
        limited in prop::collection::vec((0u64..2000, 0usize..4), 1..50),
    ) {
        let others = [
            LimitedBy::Scheduler,
            LimitedBy::PeerWindow,
            LimitedBy::SlowStart,
            LimitedBy::Application,
        ];
        let mut passive = Passive::default();
        passive.on_round(Direction::Down, &round(100, full, LimitedBy::Nothing));
        let mut highest = full;
        for (i, (rate, by)) in limited.into_iter().enumerate() {
            let to = 200 + 100 * i as u64;
            passive.on_round(Direction::Down, &round(to, rate, others[by]));
            highest = highest.max(rate);
            prop_assert_eq!(mbps(&passive), Some(highest as f64));
        }
    }

    /// A round is 20 to 250 ms long: engines are sampled more or less often.
    #[test]
    fn a_fall_of_ten_times_is_believed_within_a_second(
        high in 10u64..10_000, round_ms in 20u64..250,
    ) {
        let mut passive = Passive::default();
        let mut now = 0;
        let mut run = |passive: &mut Passive, mbps: u64, until: &dyn Fn(&Passive, u64) -> bool| {
            let begin = now;
            while !until(passive, now - begin) {
                now += round_ms;
                passive.on_round(Direction::Down, &Round {
                    from: ms(now - round_ms),
                    to: ms(now),
                    bytes: mbps * 125 * round_ms,
                    limited_by: LimitedBy::Nothing,
                });
            }
            now - begin
        };
        run(&mut passive, high * 10, &|_, ms| ms >= 2000);
        prop_assert_eq!(mbps(&passive), Some(high as f64 * 10.0));
        let took = run(&mut passive, high, &|p, _| mbps(p) == Some(high as f64));
        // A decision follows within another 100 ms.
        prop_assert!(took <= 750, "{} ms", took);
        let took = run(&mut passive, high * 10, &|p, _| mbps(p) == Some(high as f64 * 10.0));
        prop_assert_eq!(took, round_ms);
    }
}

#[test]
fn a_fall_by_half_is_believed_after_two_rounds() {
    let mut passive = Passive::default();
    for (to, rate, believed) in [(100, 300, 300.0), (200, 150, 300.0), (300, 140, 150.0)] {
        passive.on_round(Direction::Down, &round(to, rate, LimitedBy::Nothing));
        assert_eq!(mbps(&passive), Some(believed));
    }
}

#[test]
fn a_pause_of_a_radio_lowers_nothing() {
    let mut passive = Passive::default();
    passive.on_round(Direction::Down, &round(100, 300, LimitedBy::Nothing));
    for to in [200, 300, 400] {
        passive.on_round(Direction::Down, &round(to, 0, LimitedBy::Nothing));
    }
    assert_eq!(mbps(&passive), Some(300.0));
}

#[test]
fn what_was_never_full_is_a_lower_bound() {
    let mut passive = Passive::default();
    passive.on_round(Direction::Down, &round(100, 0, LimitedBy::Application));
    assert!(passive.estimate(Direction::Down).is_none());
    passive.on_round(Direction::Down, &round(200, 40, LimitedBy::SlowStart));
    let bound = passive.estimate(Direction::Down).unwrap();
    assert!(bound.at_least && bound.at == ms(200));
    passive.on_round(Direction::Down, &round(300, 60, LimitedBy::Nothing));
    assert!(!passive.estimate(Direction::Down).unwrap().at_least);
    assert!(passive.estimate(Direction::Up).is_none());
}

#[test]
fn a_lost_access_keeps_only_its_contract() {
    let mut access = AccessSettings::new(AccessKind::Nr);
    access.expected.down = Some(Rate::from_mbps(300.0));
    for (name, _) in ESTIMATORS {
        let mut estimator = by_name(name, &access).unwrap();
        estimator.on_round(Direction::Down, &round(100, 60, LimitedBy::Nothing));
        let result = ProbeResult {
            access: "nr".to_owned(),
            direction: Direction::Down,
            bytes: 1,
            rate: Some(Rate::from_mbps(60.0)),
        };
        estimator.on_probe(ms(100), &result);
        assert!(estimator.estimate(Direction::Down).is_some(), "{name}");
        estimator.on_lost();
        let kept = estimator.estimate(Direction::Down).is_some();
        assert_eq!(kept, *name == "expected", "{name}");
    }
}

#[test]
fn a_lower_bound_counts_where_it_is_higher() {
    let estimate = |mbps, at_least| Estimate {
        capacity: Rate::from_mbps(mbps),
        at_least,
        at: Time::ZERO,
        source: String::new(),
    };
    let chosen = |all: &[(f64, bool)]| {
        let all = all
            .iter()
            .map(|(mbps, at_least)| (true, estimate(*mbps, *at_least)));
        choose(all).map(|e| (e.capacity.as_mbps(), e.at_least))
    };
    assert_eq!(chosen(&[]), None);
    assert_eq!(chosen(&[(5.0, true), (300.0, false)]), Some((300.0, false)));
    assert_eq!(
        chosen(&[(400.0, true), (300.0, false)]),
        Some((400.0, true))
    );
    assert_eq!(
        chosen(&[(60.0, false), (300.0, false)]),
        Some((60.0, false))
    );
}

#[test]
fn of_measured_estimates_the_newest_counts() {
    let estimate = |mbps, at| Estimate {
        capacity: Rate::from_mbps(mbps),
        at_least: false,
        at: ms(at),
        source: String::new(),
    };
    let chosen = |all: &[(bool, f64, u64)]| {
        let all = all.iter().map(|(m, mbps, at)| (*m, estimate(*mbps, *at)));
        choose(all).map(|e| e.capacity.as_mbps())
    };
    let (probe, told) = ((true, 300.0, 10), (false, 50.0, 99));
    assert_eq!(chosen(&[probe, (true, 200.0, 9), told]), Some(300.0));
    assert_eq!(chosen(&[probe, (true, 200.0, 11), told]), Some(200.0));
    // A lower bound from before it was measured tells of another time.
    let bound = |at| Estimate {
        at_least: true,
        ..estimate(400.0, at)
    };
    let beside = |at| choose([(true, estimate(300.0, 10)), (true, bound(at))].into_iter());
    assert_eq!(beside(9).map(|e| e.at_least), Some(false));
    assert_eq!(beside(11).map(|e| e.at_least), Some(true));
    // One that an operator prefers counts, however old it is.
    assert_eq!(chosen(&[told, (true, 200.0, 200)]), Some(50.0));
}

#[test]
fn an_access_that_traffic_fills_is_not_probed() {
    let mut plan = ProbePlan::new(3, "nr", ProbeSettings::default());
    plan.set_usable(Time::ZERO, true);
    for s in 0..600 {
        assert_eq!(plan.next(ms(s * 1000), true), None);
    }
    // Once it is idle, it has its turn within an interval.
    let mut later = (600..720).filter_map(|s| {
        let order = plan.next(ms(s * 1000), false)?;
        plan.on_result(ms(s * 1000 + 500), &result(&order));
        Some(order.direction)
    });
    assert!(later.any(|d| d == Direction::Down));
}

fn result(order: &ProbeOrder) -> ProbeResult {
    ProbeResult {
        access: order.access.clone(),
        direction: order.direction,
        bytes: 1_000,
        rate: Some(Rate::from_mbps(1.0)),
    }
}

/// Runs a plan for `seconds`; each probe moves `mbps` for its length, or as much as it may.
/// Returns moment and bytes of each.
fn probed(seed: u64, settings: ProbeSettings, mbps: u64, seconds: u64) -> Vec<(Time, u64)> {
    let mut plan = ProbePlan::new(seed, "nr", settings);
    plan.set_usable(Time::ZERO, true);
    let mut all = Vec::new();
    let mut pending: Option<(Time, ProbeResult)> = None;
    for now in (0..seconds * 1000).step_by(500).map(ms) {
        if let Some((at, result)) = pending.take_if(|(at, _)| *at <= now) {
            plan.on_result(at, &result);
            all.push((at, result.bytes));
        }
        if let Some(order) = plan.next(now, false) {
            assert!(pending.is_none(), "two probes at a time");
            let wanted = mbps * 125 * order.duration_ms;
            let result = ProbeResult {
                access: order.access,
                direction: order.direction,
                bytes: wanted.min(order.max_bytes),
                rate: None,
            };
            pending = Some((now + Duration::from_millis(order.duration_ms), result));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn no_hour_costs_more_than_its_budget(
        seed: u64, mbps in 1u64..1000, budget_mb in 1u64..3000, interval_s in 1u64..600,
    ) {
        let settings = ProbeSettings {
            interval_ms: interval_s * 1000,
            bytes_per_hour: budget_mb * 1_000_000,
            ..ProbeSettings::default()
        };
        let all = probed(seed, settings, mbps, 4 * 3600);
        for (i, (begin, _)) in all.iter().enumerate() {
            let hour = all[i..].iter().take_while(|(at, _)| {
                at.since(*begin) < Duration::from_secs(3600)
            });
            prop_assert!(hour.map(|(_, bytes)| bytes).sum::<u64>() <= settings.bytes_per_hour);
        }
    }
}

#[test]
fn the_month_is_a_limit_too() {
    let settings = ProbeSettings {
        bytes_per_month: 1_000_000_000,
        ..ProbeSettings::default()
    };
    let all = probed(7, settings, 600, 24 * 3600);
    let total: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    assert!((999_000_000..=1_000_000_000).contains(&total), "{total}");
    let mut plan = ProbePlan::new(7, "nr", settings);
    plan.on_spending(Time::ZERO, &spending(999_500_000, 0));
    plan.set_usable(Time::ZERO, true);
    assert!(plan.next(ms(3_600_000), false).is_none());
    assert!(plan.next(ms(31 * 24 * 3_600_000), false).is_some());
}

fn spending(bytes: u64, day_bytes: u64) -> ProbeSpending {
    ProbeSpending {
        access: "nr".to_owned(),
        bytes,
        day_bytes,
    }
}

#[test]
fn a_day_and_a_probe_have_limits_of_their_own() {
    let settings = ProbeSettings {
        bytes_per_probe: 50_000_000,
        bytes_per_day: 300_000_000,
        ..ProbeSettings::default()
    };
    let all = probed(7, settings, 600, 24 * 3600);
    let total: u64 = all.iter().map(|(_, bytes)| bytes).sum();
    assert_eq!(total, 300_000_000);
    assert!(all.iter().all(|(_, bytes)| *bytes == 50_000_000));
    // Moved before a restart.
    let mut plan = ProbePlan::new(7, "nr", settings);
    plan.on_spending(Time::ZERO, &spending(900_000_000, 299_500_000));
    plan.set_usable(Time::ZERO, true);
    assert!(plan.next(ms(23 * 3_600_000), false).is_none());
    let order = plan.next(ms(24 * 3_600_000), false).unwrap();
    assert_eq!(order.max_bytes, 50_000_000);
}

#[test]
fn directions_that_nobody_wants_are_not_probed() {
    let wanted = |down, up| ProbeSettings {
        directions: PerDirection { down, up },
        ..ProbeSettings::default()
    };
    let mut plan = ProbePlan::new(1, "nr", wanted(true, false));
    plan.set_usable(Time::ZERO, true);
    let orders = (0..3600).filter_map(|s| {
        let order = plan.next(ms(s * 1000), false)?;
        plan.on_result(
            ms(s * 1000),
            &ProbeResult {
                access: order.access.clone(),
                direction: order.direction,
                bytes: 1_000_000,
                rate: None,
            },
        );
        Some(order.direction)
    });
    let orders: Vec<Direction> = orders.collect();
    assert!(orders.len() > 40 && orders.iter().all(|d| *d == Direction::Down));
    // Read again.
    plan.set_settings(wanted(false, true));
    plan.set_usable(ms(3_600_000), true);
    assert_eq!(
        plan.next(ms(3_700_000), false).unwrap().direction,
        Direction::Up
    );
    plan.set_settings(wanted(false, false));
    plan.set_usable(ms(3_800_000), true);
    assert_eq!(plan.due(), None);
}

#[test]
fn an_access_that_is_off_is_not_probed() {
    let mut plan = ProbePlan::new(1, "nr", ProbeSettings::default());
    assert_eq!((plan.due(), plan.next(ms(100_000), false)), (None, None));
    plan.set_usable(ms(100_000), true);
    assert!(plan.due().unwrap() <= ms(130_000));
    plan.set_usable(ms(100_100), false);
    assert_eq!(plan.next(ms(200_000), false), None);
}

#[test]
fn an_order_without_result_is_charged_in_full() {
    let settings = ProbeSettings {
        bytes_per_probe: u64::MAX,
        ..ProbeSettings::default()
    };
    let mut plan = ProbePlan::new(1, "nr", settings);
    plan.set_usable(Time::ZERO, true);
    let order = plan.next(ms(30_000), false).unwrap();
    assert_eq!(order.max_bytes, 1_000_000_000);
    assert_eq!(plan.next(ms(40_000), false), None);
    assert_eq!(plan.next(ms(200_000), false), None);
    assert_eq!(plan.remaining(ms(200_000)), 0);
}

#[test]
fn devices_do_not_probe_together() {
    let times = |seed| -> Vec<Time> {
        let all = probed(seed, ProbeSettings::default(), 100, 3600);
        all.into_iter().map(|(at, _)| at).collect()
    };
    assert_eq!(times(1), times(1));
    let (one, two) = (times(1), times(2));
    assert!(one.len() > 50, "{}", one.len());
    let together = one.iter().filter(|t| two.contains(t)).count();
    assert!(together * 10 < one.len(), "{together} of {}", one.len());
}
