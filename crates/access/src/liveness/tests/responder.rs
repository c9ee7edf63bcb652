//! Whoever answers probes goes away: that is not the paths' fault.

use super::*;

/// Fate of a probe.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Answered,
    Refused,
    Lost,
}

const RTTS: [u64; 3] = [10, 30, 80];

/// Idle paths, whose probes come to what `fate` says, by path and millisecond. Returns what
/// was found: silent or not, which path, when. Data comes only on what is `flowing`: by time
/// and those that are silent, the longest first.
fn run(
    until_ms: u64,
    fate: impl Fn(usize, u64) -> Fate,
    flowing: impl Fn(u64, &[usize]) -> Option<usize>,
) -> Vec<(bool, usize, u64)> {
    let mut d = Detector::default();
    let start = Time::from_nanos(1_000_000_000_000);
    d.watch(&(0..RTTS.len()).map(|k| address(k as u8)).collect(), start);
    let mut coming: Vec<(Time, usize, u32, Fate)> = vec![];
    let mut life = [start; RTTS.len()];
    let (mut silent, mut found) = (vec![], vec![]);
    let mut t = start;
    while t.since(start) < ms(until_ms) {
        let at = t.since(start).as_millis() as u64;
        for (_, k, number, fate) in coming.extract_if(.., |c| c.0 <= t) {
            match fate {
                Fate::Refused => d.refused(address(k as u8), t),
                _ => assert!(d.answer(address(k as u8), number, t).is_some() || at > 5_000),
            }
        }
        if let Some(k) = flowing(at, &silent) {
            life[k] = t;
        }
        if d.due() <= t {
            let sample = |k: usize| Sample {
                subflows: 1,
                quiet: t.since(life[k]),
                ..Sample::default()
            };
            // The last of the silent ones is kept, others have no subflows.
            let kept = |k: &usize| !silent.contains(k) || silent.len() == 3 && silent[2] == *k;
            let samples = (0..RTTS.len()).filter(kept);
            let samples = samples.map(|k| (address(k as u8), sample(k))).collect();
            d.sample(&samples, t);
            for o in d.tick(t) {
                let of = |a| (0..RTTS.len()).find(|k| address(*k as u8) == a).unwrap();
                match o {
                    Outcome::Probe { address, number } => {
                        let k = of(address);
                        let fate = fate(k, at);
                        if fate != Fate::Lost {
                            coming.push((t + ms(RTTS[k]), k, number, fate));
                        }
                    }
                    Outcome::TcpProbe { .. } => panic!("nothing leads anywhere"),
                    Outcome::Silent { address } => {
                        silent.push(of(address));
                        found.push((true, of(address), at));
                    }
                    Outcome::Alive { address } => {
                        silent.retain(|k| *k != of(address));
                        found.push((false, of(address), at));
                    }
                }
            }
        }
        t += ms(1);
    }
    found
}

#[test]
fn idle_paths_come_back_with_the_first_data_though_nobody_answers() {
    let fate = |_, at| [Fate::Lost, Fate::Answered][usize::from(at < 5_000)];
    // Nothing flows for a while, then some data each 200 ms where there still is a subflow.
    let flowing = |at: u64, silent: &[usize]| {
        (at > 20_000 && at.is_multiple_of(200)).then(|| silent.last().copied().unwrap_or(0))
    };
    let found = run(40_000, fate, flowing);
    let [(true, ..), (true, ..), (true, ..), back @ ..] = &found[..] else {
        panic!("{found:?}");
    };
    let [(false, _, a), (false, _, b), (false, _, c)] = back else {
        panic!("one stays out, or goes again: {found:?}");
    };
    assert!([a, b, c].iter().all(|at| **at < 22_500), "{found:?}");
}

#[test]
fn paths_are_kept_where_a_host_says_that_nobody_listens() {
    // On the other paths that is lost.
    let fate = |k, at| match (k, at < 5_000) {
        (_, true) => Fate::Answered,
        (1, false) => Fate::Refused,
        _ => Fate::Lost,
    };
    assert_eq!(run(30_000, fate, |_, _| None), []);
}

#[test]
fn a_path_that_refuses_while_others_answer_blinds_nobody() {
    let fate = |k, at| match (k, at) {
        (0, 5_000..) => Fate::Refused,
        (1, 9_000..) => Fate::Lost,
        _ => Fate::Answered,
    };
    let found = run(20_000, fate, |_, _| None);
    let [(true, 1, at)] = found[..] else {
        panic!("{found:?}");
    };
    assert!((9_000..10_500).contains(&at), "{at}");
}

#[test]
fn what_comes_while_a_path_dies_and_returns_is_no_sign_that_nobody_answers() {
    let dead = |at| (5_000..8_000).contains(&at);
    let fate = |k, at| match (k, dead(at)) {
        (1, true) => Fate::Lost,
        _ => Fate::Answered,
    };
    // An acknowledgement just after it was given up, and data as soon as it is back.
    let flowing = |at: u64, _: &[usize]| {
        let flows = (3_000..8_000).contains(&at) && at.is_multiple_of(20) && !dead(at);
        (flows || at == 5_250 || at >= 8_000).then_some(1)
    };
    let found = run(12_000, fate, flowing);
    let [(true, 1, _), (false, 1, back)] = found[..] else {
        panic!("{found:?}");
    };
    assert!((8_000..8_300).contains(&back), "{back}");
}

#[test]
fn a_responder_that_goes_takes_no_path_with_it() {
    let mut d = Detector::default();
    let start = Time::from_nanos(1_000_000_000_000);
    d.watch(&BTreeSet::from([address(0)]), start);
    let mut t = start;
    while t.since(start) < ms(20_000) {
        let at = t.since(start);
        // Data comes in bursts, so that probes are sent between them.
        let sample = Sample {
            subflows: 1,
            quiet: ms(at.as_millis() as u64 % 90),
            ..Sample::default()
        };
        d.sample(&BTreeMap::from([(address(0), sample)]), t);
        for o in d.tick(t) {
            match o {
                Outcome::Probe { number, .. } if at < ms(5_000) => {
                    d.answer(address(0), number, t + ms(5));
                }
                Outcome::Probe { .. } => {}
                other => panic!("{other:?} at {at:?}"),
            }
        }
        t = d.due();
    }
}
