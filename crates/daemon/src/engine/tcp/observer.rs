//! Interfaces and addresses that serve the accesses, as the kernel has them.

use braid_access::settings::Settings;
use braid_api::{AccessAddress, AccessState, EventKind};
use braid_mptcp::manage::{Plan, View};
use ipnet::IpNet;

use super::events;
use crate::engine::view::AccessView;

/// Event: the name of the access that it concerns, if any, and its kind.
pub(crate) type Happened = (Option<String>, EventKind);

/// Describes access number `i` of a device by what the kernel has and what is planned.
pub(crate) fn view_of(settings: &Settings, view: &View, plan: &Plan, i: usize) -> AccessView {
    let uses: Vec<_> = plan.uses.iter().filter(|u| u.access == i).collect();
    let spec = settings.accesses.get(i);
    let endpoint = |address| {
        let of = |e: &&braid_mptcp::pm::Endpoint| e.address == address;
        view.endpoints.iter().find(of).map(|e| e.id)
    };
    let named = uses.first().map(|u| u.interface.clone());
    let interface = named.or(spec.map(|s| s.interface.to_string()));
    let mut all = view.interfaces.iter();
    let link = all.find(|n| Some(&n.name) == interface.as_ref());
    let ifindex = link.map(|n| n.index);
    let has = |address| {
        let mut all = view.addresses.iter();
        all.any(|a| Some(a.ifindex) == ifindex && a.address == address)
    };
    let address = spec.and_then(|s| s.address);
    let (state, why) = plan.accesses.get(i).cloned().unwrap_or_default();
    AccessView {
        state,
        why,
        up: link.is_some_and(|n| n.up && n.carrier),
        has_address: uses.iter().any(|u| has(u.address)) || address.is_some_and(has),
        address: address.or(uses.first().map(|u| u.address)),
        interface,
        ifindex,
        endpoint_id: uses.iter().find_map(|u| endpoint(u.address)),
        addresses: uses
            .iter()
            .map(|u| AccessAddress {
                address: u.address,
                interface: Some(u.interface.clone()),
                endpoint_id: endpoint(u.address),
            })
            .collect(),
        ..AccessView::default()
    }
}

/// Describes an access at the proxy, which no device has used yet.
pub(crate) fn at_proxy(address: Option<IpNet>) -> AccessView {
    AccessView {
        state: AccessState::Init,
        why: "no device has used it yet".into(),
        up: true,
        has_address: true,
        address: address.map(|n| n.addr()),
        ..AccessView::default()
    }
}

/// Returns an event for each access that is in another state than before.
pub(crate) fn changes(
    settings: &Settings,
    plan: &Plan,
    before: &[(AccessState, String)],
) -> Vec<Happened> {
    let mut happened = Vec::new();
    for (i, (state, why)) in plan.accesses.iter().enumerate() {
        let changed = before.get(i).is_some_and(|(was, _)| was != state);
        if changed {
            let (state, why) = (*state, why.clone());
            let name = settings.accesses[i].name.clone();
            happened.push((Some(name), EventKind::AccessState { state, why }));
        }
    }
    happened
}

/// Returns changes of links and addresses that concern an access.
pub(crate) fn moves(settings: &Settings, before: &View, after: &View) -> Vec<Happened> {
    let name = |index: u32| {
        let of = |v: &View| v.interface(index).map(|i| i.name.clone());
        of(after).or_else(|| of(before))
    };
    let access = |index: u32, what: &EventKind| {
        let interface = name(index)?;
        let mut all = settings.accesses.iter();
        let access = all.find(|a| a.interface.matches(&interface))?;
        match what {
            EventKind::AddressAdded { address } | EventKind::AddressRemoved { address } => {
                let mine = access.address.is_none_or(|a| a == *address);
                mine.then(|| access.name.clone())
            }
            _ => Some(access.name.clone()),
        }
    };
    events::between(before, after)
        .into_iter()
        .filter_map(|(index, what)| Some((Some(access(index, &what)?), what)))
        .collect()
}

/// Returns whose addresses are which, at the device.
pub(crate) fn names(settings: &Settings, plan: &Plan) -> Vec<(IpNet, String)> {
    let pinned = settings
        .accesses
        .iter()
        .filter_map(|a| Some((IpNet::from(a.address?), a.name.clone())));
    let used = plan.uses.iter().filter_map(|u| {
        let name = settings.accesses.get(u.access)?.name.clone();
        Some((IpNet::from(u.address), name))
    });
    pinned.chain(used).collect()
}

/// Checks that the interface of every access is there, where none is waited for.
pub(crate) fn all_there(settings: &Settings, view: &View) -> crate::engine::Result<()> {
    for a in &settings.accesses {
        let mut there = view.interfaces.iter();
        if a.interface.is_name() && !there.any(|i| a.interface.matches(&i.name)) {
            return Err(crate::DaemonError::Failed(format!(
                "access \"{}\": no interface \"{}\" in this network namespace",
                a.name, a.interface
            )));
        }
    }
    Ok(())
}
