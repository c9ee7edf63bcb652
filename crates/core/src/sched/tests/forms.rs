//! Forms of `redundant`, and active-standby without a standby.

use super::*;

const FORMS: [Redundant; 4] = [
    form(false, false),
    form(false, true),
    form(true, false),
    form(true, true),
];

const fn form(primary: bool, thresholds: bool) -> Redundant {
    Redundant {
        primary,
        thresholds,
    }
}

fn decide(mut form: Redundant, paths: &[PathView]) -> Decision {
    form.decide(at(0), &flow(1, 100), paths)
}

fn copies(on: &[usize]) -> Decision {
    Decision::Copies(on.iter().copied().collect())
}

/// Two paths, the first of the primary access; each is above its threshold or not.
fn two(exceeds: [bool; 2]) -> [PathView; 2] {
    let mut paths = [path(0, 10, 0, 50), path(1, 10, 0, 20)];
    paths[1].priority = 1;
    for (p, exceeds) in paths.iter_mut().zip(exceeds) {
        p.exceeds = exceeds;
    }
    paths
}

fn on(path: usize) -> Decision {
    Decision::Send { path, most: 14_000 }
}

#[test]
fn each_form_copies_when_ts_23_501_says() {
    let all = copies(&[0, 1]);
    for (exceeds, wanted) in [
        ([false, false], [all, on(1), all, on(0)]),
        ([true, false], [all, on(1), all, all]),
        ([false, true], [all, on(0), all, on(0)]),
        ([true, true], [all, all, all, all]),
    ] {
        let got = FORMS.map(|form| decide(form, &two(exceeds)));
        assert_eq!(got, wanted, "{exceeds:?}");
    }
}

#[test]
fn with_a_primary_all_goes_at_its_pace() {
    let mut full = two([true, false]);
    full[0].in_flight = full[0].window;
    let waits = Decision::Wait(Until::Room(0));
    assert_eq!(
        FORMS.map(|form| decide(form, &full)),
        [copies(&[1]), on(1), waits, waits]
    );
    // What the other has no room for it does without.
    let mut other = two([true, false]);
    other[1].in_flight = other[1].window;
    assert_eq!(
        FORMS.map(|form| decide(form, &other)),
        [
            copies(&[0]),
            Decision::Wait(Until::AnyRoom),
            copies(&[0]),
            copies(&[0])
        ]
    );
    // Without its access the others carry.
    let mut gone = two([false, true]);
    gone[0].usable = false;
    assert_eq!(FORMS.map(|form| decide(form, &gone)), [copies(&[1]); 4]);
}

#[test]
fn without_a_standby_nothing_leaves_on_another_access() {
    let mut paths = two([false, false]);
    confine(&mut paths);
    assert_eq!(paths.map(|p| p.usable), [true, false]);
    let mut paths = two([false, false]);
    paths[0].usable = false;
    confine(&mut paths);
    assert_eq!(paths.map(|p| p.usable), [false, false]);
    let decision = ActiveStandby.decide(at(0), &flow(1, 9), &paths);
    assert_eq!(decision, Decision::Wait(Until::Path));
    // A backup carries where nothing else is usable, and not beside another.
    for (other, usable) in [(true, false), (false, true)] {
        let mut paths = two([false, false]);
        (paths[0].backup, paths[1].usable) = (true, other);
        confine(&mut paths);
        assert_eq!(paths.map(|p| p.usable), [usable, false]);
    }
}

proptest! {
    #[test]
    fn every_decision_of_a_form_can_be_carried_out(paths in views()) {
        let backups = only_backups(&paths);
        let takes_part = |i: usize| takes_part(&paths[i], backups);
        let primary = (0..paths.len()).any(|i| takes_part(i) && paths[i].priority == 0);
        for form in FORMS {
            let leads = |i: usize| !(form.primary && primary) || paths[i].priority == 0;
            match decide(form, &paths) {
                Decision::Send { path, most } => {
                    prop_assert!(form.thresholds && takes_part(path) && leads(path));
                    prop_assert!(paths[path].has_room() && most == paths[path].room());
                    prop_assert!(!paths[path].exceeds || form.primary && primary);
                }
                Decision::Copies(set) => {
                    prop_assert!(set.iter().all(|i| takes_part(i) && paths[i].has_room()));
                    prop_assert!(set.iter().any(leads), "the primary has everything");
                    if form.thresholds {
                        let good = |i: usize| takes_part(i) && leads(i) && !paths[i].exceeds;
                        prop_assert!(!(0..paths.len()).any(good), "there is a good path");
                    }
                }
                Decision::Wait(Until::Room(i)) => {
                    prop_assert!(takes_part(i) && leads(i) && !paths[i].has_room());
                }
                Decision::Wait(Until::AnyRoom) => {
                    let all = (0..paths.len()).filter(|i| takes_part(*i));
                    let able = all.filter(|i| !form.thresholds || !paths[*i].exceeds);
                    prop_assert!(able.into_iter().all(|i| !paths[i].has_room()));
                }
                Decision::Wait(Until::Path) => prop_assert!(paths.iter().all(|p| !p.usable)),
            }
        }
    }

    #[test]
    fn what_is_confined_stays_so(mut paths in views()) {
        let before = paths.clone();
        confine(&mut paths);
        let backups = only_backups(&before);
        for (p, b) in paths.iter().zip(&before) {
            prop_assert_eq!(p.usable, b.priority == 0 && takes_part(b, backups));
        }
    }
}
