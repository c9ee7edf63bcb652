use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::super::drive::{DriveSpec, drive};
use super::super::{CapacityModel, Flaw, FlawKind, Measurements, write};
use super::*;

fn read(text: &str) -> Result<Measurements, LineError> {
    let format = SignalFormat::detect(text.as_bytes()).expect("a header");
    parse(text.as_bytes(), format)
}

fn kinds(flaws: &[Flaw]) -> Vec<(FlawKind, u64, u64)> {
    let kind = |f: &Flaw| (f.kind, f.count, f.first_line);
    flaws.iter().map(kind).collect()
}

/// Cells by name with their powers, per second.
fn heard(m: &Measurements) -> Vec<Vec<(String, f64)>> {
    let list = |s: &super::super::Second| {
        let named = s.heard.iter().map(|h| (m.cell_name(h.cell), h.rsrp_dbm));
        named.collect()
    };
    m.seconds.iter().map(list).collect()
}

#[test]
fn reads_spellings_and_dates() {
    let m = read(
        "# a node\nTimestamp,Operator,CID,EARFCN,RSRP,RSRQ,SNR,Speed\n\
         2022-05-06T07:08:09Z,telco,17,1300,-95,-10,12,30\n\
         2022-05-06T07:08:09Z,telco,18,1300,-101.5,,,30\n\
         2022-05-06 07:08:10,telco,17,1300,-96,-10,-,30\n",
    )
    .unwrap();
    assert!(m.flaws.is_empty(), "{:?}", m.flaws);
    let cell = |name: &str, dbm| (name.to_owned(), dbm);
    assert_eq!(
        heard(&m),
        [
            vec![cell("telco/1300/17", -95.0), cell("telco/1300/18", -101.5)],
            vec![cell("telco/1300/17", -96.0)]
        ]
    );
    let first = m.seconds[0].heard[0];
    assert_eq!((first.rsrq_db, first.sinr_db), (Some(-10.0), Some(12.0)));
    assert_eq!(m.carriers[0].bandwidth_mhz, None);
    // Without carriers all share one; numbers are seconds.
    let m = read("time,cell,rsrp\n1.2,a,-90\n1.7,a,-92\n2.1,b,-80\n").unwrap();
    assert_eq!(m.seconds.len(), 1, "{m:?}");
    assert_eq!(m.seconds[0].heard[0].rsrp_dbm, -91.0);
    assert!(m.notes[0].contains("share one"), "{:?}", m.notes);
}

#[test]
fn rules_for_flawed_data() {
    let m = read(
        "time_s,operator,carrier,cell,rsrp_dbm,sinr_db\n\
         98,a,1,x,-90,5\n\
         99,a,1,x,-90,5\n\
         100,a,1,x,-90,5\n\
         100,a,1,x,-90,5\n\
         101,a,1,x,-90,99\n\
         101,a,1,x,-94,-\n\
         102,b,2,y,-80,5\n\
         104,a,1,x,,5\n\
         105,a,1,x,-10,5\n\
         103,b,2,y,-82,5\n\
         104,b,2,y,-83,5\n\
         102.5,b,2,y,-81,5\n\
         105,b,-,-,-,-\n\
         200,a,1,z,-100,5\n",
    )
    .unwrap();
    assert_eq!(
        kinds(&m.flaws),
        [
            (FlawKind::Gap, 1, 9),
            (FlawKind::Pause, 1, 15),
            (FlawKind::Repeated, 1, 5),
            (FlawKind::Conflicting, 1, 7),
            (FlawKind::ClockJump, 1, 13),
            (FlawKind::Missing, 1, 9),
            (FlawKind::Impossible, 2, 6),
        ]
    );
    let (x, y) = ("a/1/x", "b/2/y");
    let expected: Vec<Vec<(&str, f64)>> = vec![
        vec![(x, -90.0)],
        vec![(x, -90.0)],
        vec![(x, -90.0)],
        vec![(x, -92.0)],
        vec![(x, -92.0), (y, -80.5)],
        vec![(x, -92.0), (y, -82.0)],
        vec![(y, -83.0)], // a was measured, its power is missing
        vec![],           // and b reports no cell
        vec![("a/1/z", -100.0)],
    ];
    let found = heard(&m);
    let found: Vec<Vec<(&str, f64)>> = found
        .iter()
        .map(|s| s.iter().map(|(n, d)| (&**n, *d)).collect())
        .collect();
    assert_eq!(found, expected);
}

