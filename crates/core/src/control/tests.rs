//! Round trips of the loop's data through JSON, and strategies that other tests share.

use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use crate::AccessState;
use crate::energy::{Parameters, sets};
use crate::{AccessKind, Rate, Time};

fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("5g"), Just("wifi"), Just("sat \"é\"\n")].prop_map(str::to_owned)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(&Direction::ALL[..])
}

fn rates() -> impl Strategy<Value = PerDirection<Option<Rate>>> {
    let rate = || prop::option::of(any::<u64>().prop_map(Rate::from_bps));
    (rate(), rate()).prop_map(|(down, up)| PerDirection { down, up })
}

fn weight() -> impl Strategy<Value = f64> {
    prop_oneof![0.0..1e9, Just(0.0), Just(1.0 / 3.0)]
}

fn state() -> impl Strategy<Value = AccessState> {
    prop::sample::select(vec![
        AccessState::Active,
        AccessState::Backup,
        AccessState::Down,
        AccessState::Silent,
        AccessState::Stripped,
        AccessState::Ignored,
        AccessState::NoAddress,
    ])
}

fn limited_by() -> impl Strategy<Value = LimitedBy> {
    prop::sample::select(vec![
        LimitedBy::Nothing,
        LimitedBy::Scheduler,
        LimitedBy::PeerWindow,
        LimitedBy::SlowStart,
        LimitedBy::Application,
    ])
}

fn power() -> Parameters {
    sets::all().swap_remove(0).parameters
}

fn settings() -> impl Strategy<Value = Settings> {
    let kind = prop::sample::select(vec![AccessKind::Nr, AccessKind::Wifi, AccessKind::Other]);
    let access = (kind, weight(), any::<bool>(), rates(), any::<u32>()).prop_map(
        |(kind, weight, backup, expected, n)| AccessSettings {
            weight,
            backup,
            expected,
            probe: ProbeSettings {
                flows: n,
                interval_ms: u64::from(n) << 20,
                ..ProbeSettings::default()
            },
            power: backup.then(power),
            ..AccessSettings::new(kind)
        },
    );
    (
        prop::collection::btree_map(name(), access, 0..3),
        any::<u32>(),
    )
        .prop_map(|(accesses, n)| {
            let mut policy = PolicySettings::default();
            policy.capacity.hysteresis_percent = n;
            policy.energy.hold_ms = n.into();
            Settings { policy, accesses }
        })
}

fn metrics() -> impl Strategy<Value = PathMetrics> {
    let counts = any::<[u64; 6]>();
    let maybe = prop::option::of(any::<u64>());
    (name(), direction(), counts, limited_by(), maybe).prop_map(
        |(access, direction, counts, limited_by, rtt)| PathMetrics {
            access,
            path: counts[0],
            direction,
            began: Time::from_nanos(counts[1]),
            delivered_bytes: counts[2],
            lost_bytes: counts[3],
            in_flight_bytes: counts[4],
            queued_bytes: counts[5],
            limited_by,
            delivery_rate: rtt.map(Rate::from_bps),
            srtt_us: rtt,
            min_rtt_us: rtt,
        },
    )
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        prop::collection::btree_map(name(), weight(), 0..3).prop_map(Request::Weights),
        (name(), any::<bool>()).prop_map(|(access, backup)| Request::Backup { access, backup }),
        (name(), any::<bool>()).prop_map(|(access, enabled)| Request::Enabled { access, enabled }),
        (name(), rates()).prop_map(|(access, expected)| Request::Expected { access, expected }),
    ]
}

fn what() -> impl Strategy<Value = What> {
    prop_oneof![
        settings().prop_map(What::Configuration),
        (name(), state())
            .prop_map(|(access, state)| What::AccessState(StateChange { access, state })),
        metrics().prop_map(What::PathSample),
        (name(), any::<u64>(), direction(), any::<u64>()).prop_map(
            |(access, path, direction, delivered_bytes)| What::PathGone(PathGone {
                access,
                path,
                direction,
                began: Time::from_nanos(path / 2),
                delivered_bytes
            })
        ),
        (
            name(),
            direction(),
            any::<u64>(),
            prop::option::of(any::<u64>())
        )
            .prop_map(
                |(access, direction, bytes, rate)| What::ProbeResult(ProbeResult {
                    access,
                    direction,
                    bytes,
                    rate: rate.map(Rate::from_bps)
                })
            ),
        (name(), any::<u64>()).prop_map(|(access, bytes)| What::ProbeSpending(ProbeSpending {
            access,
            bytes,
            day_bytes: bytes / 2,
        })),
        request().prop_map(What::Request),
        (name(), any::<[u64; 2]>()).prop_map(|(access, [down, up])| What::Carried(CarriedRates {
            access,
            rate: PerDirection {
                down: Rate::from_bps(down),
                up: Rate::from_bps(up),
            },
        })),
    ]
}

