//! Models against vectors, against properties that all must have, and against recordings.

mod recordings;
mod vectors;

use proptest::prelude::*;

use super::*;

fn every_set() -> impl Strategy<Value = sets::ParameterSet> {
    proptest::sample::select(sets::all())
}

fn interval() -> impl Strategy<Value = Interval> {
    let rate = || prop_oneof![Just(0.0), 0.0..2000.0f64];
    let signal = (
        proptest::option::of(-150.0..-40.0f64),
        proptest::option::of(-20.0..40.0f64),
    );
    (0u64..20_000, rate(), rate(), signal).prop_map(|(ms, down, up, (rsrp_dbm, sinr_db))| {
        Interval {
            signal: Signal { rsrp_dbm, sinr_db },
            ..Interval::at_rates(Duration::from_millis(ms), down, up)
        }
    })
}

fn half(i: &Interval) -> Interval {
    Interval {
        length: i.length / 2,
        down_bytes: i.down_bytes / 2.0,
        up_bytes: i.up_bytes / 2.0,
        ..*i
    }
}

fn sum(model: &mut dyn PowerModel, intervals: &[Interval]) -> Energy {
    let mut sum = Energy::default();
    for i in intervals {
        sum += model.advance(i);
    }
    sum
}

fn parts(e: Energy) -> [f64; 4] {
    [
        e.active_joules,
        e.promotion_joules,
        e.tail_joules,
        e.idle_joules,
    ]
}

proptest! {
    /// No energy is negative or unknown, and each state has its own.
    #[test]
    fn energy_is_finite_and_not_negative(
        set in every_set(),
        intervals in prop::collection::vec(interval(), 1..20),
    ) {
        let mut model = set.parameters.make();
        for i in &intervals {
            let e = model.advance(i);
            for part in parts(e) {
                prop_assert!(part.is_finite() && part >= 0.0, "{}: {e:?} of {i:?}", set.name);
            }
            if i.down_bytes + i.up_bytes == 0.0 {
                prop_assert_eq!(e.active_joules, 0.0);
            }
        }
    }

    /// Finer steps of the same traffic take the same energy, in each state.
    #[test]
    fn steps_do_not_matter(
        set in every_set(),
        intervals in prop::collection::vec(interval(), 1..12),
    ) {
        let fine: Vec<Interval> = intervals.iter().flat_map(|i| [half(i), half(i)]).collect();
        let coarse = sum(&mut *set.parameters.make(), &intervals);
        let fine = sum(&mut *set.parameters.make(), &fine);
        for (a, b) in parts(coarse).into_iter().zip(parts(fine)) {
            prop_assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{}: {coarse:?} {fine:?}", set.name);
        }
    }

    /// More bytes down never take less energy.
    #[test]
    fn bytes_cost(set in every_set(), i in interval(), more in 1.0..3.0f64) {
        let down = |bytes: f64| Interval { down_bytes: bytes, up_bytes: 0.0, ..i };
        let energy = |i: Interval| set.parameters.make().advance(&i).total_joules();
        let (light, heavy) = (energy(down(i.down_bytes)), energy(down(i.down_bytes * more)));
        prop_assert!(heavy >= light - 1e-9, "{}: {heavy} < {light}", set.name);
    }
}

#[test]
fn sets_are_valid_and_named_once() {
    let all = sets::all();
    for s in &all {
        assert_eq!(s.parameters.check(), Ok(()), "{}", s.name);
        assert!(names().any(|n| n == s.parameters.model()), "{}", s.name);
        assert_eq!(all.iter().filter(|o| o.name == s.name).count(), 1);
        assert!(!s.source.is_empty() && !s.quality.is_empty(), "{}", s.name);
    }
    for model in names() {
        let set = sets::default_of(model).unwrap();
        assert_eq!(set.parameters.model(), model);
    }
    assert!(sets::by_name("sigcomm21-lte").is_some() && sets::by_name("none").is_none());
}

