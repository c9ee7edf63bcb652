use std::path::Path;
use std::time::Duration;

use braid_api::Engine;
use braid_core::journal::{Entry, Reader};
use braid_core::replay::replay;

use super::*;

const ROUND: u64 = 100_000_000;

fn config(policy: &str, more: &str, folder: &Path) -> Config {
    let path = folder.join("braid.toml");
    let text = format!(
        "[control]\npolicy = \"{policy}\"\n{more}\n[access.nr]\naddress = \"10.77.1.2\"\n\
         [access.wifi]\naddress = \"10.77.2.2\"\n"
    );
    std::fs::write(&path, text).unwrap();
    Config::load(&path, Role::Proxy).unwrap()
}

fn at(round: u64) -> Time {
    Time::from_nanos(1_000_000_000 + round * ROUND)
}

fn control(config: &Config) -> Control {
    Control::new(Role::Proxy, config, at(0))
}

/// Look in round `n` at two paths that are full all the time, of these bytes a round.
fn look(n: u64, bytes: [u64; 2]) -> Look {
    look_at(n, bytes.map(|b| n * b))
}

/// Look in round `n` at two paths that are full all the time and have delivered so much.
fn look_at(n: u64, delivered: [u64; 2]) -> Look {
    let names = ["nr", "wifi"];
    let path = |(i, name): (usize, &&str)| Reading {
        key: Key::Path(1, i as u32),
        access: (*name).to_owned(),
        delivered_bytes: delivered[i],
        lost_bytes: 0,
        in_flight_bytes: 0,
        queued_bytes: 0,
        evidence: Evidence::Quic {
            waited: Duration::from_nanos(n * ROUND),
            full: Duration::from_nanos(n * ROUND),
        },
        delivery_rate: None,
        srtt: None,
        min_rtt: None,
    };
    Look {
        paths: names.iter().enumerate().map(path).collect(),
        states: names
            .map(|n| (n.to_owned(), Some(AccessState::Active)))
            .to_vec(),
    }
}

/// Bytes of 100 and of 25 Mbit/s in a round.
const CAPACITIES: [u64; 2] = [1_250_000, 312_500];

fn run(control: &Control, rounds: std::ops::Range<u64>) -> Vec<BTreeMap<String, f64>> {
    let sample = |n| Some(control.sample(at(n), look(n, CAPACITIES)).0?.weights);
    rounds.filter_map(sample).collect()
}

#[test]
fn weights_become_the_capacities_of_the_accesses() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(&config("capacity", "", folder.path()));
    assert!(control.decides() && control.samples());
    let decided = run(&control, 1..12);
    let last = decided.last().expect("a decision");
    assert_eq!(*last, [("nr".into(), 100.0), ("wifi".into(), 25.0)].into());
    let report = control.report(at(14));
    assert_eq!(
        (report.policy.as_str(), report.direction.as_str()),
        ("capacity", "down")
    );
    let nr = &report.accesses[0];
    assert_eq!((nr.capacity_mbps, nr.weight), (Some(100.0), Some(100.0)));
    assert_eq!(
        (nr.estimator.as_deref(), nr.at_least),
        (Some("passive"), false)
    );
    assert_eq!(
        (nr.age_ms, nr.limited_by.as_deref()),
        (Some(300), Some("nothing"))
    );
    assert!(report.why.unwrap().contains("carries"));
    // An operator's wish takes its place below the estimates, and 0 above them.
    let wish = Request::Weights([("wifi".to_owned(), 0.0)].into());
    let weights = control.request(wish, at(15)).unwrap().weights;
    assert_eq!(weights, [("nr".into(), 100.0), ("wifi".into(), 0.0)].into());
    // Read again, requests end.
    let again = control.configure(&config("capacity", "", folder.path()), at(16));
    assert_eq!(again.map(|d| d.weights), Some(last.clone()));
    let other = SchedulerChange {
        name: Some("default".into()),
        ..SchedulerChange::default()
    };
    assert!(matches!(
        control.allows(&other),
        Err(DaemonError::Refused(_))
    ));
}

#[test]
fn the_default_samples_nothing_and_decides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(&config("static", "", folder.path()));
    assert!(!control.decides() && !control.samples());
    let wish = Request::Weights([("nr".to_owned(), 7.0)].into());
    assert_eq!(control.request(wish, at(1)), None);
    let report = control.report(at(2));
    assert_eq!((report.why, report.accesses[0].weight), (None, None));
    assert!(control.allows(&SchedulerChange::default()).is_ok());
}

#[test]
fn samples_follow_the_traffic() {
    let folder = tempfile::tempdir().unwrap();
    let control = control(&config("capacity", "", folder.path()));
    let pace = |n, look| control.sample(at(n), look).1;
    assert_eq!(pace(1, Look::default()), Pace::Rest);
    assert_eq!(pace(2, look(2, CAPACITIES)), Pace::Traffic);
    assert_eq!(pace(3, look(3, CAPACITIES)), Pace::Traffic);
    let quiet: Vec<Pace> = (4..20).map(|n| pace(n, look(3, CAPACITIES))).collect();
    assert_eq!(quiet[8], Pace::Traffic, "a second longer");
    assert_eq!(quiet[9..], [Pace::Idle; 7]);
    assert_eq!(pace(20, look(20, CAPACITIES)), Pace::Traffic);
}

