use braid_access::settings::AccessSpec;
use braid_access::view::{
    Address, Interface, MAIN_PRIORITY, MAIN_TABLE, PROTOCOL, RULE_PRIORITY, Route, everywhere,
};

use super::*;

const NONE: [IpAddr; 0] = [];

fn a(k: u8) -> IpAddr {
    IpAddr::from([10, 77, k, 2])
}

fn at(ms: u64) -> Time {
    Time::from_nanos(1) + Duration::from_millis(ms)
}

fn silent(s: &mut Silence, addresses: &[(u8, bool)], ms: u64) -> Vec<IpAddr> {
    let all: Vec<_> = addresses.iter().map(|(k, works)| (a(*k), *works)).collect();
    s.look(&all, at(ms)).into_keys().collect()
}

#[test]
fn a_path_that_worked_is_silent_at_once_and_a_new_one_after_a_while() {
    let mut s = Silence::default();
    assert_eq!(silent(&mut s, &[(1, true), (2, false)], 0), NONE);
    assert_eq!(s.due(), Some(at(1000)));
    assert_eq!(silent(&mut s, &[(1, true), (2, false)], 999), NONE);
    assert_eq!(silent(&mut s, &[(1, true), (2, false)], 1000), [a(2)]);
    assert_eq!(s.due(), None);
    assert_eq!(silent(&mut s, &[(1, true), (2, true)], 1001), NONE);
    assert_eq!(silent(&mut s, &[(1, false), (2, true)], 1002), [a(1)]);
    // One that has gone begins anew.
    assert_eq!(silent(&mut s, &[(2, true)], 1003), NONE);
    assert_eq!(silent(&mut s, &[(1, false), (2, true)], 1004), NONE);
}

#[test]
fn where_nothing_works_it_is_nobodys_fault() {
    let mut s = Silence::default();
    assert_eq!(silent(&mut s, &[(1, true), (2, true)], 0), NONE);
    assert_eq!(silent(&mut s, &[(1, false), (2, false)], 1), NONE);
    assert_eq!(s.due(), None);
    // A session begins on one access, and is on the others a moment later.
    assert_eq!(silent(&mut s, &[(1, false), (2, true)], 5000), NONE);
    assert_eq!(s.due(), Some(at(6000)));
    assert_eq!(silent(&mut s, &[(1, false), (2, true)], 6000), [a(1)]);
    // Who was silent before that is so until something comes back.
    assert_eq!(silent(&mut s, &[(1, false), (2, false)], 7000), [a(1)]);
    assert_eq!(silent(&mut s, &[(1, false), (2, true)], 7001), [a(1)]);
    assert_eq!(silent(&mut s, &[(1, true), (2, true)], 7002), NONE);
}

/// Two accesses with default routes of the metrics 1 and 2.
fn device() -> (Settings, View, Memory) {
    let mut view = View {
        rules: vec![Rule::new(MAIN_PRIORITY, everywhere(true), MAIN_TABLE)],
        ..View::default()
    };
    for k in 1..=2 {
        view.interfaces.push(Interface {
            index: k,
            name: format!("d{k}"),
            up: true,
            carrier: true,
            ..Interface::default()
        });
        view.addresses.push(Address {
            ifindex: k,
            address: a(k as u8),
            prefix_len: 24,
            global: true,
            unusable: false,
            deprecated: false,
            temporary: false,
        });
        view.routes.push(Route {
            gateway: Some([10, 77, k as u8, 1].into()),
            metric: k,
            ..Route::new(MAIN_TABLE, everywhere(true), k)
        });
    }
    let accesses = ["d1", "d2"].map(|d| AccessSpec::new(d, d.parse().unwrap()));
    let settings = Settings {
        accesses: accesses.into(),
        max_addresses: 1,
        steers_unbonded: true,
        ..Settings::default()
    };
    let mut memory = Memory::default();
    memory.learn(&view, &[]);
    (settings, view, memory)
}

#[test]
fn nothing_is_set_until_it_is_needed_and_sources_keep_their_rules_then() {
    let (mut settings, mut view, memory) = device();
    let works = BTreeMap::new();
    let since = at(0);
    let silent = BTreeMap::from([(a(1), Condition::Silent { since })]);
    // Nothing but the exits, which rules may ask for.
    let nothing = |conditions: &_, settings: &_, view: &_| {
        let plan = planned(settings, view, &memory, conditions);
        let exits = plan.exits.len();
        let rest = Plan {
            exits: Default::default(),
            ..plan
        };
        assert_eq!(rest, Plan::default());
        exits
    };
    assert_eq!(nothing(&works, &settings, &view), 2);
    let plan = planned(&settings, &view, &memory, &silent);
    assert_eq!(plan.exits.len(), 1, "{:?}", plan.exits);
    assert_eq!(plan.steered.len(), 1, "{:?}", plan.steered);
    assert!(plan.rules.iter().any(Rule::is_for_unbonded));
    assert!(plan.rules.iter().any(|r| r.priority == RULE_PRIORITY));
    view.rules.extend(&plan.rules);
    view.routes.extend(&plan.routes);
    let plan = planned(&settings, &view, &memory, &works);
    assert!(!plan.rules.iter().any(Rule::is_for_unbonded));
    let of = |k: u8| plan.rules.iter().filter(move |r| r.source == a(k).into());
    assert!(of(1).count() == 3 && of(2).count() == 3, "{:?}", plan.rules);
    assert!(plan.rules.iter().all(|r| r.protocol == PROTOCOL));
    settings.steers_unbonded = false;
    assert_eq!(nothing(&silent, &settings, &view), 1);
}