/// Two passes over the same 50 s: none is heard in the other's seconds.
#[test]
fn a_clock_that_was_set_back_goes_on() {
    let passes = |second: u32| {
        let mut text = String::from("time_s,operator,cell,rsrp_dbm\n");
        for (cell, from) in [("x", 100), ("y", second)] {
            for t in from..from + 50 {
                text += &format!("{t},a,{cell},-90\n{t},b,{cell},-80\n");
            }
        }
        read(&text).unwrap()
    };
    // 29 s back are rows that were written late; 99 s are another clock.
    assert_eq!(passes(120).seconds.len(), 70);
    let m = passes(50);
    assert_eq!(kinds(&m.flaws), [(FlawKind::ClockJump, 2, 102)]);
    assert_eq!(m.flaws[0].longest_s, Some(99.0));
    let cells: Vec<_> = m.seconds.iter().map(|s| s.heard.len()).collect();
    assert_eq!(cells, [2; 100]);
}

#[test]
fn a_repeated_line_of_two_cells_is_one() {
    const H: &str = "Timestamp,Operatorname,RAWCELLID,NetworkMode,RSRP,NRxRSRP,DL_bitrate\n";
    let rows = |neighbours: [i32; 2]| {
        let row = |n| format!("2019.12.14_10.16.30,B,11,LTE,-90,{n},1\n");
        format!("{H}{}", neighbours.map(row).concat())
    };
    assert_eq!(
        kinds(&read(&rows([-99, -99])).unwrap().flaws),
        [(FlawKind::Repeated, 1, 3)]
    );
    assert_eq!(
        kinds(&read(&rows([-99, -98])).unwrap().flaws),
        [(FlawKind::Conflicting, 1, 3)]
    );
}

#[test]
fn holds_an_operator_for_30_s() {
    let mut text = String::from("time_s,operator,cell,rsrp_dbm\n0,b,y,-80\n1,b,y,-80\n");
    for t in 0..60 {
        text += &format!("{t},a,x,-90\n");
    }
    let m = read(&text).unwrap();
    let with_b = m.seconds.iter().filter(|s| s.heard.len() == 2).count();
    assert_eq!((m.seconds.len(), with_b), (60, 32));
}

#[test]
fn says_where_and_what() {
    const H: &str = "time_s,operator,carrier,cell,rsrp_dbm\n";
    const U: &str = "Timestamp,Operatorname,RAWCELLID,NetworkMode,RSRP,DL_bitrate\n";
    for (text, line, says) in [
        (
            format!("{H}0,a,1,x\n"),
            Some(2),
            "4 fields in this line: expected 5",
        ),
        (
            format!("{H}soon,a,1,x,-90\n"),
            Some(2),
            "\"soon\" is not a time",
        ),
        (format!("{H}-1,a,1,x,-90\n"), Some(2), "is not a time"),
        (
            format!("{H}0,a,1,x,loud\n"),
            Some(2),
            "\"loud\" is not a number: expected dBm",
        ),
        (format!("{H}0,a,1,x,inf\n"), Some(2), "not a number"),
        (H.to_owned(), None, "no cell"),
        (format!("{H}0,a,1,x,-\n"), None, "no cell"),
        (
            format!("{U}2019.12.14 10:16,B,1,5G,-99,7\n"),
            Some(2),
            "expected as in 2019",
        ),
        (
            format!("{U}2019.12.14_10.16.30,B,1,5G,far,7\n"),
            Some(2),
            "\"far\"",
        ),
        (
            format!("{U}2019.12.14_10.16.30,B,1,HSPA+,-99,7\n"),
            None,
            "no cell",
        ),
    ] {
        let e = read(&text).unwrap_err();
        assert!(e.line == line && e.msg.contains(says), "{text:?}: {e:?}");
    }
    let many = (0..300)
        .map(|i| format!("0,op{i},1,x,-90\n"))
        .collect::<String>();
    let e = read(&(H.to_owned() + &many)).unwrap_err();
    assert!(e.msg.contains("more than 256 operators"), "{e}");
    assert_eq!(SignalFormat::detect(b"t_s,nr_mbps\n0,1\n"), None);
    assert_eq!(SignalFormat::detect(b"\xff\xfe"), None);
    let e = parse(b"time,cell\n0,x\n", SignalFormat::Signal).unwrap_err();
    assert!(e.msg.contains("rsrp_dbm"), "{e}");
}