#[test]
fn an_access_without_paths_is_lost_after_a_while() {
    // Beside one that carries, and beside a backup, of which nothing is sampled.
    for beside in [AccessState::Active, AccessState::Backup] {
        let folder = tempfile::tempdir().unwrap();
        let control = control(&config("capacity", "", folder.path()));
        run(&control, 1..12);
        let without = |n| {
            let mut look = look(n, CAPACITIES);
            look.paths
                .truncate(usize::from(beside == AccessState::Active));
            look.states[0].1 = Some(beside);
            look.states[1].1 = None;
            control.sample(at(n), look)
        };
        let known = || control.report(at(40)).accesses[1].capacity_mbps.is_some();
        (12..21).for_each(|n| drop(without(n)));
        assert!(known());
        without(21);
        assert!(!known(), "it may return as another");
    }
}

fn entries(path: &Path) -> (Header, Vec<Entry>) {
    let text = std::fs::read(path).unwrap();
    let reader = Reader::new(&text[..]).unwrap();
    let header = reader.header().clone();
    (header, reader.map(Result::unwrap).collect())
}

#[test]
fn a_journal_is_replayed_without_a_difference_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let more = format!(
        "journal = {:?}\njournal_bytes = 65536",
        path.to_str().unwrap()
    );
    let control = control(&config("capacity", &more, folder.path()));
    let wish = Request::Weights([("nr".to_owned(), 2.0)].into());
    control.request(wish, at(0));
    let mut delivered = [0, 0];
    for n in 1..2_000 {
        let mut bytes = CAPACITIES;
        // Lines are flushed at decisions: these are reasons for some.
        if n / 50 % 2 == 1 {
            bytes.reverse();
        }
        delivered = [delivered[0] + bytes[0], delivered[1] + bytes[1]];
        control.sample(at(n), look_at(n, delivered));
    }
    drop(control);
    for path in [path.clone(), journal::old(&path)] {
        let (header, entries) = entries(&path);
        assert_eq!((header.role, header.engine), (Role::Proxy, Engine::Mptcp));
        assert!(entries.iter().any(|e| matches!(e, Entry::Decision(_))));
        assert_eq!(replay(&header, &entries, None).unwrap(), vec![], "{path:?}");
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert!(bytes < 2 * 65_536, "{bytes}");
    }
    let (_, first) = entries(&path);
    let wish = |e: &Entry| matches!(e, Entry::Observation(o) if matches!(o.what, What::Request(_)));
    assert!(first.iter().any(wish), "requests in force are told again");
}

#[test]
fn a_journal_that_cannot_be_written_is_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let more = "journal = \"/nonexistent/journal\"";
    let control = control(&config("capacity", more, folder.path()));
    let notes = control.notes();
    assert!(
        notes[0].contains("/nonexistent/journal is not written"),
        "{notes:?}"
    );
    assert!(!run(&control, 1..12).is_empty(), "it decides all the same");
    // Mended in the file.
    let path = folder.path().join("j");
    let more = format!("journal = {:?}", path.to_str().unwrap());
    control.configure(&config("capacity", &more, folder.path()), at(13));
    assert!(control.notes().is_empty() && path.is_file());
}

/// A policy that lets radios rest is told what they carry, and a wish for a backup is no rest.
#[test]
fn what_rests_is_told_apart_from_what_people_wish() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("braid.toml");
    let text = "[control]\npolicy = \"energy\"\n\
                [access.nr]\ninterface = \"d1\"\npower = \"sigcomm21-lte\"\n\
                [access.wifi]\ninterface = \"d2\"\npower = \"ns3-wifi\"\n";
    std::fs::write(&path, text).unwrap();
    let config = Config::load(&path, Role::Device).unwrap();
    let control = Control::new(Role::Device, &config, at(0));
    control.sample(at(1), look(1, [0, 0]));
    let carried = |n, mbps| {
        let rate = PerDirection {
            down: Rate::from_mbps(mbps),
            up: Rate::ZERO,
        };
        let decided = control.observe_carried(at(n), [("wifi".to_owned(), rate)].into());
        decided.map(|d| d.resting.into_iter().collect::<Vec<_>>())
    };
    let rests = |a: &str| {
        let report = control.report(at(99));
        let mut all = report.accesses.into_iter();
        all.find(|x| x.name == a).unwrap().rests
    };
    assert_eq!(carried(2, 0.1), None, "the sample before has decided");
    assert!(rests("nr") && !rests("wifi"));
    // Full for two seconds, as far as anybody knows.
    let decided: Vec<_> = (1..6).filter_map(|s| carried(10 * s, 20.0)).collect();
    assert_eq!(decided, [Vec::<String>::new()]);
    let wish = |backup| {
        let access = "nr".to_owned();
        let decided = control.request(Request::Backup { access, backup }, at(70));
        decided.unwrap().resting
    };
    assert!(wish(true).is_empty() && !rests("nr"));
}
