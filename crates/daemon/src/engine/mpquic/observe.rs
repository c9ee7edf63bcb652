//! Samples of paths for the control loop.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_core::AccessState;
use braid_mpquic::PathInfo;

use super::Mpquic;
use crate::control::{Evidence, Key, Look, Reading};
use crate::state::lock;

/// Reads a path of session `token`; none of one that belongs to no access or carries no data.
fn reading(token: u32, p: &PathInfo) -> Option<Reading> {
    let access = p.access.clone().filter(|_| p.usable && !p.backup)?;
    Some(Reading {
        key: Key::Path(token, p.number),
        access,
        delivered_bytes: p.delivered_bytes,
        lost_bytes: p.lost_bytes,
        in_flight_bytes: p.in_flight,
        // What waits, waits for any path.
        queued_bytes: 0,
        evidence: Evidence::Quic {
            waited: p.waited,
            full: p.full,
        },
        delivery_rate: p.delivery_rate,
        srtt: (!p.srtt.is_zero()).then_some(p.srtt),
        min_rtt: p.min_rtt,
    })
}

/// Returns the state of an access by its paths; none if it has none.
fn state_of<'a>(paths: impl Iterator<Item = &'a PathInfo>) -> Option<AccessState> {
    let state = |p: &PathInfo| match p {
        p if !p.usable => AccessState::Silent,
        p if p.backup => AccessState::Backup,
        _ => AccessState::Active,
    };
    let rank = |s: &AccessState| match s {
        AccessState::Active => 2,
        AccessState::Backup => 1,
        _ => 0,
    };
    paths.map(state).max_by_key(rank)
}

/// Looks at the paths of every session, and at the accesses.
pub(super) fn look(engine: &Mpquic) -> Look {
    let sessions = engine.paths();
    let steered = lock(&engine.steered).clone();
    let device = lock(&engine.device).clone();
    let is_down = |name: &str| {
        let link = device.as_ref().and_then(|d| d.link_of(name).ok());
        link.is_some_and(|l| !l.up)
    };
    let all = || sessions.iter().flat_map(|(_, paths)| paths);
    let state = |name: String| {
        let mine = all().filter(|p| p.access.as_ref() == Some(&name));
        let state = match steered.disabled.contains(&name) {
            true => Some(AccessState::Ignored),
            false if is_down(&name) => Some(AccessState::Down),
            false => state_of(mine),
        };
        (name, state)
    };
    let of = |(token, paths): &(u32, Vec<PathInfo>)| {
        let all = paths.iter().filter_map(|p| reading(*token, p));
        all.collect::<Vec<_>>()
    };
    Look {
        paths: sessions.iter().flat_map(of).collect(),
        states: steered
            .accesses
            .iter()
            .map(|a| state(a.name.clone()))
            .collect(),
    }
}

/// Returns the address of an access that is used, with its interface.
pub(super) fn source(engine: &Mpquic, access: &str) -> Option<(IpAddr, String)> {
    let device = lock(&engine.device).clone()?;
    let link = device.link_of(access).ok().filter(|l| l.up)?;
    let configured = || {
        let accesses = lock(&engine.accesses);
        let interface = accesses
            .iter()
            .find(|a| a.name == access)?
            .interface
            .as_ref();
        interface.map(ToString::to_string)
    };
    Some((link.address?, link.interface.or_else(configured)?))
}

/// Returns the addresses of paths that may carry data: a path of a session has proved its address,
/// and its device has shown its key.
pub(super) fn peers(sessions: &[(u32, Vec<PathInfo>)]) -> BTreeSet<IpAddr> {
    let all = sessions.iter().flat_map(|(_, paths)| paths);
    let usable = all.filter(|p| p.usable);
    usable.map(|p| p.remote.ip().to_canonical()).collect()
}
