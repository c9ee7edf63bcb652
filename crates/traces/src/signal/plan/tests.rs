use proptest::prelude::*;

use super::super::delay::DelayModel;
use super::super::paths::{Now, Path, PathCell, Paths};
use super::*;

/// Two operators with two carriers each; two cells on each carrier.
fn paths(seconds: &[Vec<(usize, f64)>]) -> Paths {
    let cell = |i: usize| PathCell {
        operator: ["a", "b"][i / 4].into(),
        carrier: (i / 2).to_string(),
        cell: format!("c{i}"),
        channel: i / 2,
        operator_index: i / 4,
    };
    let now = |rates: &Vec<(usize, f64)>| {
        let path = |&(cell, mbps): &(usize, f64)| Path {
            cell,
            rate: Rate::from_mbps(mbps),
        };
        let mut heard: Vec<Path> = rates.iter().map(path).collect();
        heard.sort_by_key(|p| (std::cmp::Reverse(p.rate), p.cell));
        let mut paths: Vec<Path> = Vec::new();
        for p in &heard {
            if paths.iter().all(|q| q.cell / 2 != p.cell / 2) {
                paths.push(*p);
            }
        }
        Now {
            paths,
            heard,
            segment: None,
        }
    };
    Paths {
        operators: vec!["a".into(), "b".into()],
        cells: (0..8).map(cell).collect(),
        segments: Vec::new(),
        seconds: seconds.iter().map(now).collect(),
    }
}

fn make(p: &Paths, case: Case, h: &Handover) -> Plan {
    plan(p, case, h, &DelayModel::default()).unwrap()
}

/// Milliseconds, interface, and what it is in.
fn story(plan: &Plan) -> Vec<(u64, usize, String)> {
    let tell = |r: &Row| {
        let state = match &r.state {
            State::Up(a) => format!("{} {} @{}", a.cell, a.rate.as_mbps(), a.address),
            State::Handover(a) => format!("to {} @{}", a.cell, a.address),
            State::Down => "down".to_owned(),
        };
        (r.at.as_millis() as u64, r.interface, state)
    };
    plan.rows.iter().map(tell).collect()
}

fn expect(plan: &Plan, rows: &[(u64, usize, &str)]) {
    let rows: Vec<_> = rows
        .iter()
        .map(|(t, i, s)| (*t, *i, (*s).to_owned()))
        .collect();
    assert_eq!(story(plan), rows);
}

#[test]
fn the_ideal_is_always_on_the_best() {
    let p = paths(&[
        vec![(0, 10.0), (4, 20.0)],
        vec![(0, 21.0), (4, 20.0)],
        vec![],
        vec![(6, 1.0)],
    ]);
    let plan = make(&p, Case::SinglePath, &Handover::default());
    expect(
        &plan,
        &[
            (0, 1, "c4 20 @1"),
            (1000, 1, "c0 21 @1"),
            (2000, 1, "down"),
            (3000, 1, "c6 1 @1"),
        ],
    );
    let s = summary(&plan);
    assert_eq!((s.mean_mbps, s.handovers, s.new_addresses), (10.5, 2, 0));
    assert_eq!((s.length_s, s.disconnected_s), (4.0, 1.0));
}

#[test]
fn handovers_wait_interrupt_and_change_addresses() {
    let p = paths(&[
        vec![(0, 10.0), (4, 9.0)],
        vec![(0, 10.0), (4, 12.0)], // not 25 % more
        vec![(0, 10.0), (4, 13.0)], // since now
        vec![(0, 10.0), (4, 13.0)], // a second long
        vec![(0, 30.0), (1, 40.0), (4, 13.0)],
        vec![(1, 40.0)], // its cell is lost
    ]);
    let h = Handover::default();
    expect(
        &make(&p, Case::Interfaces(1), &h),
        &[
            (0, 1, "c0 10 @1"),
            (3000, 1, "to c4 @2"),
            (3050, 1, "c4 13 @2"),
            (5000, 1, "to c1 @3"),
            (5050, 1, "c1 40 @3"),
        ],
    );
    let seamless = Handover {
        hysteresis: 0.0,
        time_to_trigger: Duration::ZERO,
        interruption: Duration::ZERO,
        new_address: NewAddress::Operator,
    };
    expect(
        &make(&p, Case::Interfaces(1), &seamless),
        &[
            (0, 1, "c0 10 @1"),
            (1000, 1, "c4 12 @2"),
            (2000, 1, "c4 13 @2"),
            (4000, 1, "c1 40 @3"),
        ],
    );
    let slow = Handover {
        interruption: Duration::from_millis(1500),
        new_address: NewAddress::Never,
        ..h
    };
    let plan = make(&p, Case::Interfaces(1), &slow);
    // At 5 s the cell is lost again, and the recording ends before it is back.
    expect(
        &plan,
        &[
            (0, 1, "c0 10 @1"),
            (3000, 1, "to c4 @1"),
            (4500, 1, "c4 13 @1"),
            (5000, 1, "to c1 @1"),
        ],
    );
    let s = summary(&plan);
    assert!((s.mean_mbps - (30.0 + 6.5) / 6.0).abs() < 1e-9, "{s:?}");
    assert!((s.disconnected_s - 2.5).abs() < 1e-9, "{s:?}");
}

