//! Events between two looks at the kernel.

use std::collections::BTreeMap;

use braid_access::view::View;
use braid_api::EventKind;

/// Interfaces that came up or went down and addresses that came or went, each
/// with the index of its interface.
pub(crate) fn between(before: &View, after: &View) -> Vec<(u32, EventKind)> {
    let links = |v: &View| -> BTreeMap<String, (u32, bool)> {
        let state =
            |i: &braid_access::view::Interface| (i.name.clone(), (i.index, i.up && i.carrier));
        v.interfaces.iter().map(state).collect()
    };
    let (old, new) = (links(before), links(after));
    let mut events = Vec::new();
    for (name, (index, up)) in &new {
        let was = old.get(name).is_some_and(|(_, up)| *up);
        let interface = name.clone();
        match (was, *up) {
            (false, true) => events.push((*index, EventKind::LinkUp { interface })),
            (true, false) => events.push((*index, EventKind::LinkDown { interface })),
            _ => {}
        }
    }
    for (name, (index, up)) in &old {
        if *up && !new.contains_key(name) {
            let interface = name.clone();
            events.push((*index, EventKind::LinkDown { interface }));
        }
    }
    let has = |v: &View, a: &braid_access::view::Address| {
        let same =
            |b: &braid_access::view::Address| (b.ifindex, b.address) == (a.ifindex, a.address);
        v.addresses.iter().any(same)
    };
    for a in after.addresses.iter().filter(|a| !has(before, a)) {
        let address = a.address;
        events.push((a.ifindex, EventKind::AddressAdded { address }));
    }
    for a in before.addresses.iter().filter(|a| !has(after, a)) {
        let address = a.address;
        events.push((a.ifindex, EventKind::AddressRemoved { address }));
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_access::view::{Address, Interface};

    fn view(links: &[(u32, &str, bool)], addresses: &[(u32, &str)]) -> View {
        let interface = |&(index, name, up): &(u32, &str, bool)| Interface {
            index,
            name: name.into(),
            up,
            carrier: up,
            ..Interface::default()
        };
        let address = |&(ifindex, a): &(u32, &str)| Address {
            ifindex,
            address: a.parse().unwrap(),
            prefix_len: 24,
            global: true,
            unusable: false,
            deprecated: false,
            temporary: false,
        };
        View {
            interfaces: links.iter().map(interface).collect(),
            addresses: addresses.iter().map(address).collect(),
            ..View::default()
        }
    }

    #[test]
    fn every_change_is_told_once() {
        let a = view(&[(1, "d1", true), (2, "d2", true)], &[(1, "10.0.0.1")]);
        assert_eq!(between(&a, &a), []);
        let b = view(&[(1, "d1", false), (3, "d3", true)], &[(3, "10.0.0.3")]);
        let said = |events: Vec<(u32, EventKind)>| -> Vec<String> {
            let say = |(i, e)| format!("{i} {}", serde_json::to_string(&e).unwrap());
            events.into_iter().map(say).collect()
        };
        assert_eq!(
            said(between(&a, &b)),
            [
                r#"1 {"event":"link_down","interface":"d1"}"#,
                r#"3 {"event":"link_up","interface":"d3"}"#,
                r#"2 {"event":"link_down","interface":"d2"}"#,
                r#"3 {"event":"address_added","address":"10.0.0.3"}"#,
                r#"1 {"event":"address_removed","address":"10.0.0.1"}"#,
            ]
        );
    }
}
