//! Properties that span formats, and the shared recordings where present.

use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn sampled() -> impl Strategy<Value = Trace> {
    let rate = prop_oneof![Just(0), 0u64..2_000_000, 0u64..2_000_000_000];
    let rows = prop::collection::vec((1u64..3_000_000, rate.clone(), rate), 1..60);
    rows.prop_map(|rows| {
        let (mut text, mut at) = (String::from("t_s,a_mbps,b_mbps\n"), 0);
        for (i, (step, a, b)) in rows.iter().enumerate() {
            at += if i == 0 { 0 } else { *step };
            let [t, a, b] = [at, *a, *b].map(|v| v as f64 / 1e6);
            text += &format!("{t},{a},{b}\n");
        }
        Trace::parse(text.as_bytes(), None).unwrap()
    })
}

fn opportunities() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0u64..400, 1..300).prop_map(|steps| {
        let sum = steps.iter().scan(0, |at, d| {
            *at += d / 8;
            Some(*at)
        });
        let mut ms: Vec<u64> = sum.collect();
        ms.push(ms.last().copied().unwrap_or(0) + 1);
        ms
    })
}

fn written(write: impl Fn(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    out
}

/// Bits that a column carries over its span.
fn bits(t: &Trace, column: usize) -> f64 {
    let segments = t.segments(column, Duration::from_millis(7)).unwrap();
    segments.iter().map(|s| s.mbps * 1e6 * s.length_s).sum()
}

proptest! {
    #[test]
    fn csv_round_trips(t in sampled()) {
        let comments = ["two\nlines".to_owned()];
        let text = written(|out| write::csv(&t, &comments, out));
        let back = Trace::parse(&text, None).unwrap();
        prop_assert_eq!(back.capacity, t.capacity);
    }

    #[test]
    fn mahimahi_round_trips(ms in opportunities()) {
        let text = written(|out| write::mahimahi(&ms, out));
        let t = Trace::parse(&text, None).unwrap();
        prop_assert_eq!(t.format, Format::Mahimahi);
        prop_assert_eq!(t.opportunities(0).unwrap(), ms);
    }

    #[test]
    fn resampling_keeps_every_bit(t in sampled(), step_us in 1_000u64..5_000_000) {
        let r = t.resampled(Duration::from_micros(step_us)).unwrap();
        let steps = t.span().as_micros().div_ceil(u128::from(step_us));
        prop_assert_eq!(r.span().as_micros(), steps * u128::from(step_us));
        for c in 0..2 {
            // Each window's rate is rounded to 1 bit/s.
            let slack = r.span().as_secs_f64() + 1e-6 * bits(&t, c);
            prop_assert!((bits(&r, c) - bits(&t, c)).abs() <= slack);
        }
    }

    #[test]
    fn resampled_opportunities_keep_every_packet(ms in opportunities(), step in 1u64..3000) {
        let text = written(|out| write::mahimahi(&ms, out));
        let t = Trace::parse(&text, None).unwrap();
        let r = t.resampled(Duration::from_millis(step)).unwrap();
        let packets = bits(&r, 0) / f64::from(8 * OPPORTUNITY_BYTES);
        prop_assert!((packets - ms.len() as f64).abs() < 0.01, "{packets} of {}", ms.len());
    }

    #[test]
    fn opportunities_carry_what_the_rates_carry(t in sampled()) {
        let t = t.part(Duration::ZERO, Some(Duration::from_secs(2))).unwrap();
        let ms = t.opportunities(0).unwrap();
        prop_assert!(ms.is_sorted());
        prop_assert_eq!(u128::from(*ms.last().unwrap()), t.span().as_micros().div_ceil(1000));
        let each = f64::from(8 * OPPORTUNITY_BYTES);
        let packets = bits(&t, 0) / each;
        // The last, partial packet is left out; one may be added at the end.
        prop_assert!((ms.len() as f64 - packets).abs() <= 1.0 + 1e-6, "{} of {packets}", ms.len());
    }

    #[test]
    fn a_part_is_what_it_is_a_part_of(t in sampled(), from in 0.0f64..1.0, length in 0.01f64..1.0) {
        let span = t.span();
        let (from, length) = (span.mul_f64(from * 0.99), span.mul_f64(length));
        let p = t.part(from, Some(length)).unwrap();
        prop_assert_eq!(p.span(), (span - from).min(length));
        let rest = t.part(from + p.span(), None).map_or(0.0, |r| bits(&r, 1));
        let before = if from.is_zero() { 0.0 } else { bits(&t.part(Duration::ZERO, Some(from)).unwrap(), 1) };
        prop_assert!((before + bits(&p, 1) + rest - bits(&t, 1)).abs() <= 1.0 + 1e-9 * bits(&t, 1));
    }

    #[test]
    fn rate_specs_are_as_documented(t in sampled()) {
        for c in 0..2 {
            match t.rate_spec(c) {
                RateSpec::Steps { points, period } => {
                    prop_assert_eq!(points[0].0, Duration::ZERO);
                    prop_assert!(points.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 != w[1].1));
                    prop_assert!(period.unwrap() > points.last().unwrap().0);
                }
                RateSpec::Constant(_) => {}
                other => prop_assert!(false, "{other:?}"),
            }
        }
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), f in 0usize..6) {
        let format = Format::ALL.get(f).copied();
        let _ = Trace::parse(&bytes, format);
    }

    /// Text that is nearly a trace goes deeper than random bytes.
    #[test]
    fn near_traces_never_panic(
        header in prop::sample::select(vec![
            "", "t_s,a_mbps\n", "cycle,wifi_weight,nr_weight,wrr_mbps\n",
            "Timestamp,DL_bitrate,UL_bitrate\n", "\u{feff}t_s,a_mbps,b_mbps\n",
        ]),
        rows in prop::collection::vec("([-0-9.e,\t ]|\n|9{1,12}|2020\\.01\\.01_00\\.00\\.0[0-9]|,-,){0,40}\n", 0..12),
        f in 0usize..6,
    ) {
        let text = header.to_owned() + &rows.concat();
        if let Ok(t) = Trace::parse(text.as_bytes(), Format::ALL.get(f).copied()) {
            prop_assert!(t.span() > Duration::ZERO && t.span() <= MAX_SPAN);
            prop_assert!(t.samples() > 0);
            for c in 0..t.columns().len() {
                let _ = t.rate_spec(c);
            }
            let window = t.span().div_f64(50.0);
            let _ = t.summary(&stats::Options { window, ..stats::Options::default() });
            let _ = t.resampled(window);
        }
    }
}

