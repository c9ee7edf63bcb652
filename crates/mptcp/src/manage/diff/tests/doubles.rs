//! Two interfaces with one address.

use super::super::super::plan::plan_once;
use super::*;

#[test]
fn of_two_interfaces_with_one_address_one_serves_and_the_other_says_why_not() {
    let mut s = settings(vec![access("a", "d1"), access("b", "d2")]);
    s.max_addresses = 1;
    let mut view = device(2);
    view.addresses = vec![address(2, v4(1)), address(1, v4(1))];
    view.routes[2].gateway = view.routes[0].gateway;
    let mut memory = Memory::default();
    let p = converge(&s, &mut view, &mut memory, &Conditions::new());
    let served = |v: &View| -> Vec<_> { v.endpoints.iter().map(|e| e.ifindex).collect() };
    assert_eq!(served(&view), [Some(1)]);
    assert_eq!(p.accesses[0].0, AccessState::Init);
    let (state, why) = &p.accesses[1];
    assert!(
        *state == AccessState::Ignored && why.contains("d2 has the same address as a (d1)"),
        "{state} {why}"
    );
    // What is set once goes by the same.
    let once = plan_once(&s, &view, &memory);
    assert_eq!(once.accesses, p.accesses);
    assert_eq!(once.uses.len(), 1);
    // With the first one down the other has its turn, until it is back.
    view.interfaces[0].up = false;
    let p = converge(&s, &mut view, &mut memory, &Conditions::new());
    assert_eq!(
        (served(&view), p.accesses[1].0),
        (vec![Some(2)], AccessState::Init)
    );
    view.interfaces[0].up = true;
    converge(&s, &mut view, &mut memory, &Conditions::new());
    assert_eq!(served(&view), [Some(1)]);
    // An address of its own serves beside.
    s.max_addresses = 2;
    view.addresses.push(address(2, v6(2)));
    let p = converge(&s, &mut view, &mut memory, &Conditions::new());
    assert_eq!(p.accesses[1].0, AccessState::Init, "{:?}", p.accesses);
}
