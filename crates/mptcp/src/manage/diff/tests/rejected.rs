//! The kernel refuses steps, any of them.

use super::super::super::rejected::Refused;
use super::*;

/// Takes the steps from `view` to `plan`; those that `refuses` takes for its own are not.
fn take(view: &mut View, memory: &mut Memory, p: &Plan, refuses: &dyn Fn(&Op) -> bool) {
    let mut refused = Refused::default();
    for op in diff(view, p) {
        if refused.holds_back(&op) {
            continue;
        }
        if refuses(&op) {
            refused.note(&op, "no".into());
            continue;
        }
        apply(view, &op);
        if let Op::AddEndpoint(e) = &op {
            memory.added.insert(e.address);
        }
    }
    memory.refused = refused;
}

/// Whether the use needs this step, by what the kernel does with packets from its address.
fn own(op: &Op, u: &Use) -> bool {
    match op {
        Op::AddRoute(r) if r.is_for_unbonded() => false,
        Op::AddRoute(r) => (r.ifindex, r.is_v4()) == (u.ifindex, u.address.is_ipv4()),
        Op::AddRule(r) => r.source == IpNet::from(u.address),
        Op::AddEndpoint(e) => e.address == u.address,
        _ => false,
    }
}

/// Checks whether two steps are the same, whatever the endpoint is to be like.
fn same(a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::AddEndpoint(a), Op::AddEndpoint(b)) => a.address == b.address,
        (a, b) => a == b,
    }
}

fn adds(op: &Op) -> bool {
    matches!(op, Op::AddRoute(_) | Op::AddRule(_) | Op::AddEndpoint(_))
}

proptest! {
    #[test]
    fn exactly_those_are_out_whose_own_steps_were_refused(
        w in world(), which in prop::collection::vec(any::<bool>(), 64),
    ) {
        let (s, mut view, _) = build(&w);
        view.endpoints.clear();
        let mut memory = Memory::default();
        memory.known.learn(&view, &s.proxy);
        let none = Conditions::new();
        let p = plan(&s, &view, &memory, &none);
        let all: Vec<_> = diff(&view, &p).into_iter().filter(adds).collect();
        let no: Vec<_> = all.iter().zip(&which).filter(|(_, no)| **no).map(|(op, _)| op).collect();
        let refuses = |op: &Op| no.iter().any(|n| same(n, op));
        take(&mut view, &mut memory, &p, &refuses);
        let out = |u: &Use| no.iter().any(|op| own(op, u));
        for u in p.uses.iter().filter(|u| u.endpoint) {
            let there = view.endpoints.iter().any(|e| e.address == u.address);
            prop_assert_eq!(there, !out(u), "{:?} of {:?}", u, no);
        }
        // It is said of an access that nothing of it can be used, and of no other.
        let p = plan(&s, &view, &memory, &none);
        for (i, (state, why)) in p.accesses.iter().enumerate() {
            let wanted: Vec<_> = p.uses.iter().filter(|u| u.access == i && u.endpoint).collect();
            if wanted.is_empty() {
                continue;
            }
            let refused = wanted.iter().all(|u| out(u));
            prop_assert_eq!(*state == AccessState::Ignored, refused, "{} {}", state, why);
            prop_assert_eq!(why.contains("the kernel refused to no"), refused, "{}", why);
        }
        // Refused once more, it stays at that; taken, all of them are used.
        let before = view.clone();
        take(&mut view, &mut memory, &p, &|op| refuses(op) || matches!(op, Op::SetBackup(..)));
        prop_assert_eq!(&before.routes, &view.routes);
        prop_assert_eq!(before.endpoints.len(), view.endpoints.len());
        let p = plan(&s, &view, &memory, &none);
        take(&mut view, &mut memory, &p, &|_| false);
        let p = converge(&s, &mut view, &mut memory, &none);
        for u in p.uses.iter().filter(|u| u.endpoint) {
            prop_assert!(view.endpoints.iter().any(|e| e.address == u.address), "{:?}", u);
        }
    }
}

#[test]
fn others_take_the_place_of_an_access_that_was_refused() {
    use AccessState::{Backup, Ignored, Init, Silent};
    let mut view = device(3);
    let mut s = settings(
        (1..=3)
            .map(|k| access(&format!("a{k}"), &format!("d{k}")))
            .collect(),
    );
    s.max_addresses = 1;
    for (a, priority) in s.accesses.iter_mut().zip([1, 2, 3]) {
        a.priority = Some(priority);
    }
    let mut memory = Memory::default();
    memory.known.learn(&view, &s.proxy);
    let states = |p: &Plan| -> Vec<AccessState> { p.accesses.iter().map(|(s, _)| *s).collect() };
    let none = Conditions::new();
    let p = plan(&s, &view, &memory, &none);
    take(
        &mut view,
        &mut memory,
        &p,
        &|op| matches!(op, Op::AddRoute(r) if r.ifindex == 1),
    );
    let p = plan(&s, &view, &memory, &none);
    assert_eq!(states(&p), [Ignored, Init, Backup]);
    // The second falls silent: it is not kept as the last one, nor is the first.
    let since = Time::from_nanos(1);
    let silent = Conditions::from([(v4(2), Condition::Silent { since })]);
    let p = plan(&s, &view, &memory, &silent);
    assert_eq!(states(&p), [Ignored, Silent, Init]);
    // With nothing else there is, it is kept.
    let both = [2, 3].map(|k| {
        (
            v4(k),
            Condition::Silent {
                since: Time::from_nanos(k.into()),
            },
        )
    });
    let p = plan(&s, &view, &memory, &Conditions::from(both));
    assert_eq!(states(&p), [Ignored, Silent, Silent]);
    assert!(
        p.accesses[2].1.contains("no other access is left"),
        "{:?}",
        p.accesses
    );
    assert!(p.endpoints.iter().any(|e| e.address == v4(3)));
    // The route is there at last.
    let p = plan(&s, &view, &memory, &none);
    take(&mut view, &mut memory, &p, &|_| false);
    let p = converge(&s, &mut view, &mut memory, &none);
    assert_eq!(states(&p), [Init, Backup, Backup]);
}