#[test]
fn loads_a_column_by_name_hint_or_because_it_is_the_only_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("walk.csv");
    std::fs::write(&path, "t_s,nr_mbps,wifi_mbps\n0,1,2\n1,3,4\n").unwrap();
    let e = load(&path, None, None).unwrap_err();
    assert!(e.msg.contains("nr, wifi"), "{e}");
    let e = load(&path, Some("lifi"), None).unwrap_err();
    assert!(
        e.to_string().contains("walk.csv: no column \"lifi\""),
        "{e}"
    );
    let l = load_with_hints(&path, None, &["lifi", "wifi"], None).unwrap();
    assert_eq!((l.column.as_str(), l.span.as_secs()), ("wifi", 2));
    assert_eq!(
        l.rate,
        RateSpec::Steps {
            points: vec![
                (Duration::ZERO, Rate::from_mbps(2.0)),
                (Duration::from_secs(1), Rate::from_mbps(4.0))
            ],
            period: Some(Duration::from_secs(2)),
        }
    );
    std::fs::write(&path, "0,5\n1,bad\n").unwrap();
    let e = load_with_hints(&path, None, &["nr"], None).unwrap_err();
    assert!(
        e.to_string()
            .ends_with("walk.csv:2: \"bad\" is not a rate: expected Mbit/s, 0 to 1000000")
    );
    let e = load(&dir.path().join("none"), None, None).unwrap_err();
    assert!(
        e.to_string()
            .contains("none: cannot read the trace: No such file"),
        "{e}"
    );
    let e = load(dir.path(), None, None).unwrap_err();
    assert!(e.to_string().contains("cannot read the trace"), "{e}");
}