proptest! {
    /// Reads back what was written, silence included.
    #[test]
    fn csv_round_trips(seed in 0u64..1000, seconds in 2u32..90) {
        let m = drive(&DriveSpec::shipped(), seed, seconds).unwrap();
        let mut text = Vec::new();
        write::csv(&m, &["a\nb".to_owned()], &mut text).unwrap();
        let back = parse(&text, SignalFormat::Signal);
        if m.cells.is_empty() {
            prop_assert!(back.is_err());
        } else {
            let back = back.unwrap();
            prop_assert!(back.flaws.is_empty(), "{:?}", back.flaws);
            prop_assert_eq!(heard(&back), heard_by_name(&m, &back));
            let model = CapacityModel::default();
            let rates = |m: &Measurements| -> Vec<_> {
                m.paths(&model).seconds.iter().map(|n| n.multipath()).collect()
            };
            prop_assert_eq!(rates(&back), rates(&m));
        }
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for f in SignalFormat::ALL {
            let _ = parse(&bytes, f);
        }
    }

    /// Text that is nearly a recording goes deeper than random bytes.
    #[test]
    fn near_recordings_never_panic(
        header in prop::sample::select(vec![
            "time_s,operator,carrier,cell,rsrp_dbm\n",
            "Timestamp,Operatorname,RAWCELLID,NetworkMode,RSRP\n",
        ]),
        rows in prop::collection::vec(
            "([0-9]{1,11}|2020-01-0[1-9]T00:00:00Z|-|9e[0-9]{1,2}),[ab-]?,[12]?,[xyz-]?,(-[0-9]{1,3}|-|9e9|)\n",
            0..20,
        ),
    ) {
        let text = header.to_owned() + &rows.concat();
        for f in SignalFormat::ALL {
            if let Ok(m) = parse(text.as_bytes(), f) {
                prop_assert!(!m.seconds.is_empty());
                let paths = m.paths(&CapacityModel::default());
                for now in &paths.seconds {
                    prop_assert!(now.paths.len() <= m.carriers.len());
                    prop_assert!(now.paths.is_sorted_by_key(|p| std::cmp::Reverse(p.rate)));
                }
            }
        }
    }
}

/// Cells of `m`, in the order in which `back` first saw them.
fn heard_by_name(m: &Measurements, back: &Measurements) -> Vec<Vec<(String, f64)>> {
    let order = |name: &String| (0..back.cells.len()).position(|c| back.cell_name(c) == *name);
    let mut all = heard(m);
    for second in &mut all {
        second.sort_by_key(|(name, _)| order(name));
    }
    all
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
    Some(entries.map(|e| e.unwrap().path()).collect())
}

#[test]
fn shared_5g_production() {
    for path in shared("5g-production").unwrap_or_default() {
        let m = super::read(&path, None).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(m.operators, ["B"]);
        assert!(m.carriers.iter().all(|c| ["5G", "LTE"].contains(&&*c.name)));
        let paths = m.paths(&CapacityModel::default());
        let s = super::super::cells::statistics(&paths, "all");
        assert!(s.available_mean > 0.3 && s.available_mean <= 2.0, "{s:?}");
        assert!(s.visible_mean >= s.available_mean);
        let best = &s.levels[1];
        assert!((1.0..112.0).contains(&best.mean_mbps), "{best:?}");
        // The drive that docs/signals.md tells of.
        if path.ends_with("Download_Driving_B_2019.12.14_10.16.30.csv") {
            assert_eq!((s.seconds, (best.mean_mbps * 10.0).round()), (1163, 412.0));
            let counts: Vec<_> = m.flaws.iter().map(|f| f.count).collect();
            assert_eq!(counts, [137, 63, 17, 3, 433]);
        }
    }
}