#[test]
fn interfaces_share_no_carrier() {
    // Both cells of carrier 0 are better than anything else.
    let p = paths(&vec![vec![(0, 50.0), (1, 40.0), (4, 5.0)]; 3]);
    let plan = make(&p, Case::Interfaces(3), &Handover::default());
    expect(
        &plan,
        &[(0, 1, "c0 50 @1"), (0, 2, "c4 5 @1"), (0, 3, "down")],
    );
}

#[test]
fn names_of_cases_and_bad_parameters() {
    for case in Case::PAPER {
        assert_eq!(case.to_string().parse::<Case>().unwrap(), case);
    }
    for bad in ["0", "9", "SP", "", "-1"] {
        assert!(
            bad.parse::<Case>()
                .unwrap_err()
                .contains("expected sp or 1 to 8")
        );
    }
    let p = paths(&[vec![(0, 1.0)]]);
    for h in [
        Handover {
            hysteresis: f64::NAN,
            ..Handover::default()
        },
        Handover {
            interruption: Duration::from_secs(61),
            ..Handover::default()
        },
    ] {
        assert!(plan(&p, Case::SinglePath, &h, &DelayModel::default()).is_err());
    }
    let none = plan(
        &Paths::default(),
        Case::SinglePath,
        &Handover::default(),
        &DelayModel::default(),
    );
    assert!(none.is_err());
}

fn recording() -> impl Strategy<Value = Paths> {
    let second = prop::collection::btree_map(0usize..8, 0.1f64..100.0, 0..8);
    let seconds = prop::collection::vec(second.prop_map(|m| m.into_iter().collect()), 1..60);
    seconds.prop_map(|s: Vec<Vec<(usize, f64)>>| paths(&s))
}

fn handover() -> impl Strategy<Value = Handover> {
    let address = prop::sample::select(vec![
        NewAddress::Never,
        NewAddress::Operator,
        NewAddress::Cell,
    ]);
    (0.0f64..2.0, 0u64..5000, 0u64..4000, address).prop_map(
        |(hysteresis, ttt, gap, new_address)| Handover {
            hysteresis,
            time_to_trigger: Duration::from_millis(ttt),
            interruption: Duration::from_millis(gap),
            new_address,
        },
    )
}