/// Any observation.
pub(crate) fn observation() -> impl Strategy<Value = Observation> {
    (any::<u64>(), what()).prop_map(|(at, what)| Observation {
        at: Time::from_nanos(at),
        what,
    })
}

/// Any decision.
pub(crate) fn decision() -> impl Strategy<Value = Decision> {
    let role = prop::sample::select(vec![
        AccessRole::Active,
        AccessRole::Backup,
        AccessRole::Off,
    ]);
    let access = (role, weight(), weight()).prop_map(|(role, down, up)| AccessSteering {
        role,
        weight: PerDirection { down, up },
    });
    let accesses = prop::collection::btree_map(name(), access, 0..3);
    (any::<u64>(), name(), accesses, prop::option::of(name())).prop_map(
        |(at, policy, accesses, scheduler)| Decision {
            at: Time::from_nanos(at),
            steering: Steering {
                accesses,
                scheduler,
                why: policy.clone(),
            },
            policy,
        },
    )
}

fn snapshot() -> impl Strategy<Value = Snapshot> {
    let estimate = (any::<u64>(), any::<bool>(), name()).prop_map(|(n, at_least, source)| {
        let (capacity, at) = (Rate::from_bps(n), Time::from_nanos(n));
        Estimate {
            capacity,
            at_least,
            at,
            source,
        }
    });
    let activity = (any::<u64>(), limited_by()).prop_map(|(bps, limited_by)| Activity {
        rate: Rate::from_bps(bps),
        limited_by,
    });
    let one = (prop::option::of(estimate), prop::option::of(activity));
    let access = (one, state(), any::<[bool; 2]>(), weight(), rates()).prop_map(
        |((estimate, activity), state, [enabled, backup], weight, expected)| AccessSnapshot {
            kind: AccessKind::Lifi,
            state,
            enabled,
            backup,
            configured_weight: weight,
            requested_weight: backup.then_some(weight),
            expected,
            directions: PerDirection {
                down: DirectionSnapshot { estimate, activity },
                up: DirectionSnapshot::default(),
            },
            power: enabled.then(power),
            carried: enabled.then_some(Carried {
                at: Time::ZERO,
                rate: PerDirection::default(),
            }),
        },
    );
    let accesses = prop::collection::btree_map(name(), access, 0..3);
    (any::<u64>(), accesses).prop_map(|(at, accesses)| Snapshot {
        at: Time::from_nanos(at),
        accesses,
    })
}

fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn observations_round_trip(o in observation()) {
        prop_assert_eq!(round_trip(&o), o);
    }

    #[test]
    fn decisions_round_trip(d in decision()) {
        prop_assert_eq!(round_trip(&d), d);
    }

    #[test]
    fn snapshots_round_trip(s in snapshot()) {
        prop_assert_eq!(round_trip(&s), s);
    }

    #[test]
    fn unknown_fields_are_errors(o in observation()) {
        let whole = serde_json::to_value(&o).unwrap();
        let mut outside = whole.clone();
        outside["extra"] = 1.into();
        prop_assert!(serde_json::from_value::<Observation>(outside).is_err());
        let mut inside = whole;
        let kind = inside["what"].as_object_mut().unwrap().values_mut().next().unwrap();
        kind["extra"] = 1.into();
        prop_assert!(serde_json::from_value::<Observation>(inside).is_err());
    }
}

#[test]
fn requests_are_strict_inside() {
    let text = r#"{"backup":{"access":"wifi","backup":true,"until":3}}"#;
    let error = serde_json::from_str::<Request>(text)
        .unwrap_err()
        .to_string();
    assert!(error.contains("until"), "{error}");
}

#[test]
fn unknown_kinds_name_the_known_ones() {
    let text = r#"{"at_ns":1,"what":{"radio-report":{}}}"#;
    let error = serde_json::from_str::<Observation>(text)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("radio-report") && error.contains("path-sample"),
        "{error}"
    );
}
