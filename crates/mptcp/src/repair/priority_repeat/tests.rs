use super::*;
use proptest::prelude::*;

fn a(k: u8) -> IpAddr {
    IpAddr::from([10, 77, k, 2])
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn on(k: u8, backup: bool, received: u64) -> Subflow {
    Subflow {
        token: 1,
        ends: ((a(k), 4000).into(), ([10, 77, 0, 1], 80).into()),
        backup,
        received,
    }
}

/// Two accesses with the rates in bytes per ms that are received while both are asked for as
/// they are: what was done, and when.
fn run(backup: [bool; 2], rates: [u64; 2], ms: u64) -> Vec<(u64, u8, Remedy)> {
    let endpoints = BTreeMap::from([(a(1), backup[0]), (a(2), backup[1])]);
    let mut u = PriorityRepeat::default();
    u.asked(a(1), backup[0], at(0));
    let mut done = Vec::new();
    for t in (0..ms).step_by(250) {
        let subflows = [1, 2].map(|k| {
            let i = usize::from(k) - 1;
            on(k, backup[i], t * rates[i])
        });
        for (address, remedy) in u.check(&endpoints, &subflows, at(t)) {
            let k = if address == a(1) { 1 } else { 2 };
            done.push((t, k, remedy));
        }
    }
    done
}

#[test]
fn what_was_heard_is_let_alone() {
    assert_eq!(run([true, false], [0, 1000], 20_000), []);
    assert_eq!(run([false, false], [100, 1000], 20_000), []);
    assert_eq!(run([false, true], [1000, 0], 20_000), []);
    // Nobody sends, or the other does not carry either.
    assert_eq!(run([true, false], [0, 0], 20_000), []);
    assert_eq!(run([true, false], [1000, 0], 20_000), []);
}

#[test]
fn what_goes_on_over_a_backup_is_asked_for_again_a_few_times() {
    use Remedy::{Repeat, Replace};
    let thrice = [(1000, 1, Repeat), (2500, 1, Repeat), (5000, 1, Replace)];
    assert_eq!(run([true, false], [900, 1000], 60_000), thrice);
    // Nothing on what is to carry, all on what is to rest.
    assert_eq!(run([false, true], [0, 1000], 60_000), thrice);
    let kept = thrice.map(|(t, k, _)| (t, k, Repeat));
    // It may be the other that was not heard of.
    assert_eq!(run([false, true], [500, 500], 60_000), kept);
    // One may be enough: its subflow is let live.
    assert_eq!(run([false, false], [0, 1000], 60_000), kept);
}

#[test]
fn a_subflow_without_the_flag_joins_again() {
    let endpoints = BTreeMap::from([(a(1), true), (a(2), false)]);
    let mut u = PriorityRepeat::default();
    let wrong = [on(1, false, 0), on(2, false, 0)];
    let right = [on(1, true, 0), on(2, false, 0)];
    assert_eq!(u.check(&endpoints, &wrong, at(0)), []);
    assert_eq!(u.check(&endpoints, &right, at(250)), []);
    assert_eq!(
        u.check(&endpoints, &wrong, at(500)),
        [(a(1), Remedy::Replace)]
    );
    assert_eq!(u.check(&endpoints, &wrong, at(750)), []);
    // What has no endpoint is none of ours.
    assert_eq!(u.check(&BTreeMap::new(), &wrong, at(9000)), []);
    assert!(u.entries.is_empty());
}

#[test]
fn each_connection_is_asked() {
    let endpoints = BTreeMap::from([(a(1), true), (a(2), false)]);
    let mut u = PriorityRepeat::default();
    u.asked(a(1), true, at(0));
    let of = |token, s: Subflow| Subflow { token, ..s };
    let mut done = Vec::new();
    for t in (0..3000).step_by(250) {
        let all = [
            of(1, on(1, true, 0)),
            of(1, on(2, false, 1000 * t)),
            of(2, on(1, true, 1000 * t)),
            of(2, on(2, false, 1000 * t)),
        ];
        done.extend(u.check(&endpoints, &all, at(t)));
    }
    assert_eq!((done[0], done.len()), ((a(1), Remedy::Repeat), 2));
    assert!(!u.gave_up(a(1)));
    for t in (3000..12_000).step_by(250) {
        let all = [on(1, true, 1000 * t), on(2, false, 1000 * t)];
        u.check(&endpoints, &all, at(t));
    }
    assert!(u.gave_up(a(1)) && !u.gave_up(a(2)));
    u.asked(a(1), true, at(12_000));
    assert!(!u.gave_up(a(1)));
}

proptest! {
    #[test]
    fn attempts_are_few(
        steps in prop::collection::vec((any::<[bool; 4]>(), 0u64..2_000_000, 1u64..2000), 0..200),
    ) {
        let mut u = PriorityRepeat::default();
        let endpoints = BTreeMap::from([(a(1), true), (a(2), false)]);
        let (mut t, mut sums, mut tries) = (0, [0; 2], 0);
        u.asked(a(1), true, at(0));
        for (which, bytes, dt) in steps {
            t += dt;
            sums[0] += u64::from(which[0]) * bytes;
            sums[1] += u64::from(which[1]) * bytes;
            let all = [on(1, true, sums[0]), on(2, false, sums[1])];
            let some = &all[..1 + usize::from(which[2])];
            tries += u.check(&endpoints, some, at(t)).len();
        }
        prop_assert!(tries <= 3, "{tries}");
    }
}