proptest! {
    #[test]
    fn plans_keep_to_what_there_is(p in recording(), h in handover(), n in 1usize..5) {
        let made = make(&p, Case::Interfaces(n), &h);
        let mut now: Vec<Option<&State>> = vec![None; n];
        for r in &made.rows {
            prop_assert!(r.at < made.length);
            // A row is a change.
            prop_assert_ne!(now[r.interface - 1], Some(&r.state));
            now[r.interface - 1] = Some(&r.state);
            let State::Up(a) = &r.state else { continue };
            let second = &p.seconds[r.at.as_secs() as usize];
            let cell = p.cells.iter().position(|c| c.cell == a.cell).unwrap();
            prop_assert_eq!(second.rate_of(cell), Some(a.rate));
        }
        // At the end of every second no carrier is in use twice.
        for t in 0..p.seconds.len() as u64 {
            let mut used: Vec<&str> = Vec::new();
            for i in 1..=n {
                let until = Duration::from_secs(t + 1);
                let last = made.rows.iter().rfind(|r| r.interface == i && r.at < until);
                if let State::Up(a) | State::Handover(a) = &last.unwrap().state {
                    prop_assert!(!used.contains(&&*a.carrier));
                    used.push(&a.carrier);
                }
            }
        }
        let s = summary(&made);
        let count = p.seconds.len() as f64;
        let all = p.seconds.iter().map(|s| s.heard.iter().map(|h| h.rate.as_mbps()).fold(0.0, f64::max));
        let best = all.sum::<f64>() / count;
        prop_assert!(s.mean_mbps <= best * n as f64 + 1e-6);
        prop_assert!(s.new_addresses == 0 || h.new_address != NewAddress::Never);
        let ideal = summary(&make(&p, Case::SinglePath, &h));
        prop_assert!(n > 1 || s.mean_mbps <= ideal.mean_mbps + 1e-6);
    }

    #[test]
    fn files_round_trip(p in recording(), h in handover(), n in 1usize..5) {
        let made = make(&p, Case::Interfaces(n), &h);
        let mut text = Vec::new();
        write(&made, &["case\n2".to_owned()], &mut text).unwrap();
        prop_assert_eq!(parse(&text).unwrap(), made);
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn near_plans_never_panic(rows in prop::collection::vec(
        "[0-9]{1,9},[0-9]?,(up|down|handover|end|),a?,b?,c?,[0-9]{0,4},[0-9]{0,4},[0-9]{0,12}\n", 0..8,
    )) {
        let text = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address\n".to_owned();
        if let Ok(plan) = parse((text + &rows.concat()).as_bytes()) {
            prop_assert!(plan.interfaces >= 1);
            summary(&plan);
        }
    }
}

#[test]
fn times_of_any_epoch_count_from_the_first_row() {
    const H: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address\n";
    let at = |start: f64| {
        let rows = [(0.0, "up,a,b,c,1,2,1"), (5.25, "down,,,,,,")];
        let rows = rows.map(|(t, row)| format!("{},1,{row}\n", start + t));
        parse(format!("{H}{}{},,end,,,,,,\n", rows.concat(), start + 60.0).as_bytes()).unwrap()
    };
    assert_eq!(at(1_700_000_000.5), at(0.0));
    assert_eq!(at(0.0).rows[1].at, Duration::from_millis(5250));
}

#[test]
fn bad_files_are_refused_with_their_line() {
    const H: &str = "t_s,interface,state,operator,carrier,cell,rate_mbps,delay_ms,address\n";
    for (rows, line, says) in [
        ("0,1,up,a,b,c,1,2,1\n", None, "no end"),
        (
            "0,1,up,a,b,c,1,2,1\n0,,end,,,,,,\n",
            Some(3),
            "ends where it begins",
        ),
        (
            "1,1,up,a,b,c,1,2,1\n2,2,up,a,b,c,1,2,1\n9,,end,,,,,,\n",
            None,
            "interface 2 has no row at the first time",
        ),
        (
            "0,1,up,a,b,c,1,2,1\n2592001,,end,,,,,,\n",
            Some(3),
            "at most 30 days",
        ),
        (
            "0,2,up,a,b,c,1,2,1\n9,,end,,,,,,\n",
            None,
            "interface 1 has no row",
        ),
        ("0,9,down,,,,,,\n", Some(2), "1 to 8"),
        ("0,1,asleep,,,,,,\n", Some(2), "up, handover, down or end"),
        ("0,1,down,a,,,,,\n", Some(2), "nothing"),
        ("0,1,up,,b,c,1,2,1\n", Some(2), "name"),
        ("0,1,up,a,b,c,-1,2,1\n", Some(2), "Mbit/s"),
        ("0,1,up,a,b,c,1,NaN,1\n", Some(2), "milliseconds"),
        ("0,1,up,a,b,c,1,2,x\n", Some(2), "address"),
        (
            "5,1,down,,,,,,\n4,1,down,,,,,,\n",
            Some(3),
            "no time before",
        ),
        (
            "0,1,down,,,,,,\n9,,end,,,,,,\n9,1,down,,,,,,\n",
            Some(4),
            "after the end",
        ),
        ("0,1,down\n", Some(2), "3 fields"),
    ] {
        let e = parse(format!("{H}{rows}").as_bytes()).unwrap_err();
        assert!(e.line == line && e.msg.contains(says), "{rows:?}: {e:?}");
    }
    assert!(parse(b"x\n").unwrap_err().msg.contains("header"));
    assert!(parse(b"").is_err());
}