#[test]
fn too_fine_a_step_is_refused_before_memory_is_taken() {
    let t = Trace::parse(b"0\n2592000000\n", None).unwrap();
    for step in [Duration::ZERO, Duration::from_micros(1)] {
        assert!(t.resampled(step).unwrap_err().msg.contains("too short"));
    }
}

/// A folder of the shared recordings; `None`, with a printed reason, without them.
fn shared(folder: &str) -> Option<Vec<PathBuf>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data")
        .join(folder);
    let Ok(entries) = std::fs::read_dir(&root) else {
        eprintln!("skipped: no recordings at {}", root.display());
        return None;
    };
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "{} is empty", root.display());
    Some(files)
}

/// Reads every recording of a folder, checks what holds for all and returns the traces.
fn read_all(folder: &str, format: Format) -> Vec<(PathBuf, Trace)> {
    let files = shared(folder).unwrap_or_default();
    let read = files.into_iter().map(|path| {
        let t = Trace::read(&path, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(t.format, format, "{}", path.display());
        let s = t.summary(&stats::Options::default()).unwrap();
        for c in &s.columns {
            let order = [
                c.min_mbps,
                c.p5_mbps,
                c.p20_mbps,
                c.median_mbps,
                c.p95_mbps,
                c.max_mbps,
            ];
            assert!(
                order.is_sorted() && c.mean_mbps > 0.0,
                "{}: {c:?}",
                path.display()
            );
        }
        // What is imported is the same trace.
        let sampled = match format {
            Format::Mahimahi => t.resampled(Duration::from_millis(100)).unwrap(),
            _ => t.clone(),
        };
        let text = written(|out| write::csv(&sampled, &[], out));
        assert_eq!(
            Trace::parse(&text, None).unwrap().capacity,
            sampled.capacity
        );
        (path, t)
    });
    read.collect()
}

#[test]
fn shared_mahimahi() {
    for (path, t) in read_all("mahimahi", Format::Mahimahi) {
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert_eq!(t.samples(), lines);
        assert!((119.0..141.0).contains(&t.span().as_secs_f64()));
    }
}

#[test]
fn shared_5g_production() {
    for (path, t) in read_all("5g-production", Format::Ucc5g) {
        assert_eq!(t.columns(), ["down", "up"]);
        let rows = std::fs::read_to_string(&path).unwrap().lines().count() - 1;
        let dropped: u64 = t
            .problems
            .iter()
            .filter(|p| matches!(p.kind, ProblemKind::Repeated | ProblemKind::Conflicting))
            .map(|p| p.count)
            .sum();
        assert_eq!(t.samples() as u64 + dropped, rows as u64);
        assert!(t.problems.iter().any(|p| p.kind == ProblemKind::Gap));
        assert!(t.notes[0].contains("5G"));
    }
}

#[test]
fn shared_5g4g_paired() {
    for (path, t) in read_all("5g4g-paired", Format::Paired) {
        assert_eq!(t.columns(), ["nr", "lte"]);
        assert_eq!(t.step(Duration::ZERO), Duration::from_secs(1));
        assert!(
            t.problems.is_empty(),
            "{}: {:?}",
            path.display(),
            t.problems
        );
    }
}

#[test]
fn shared_ugr_dynamic() {
    for (_, t) in read_all("ugr-dynamic", Format::UgrDynamic) {
        assert_eq!((t.columns(), t.samples()), (vec!["wifi", "nr"], 12));
        assert!((249.9..250.1).contains(&t.span().as_secs_f64()));
    }
}