#[test]
fn impossible_parameters_are_refused() {
    let affine = AffineParameters::default();
    let bad = |p: AffineParameters| Parameters::Affine(p).check().unwrap_err().to_string();
    let base_mw = f64::NAN;
    assert!(bad(AffineParameters { base_mw, ..affine }).contains("base_mw is NaN: expected 0 to"));
    let tail_ms = -1.0;
    assert!(bad(AffineParameters { tail_ms, ..affine }).contains("tail_ms is -1"));
    let rsrp = Some(SignalTerm {
        mw_per_db: 1.0,
        reference: -80.0,
        min: -70.0,
        max: -90.0,
    });
    assert!(bad(AffineParameters { rsrp, ..affine }).contains("rsrp.min is -70: expected at most"));
    let no_channel = Parameters::WifiAirtime(WifiAirtimeParameters::default());
    assert!(
        no_channel
            .check()
            .unwrap_err()
            .to_string()
            .contains("channel_mbps is 0")
    );
}

/// A burst of 1 s after idle, then a minute of silence.
#[test]
fn a_burst_has_a_promotion_and_a_tail() {
    let set = sets::by_name("sigcomm21-lte").unwrap();
    let Parameters::Affine(p) = set.parameters else {
        panic!("{set:?}")
    };
    let mut model = set.parameters.make();
    let burst = model.advance(&Interval::at_rates(Duration::from_secs(1), 10.0, 0.0));
    assert_eq!(burst.promotion_joules, p.promotion_mw * 0.3 / 1e3);
    let active = (p.base_mw * 0.7 + 10.0 * p.down_mw_per_mbps) / 1e3;
    assert!((burst.active_joules - active).abs() < 1e-12);
    let silence = model.advance(&Interval::silent(Duration::from_secs(60)));
    assert!((silence.tail_joules - p.tail_mw * 10.1 / 1e3).abs() < 1e-12);
    assert_eq!(silence.active_joules + silence.promotion_joules, 0.0);
    // Connected no more: the next burst waits again.
    let again = model.advance(&Interval::at_rates(Duration::from_secs(1), 10.0, 0.0));
    assert_eq!(again, burst);
}

/// Two shares of the air: what collides is sent again and costs what sending costs.
#[test]
fn collisions_cost_airtime() {
    let set = sets::by_name("ns3-wifi").unwrap();
    let Parameters::WifiAirtime(p) = set.parameters else {
        panic!("{set:?}")
    };
    let of = |collided: u64| {
        let airtime = Airtime {
            sending: Duration::from_millis(100),
            collided: Duration::from_millis(collided),
            ..Airtime::default()
        };
        set.parameters.make().advance(&Interval {
            airtime: Some(airtime),
            ..Interval::silent(Duration::from_secs(1))
        })
    };
    let more = of(50).active_joules - of(0).active_joules;
    assert!(
        (more - (p.send_mw - p.awake_mw) * 0.05 / 1e3).abs() < 1e-12,
        "{more}"
    );
}

/// The rows of Tables 2 and 3: 60 MB at the printed rates take the printed joules.
#[test]
fn paper002_gives_its_tables() {
    let lte = [
        (37.8, 47.9),
        (33.7, 48.1),
        (31.0, 48.35),
        (29.2, 48.7),
        (26.8, 49.2),
        (23.7, 49.35),
    ];
    let wifi = [
        (26.7, 50.7),
        (24.3, 50.9),
        (21.3, 51.3),
        (19.0, 51.6),
        (17.8, 51.9),
        (16.5, 52.2),
    ];
    let both = [
        (45.25, 57.0),
        (41.0, 57.2),
        (39.3, 57.3),
        (36.5, 57.5),
        (32.0, 57.6),
        (26.9, 57.9),
    ];
    for (name, rows) in [
        ("paper002-lte", lte),
        ("paper002-wifi", wifi),
        ("paper002-both", both),
    ] {
        let set = sets::by_name(name).unwrap();
        for (mbps, joules) in rows {
            let time = Duration::from_secs_f64(480.0 / mbps);
            let e = set
                .parameters
                .make()
                .advance(&Interval::at_rates(time, mbps, 0.0));
            let error = e.total_joules() / joules - 1.0;
            assert!(error.abs() < 0.007, "{name}, {mbps} Mbit/s: {error}");
        }
    }
}
