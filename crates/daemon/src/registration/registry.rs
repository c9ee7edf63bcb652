//! Devices and their accesses as a proxy knows them by their registrations. No socket and no
//! clock.
//!
//! An access that the file names by its address keeps that name; its device's weights hold for the
//! device's own addresses and sessions alone. Others are called `ACCESS@DEVICE`. An address, and
//! the name of a device, belong to whoever has registered them until that is not heard of for
//! [`FRESH`]: two accesses that the proxy sees under one address cannot be told apart.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use braid_api::config::Estimator;
use braid_api::registration::Request;
use braid_api::{Expected, Limit};
use braid_core::{AccessKind, Time};
use braid_mptcp::weights::whole;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{ByName, Origin};
use crate::config::Access;

/// Age of a registration up to which it holds what others ask for. Devices register again each
/// minute while they have traffic.
const FRESH: Duration = Duration::from_secs(600);
/// Most devices.
const MAX_DEVICES: usize = 256;
/// Most addresses of one access that are remembered.
const MAX_ADDRESSES: usize = 4;
/// Most addresses of all devices: a quarter of the kernel's table of weights.
const MAX_ALL_ADDRESSES: usize = 1024;
/// Highest weight of a device here. The kernel scales all weights together, and those of one
/// device are not to coarsen those of others, nor to lengthen their turns.
const MAX_WEIGHT: f64 = 1000.0;

/// Facts about the end that a registration came by.
pub(crate) struct Facts<'a> {
    /// Access of the file that an address belongs to, if it is one's.
    pub(crate) configured: &'a (dyn Fn(IpAddr) -> Option<String> + Sync),
    /// Configured access of each path of the session, if it is on one.
    pub(crate) paths: &'a BTreeMap<u32, Option<String>>,
    /// Addresses from which connections or sessions come now.
    pub(crate) peers: &'a BTreeSet<IpAddr>,
    /// Sessions that live.
    pub(crate) sessions: &'a BTreeSet<u32>,
}

/// Weights that a device wants, whole numbers up to [`MAX_WEIGHT`] in the ratio that it has
/// requested.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wish {
    /// Weights of accesses that are the device's alone, by their names here.
    pub(crate) all: ByName,
    /// Weights of accesses of the file, which others may be on as well: for its session alone.
    pub(crate) session: ByName,
    /// Weights of its addresses on these, for them alone.
    pub(crate) addresses: BTreeMap<IpAddr, f64>,
}

impl Wish {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Place of an access here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Place {
    /// Access that has not come by any address or path yet.
    #[default]
    Unknown,
    /// Access of the file, by this name.
    Configured(String),
    /// Access under the name that it has registered.
    Registered,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Registered {
    kind: AccessKind,
    weight: Option<f64>,
    place: Place,
    /// The newest last.
    addresses: Vec<Held>,
}

/// Address of an access.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Held {
    address: IpAddr,
    /// Time of its latest registration.
    #[serde(skip)]
    at: Time,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Device {
    name: String,
    /// Name that it asked for.
    wanted: String,
    #[serde(skip)]
    seen: Time,
    accesses: BTreeMap<String, Registered>,
    #[serde(skip)]
    sessions: BTreeSet<u32>,
    /// Weights that were requested last, by the device's names.
    requested: Option<ByName>,
    /// Wish that was fulfilled last, but for sessions.
    #[serde(skip)]
    fulfilled: Wish,
    /// Weights of sessions that were set last.
    #[serde(skip)]
    fulfilled_sessions: BTreeMap<u32, ByName>,
}

/// Devices by their numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Registry {
    devices: BTreeMap<u64, Device>,
}

impl Device {
    fn name_of(&self, access: &str) -> Option<String> {
        match &self.accesses.get(access)?.place {
            Place::Unknown => None,
            Place::Configured(name) => Some(name.clone()),
            Place::Registered => Some(format!("{access}@{}", self.name)),
        }
    }

    /// Returns the share of each access: as `requested`, else as configured, else 1; as whole
    /// numbers up to [`MAX_WEIGHT`] in that ratio, or 0.
    fn shares(&self, requested: Option<&ByName>) -> ByName {
        let requested = requested.cloned().unwrap_or_default();
        let share = |(name, a): (&String, &Registered)| {
            requested.get(name).copied().or(a.weight).unwrap_or(1.0)
        };
        let given: Vec<f64> = self.accesses.iter().map(share).collect();
        let whole = whole(&given);
        let most = whole.iter().copied().max().unwrap_or_default();
        let scale = (MAX_WEIGHT / f64::from(most.max(1))).min(1.0);
        let scaled = whole.into_iter().map(|w| match w {
            0 => 0.0,
            w => (f64::from(w) * scale).round().max(1.0),
        });
        self.accesses.keys().cloned().zip(scaled).collect()
    }

    /// Whether anything of it is connected.
    fn is_connected(&self, facts: &Facts<'_>) -> bool {
        let addresses = self.accesses.values().flat_map(|a| &a.addresses);
        let mut addresses = addresses.map(|held| held.address);
        addresses.any(|a| facts.peers.contains(&a)) || !self.sessions.is_disjoint(facts.sessions)
    }
}

impl Registry {
    /// Takes up what a daemon before has known: as if all had registered at `at`.
    pub(crate) fn adopt(&mut self, before: Self, at: Time) {
        *self = before;
        for device in self.devices.values_mut() {
            device.seen = at;
            let held = device.accesses.values_mut().flat_map(|a| &mut a.addresses);
            held.for_each(|h| h.at = at);
        }
    }

    /// Returns the numbers of all devices, each with its latest session, if it has one.
    pub(crate) fn origins(&self) -> Vec<(u64, Origin)> {
        let nobody = || Origin::Address(IpAddr::from([0; 4]));
        let session = |d: &Device| d.sessions.last().copied().map(Origin::Session);
        let all = self.devices.iter();
        all.map(|(id, d)| (*id, session(d).unwrap_or_else(nobody)))
            .collect()
    }

    /// Takes in a registration.
    ///
    /// # Errors
    /// Why the access that it came over gets no name, for the device's operator. The rest of it
    /// holds.
    pub(crate) fn register(
        &mut self,
        at: Time,
        from: &Origin,
        request: &Request,
        facts: &Facts<'_>,
    ) -> Result<(), String> {
        self.make_room(request.id, facts)?;
        self.admit(at, from, request, facts);
        match from {
            Origin::Session(token) => {
                let Some(device) = self.devices.get_mut(&request.id) else {
                    return Ok(());
                };
                device.sessions.retain(|t| facts.sessions.contains(t));
                device
                    .fulfilled_sessions
                    .retain(|t, _| facts.sessions.contains(t));
                device.sessions.insert(*token);
                for (path, access) in &request.paths {
                    // One that is not validated here yet: its device registers again.
                    let Some(configured) = facts.paths.get(path).cloned() else {
                        continue;
                    };
                    let place = configured.map_or(Place::Registered, Place::Configured);
                    if let Some(a) = device.accesses.get_mut(access) {
                        a.place = place;
                    }
                }
                Ok(())
            }
            Origin::Address(address) => match &request.over {
                Some(over) => self.place(at, *address, request.id, over, facts),
                None => Ok(()),
            },
        }
    }

    /// Makes room for a device that is new.
    fn make_room(&mut self, id: u64, facts: &Facts<'_>) -> Result<(), String> {
        if self.devices.len() < MAX_DEVICES || self.devices.contains_key(&id) {
            return Ok(());
        }
        match self.evict(facts, |_, _| true) {
            true => Ok(()),
            false => Err(format!(
                "the proxy knows {MAX_DEVICES} devices that are connected, and no more"
            )),
        }
    }

    /// Forgets the device that has not been heard of for longest, of those that `may_go` and are
    /// not connected. Says whether there is one.
    fn evict(&mut self, facts: &Facts<'_>, may_go: impl Fn(u64, &Device) -> bool) -> bool {
        let all = self.devices.iter();
        let idle = all.filter(|(id, d)| may_go(**id, d) && !d.is_connected(facts));
        let oldest = idle.min_by_key(|(_, d)| d.seen).map(|(id, _)| *id);
        oldest.is_some_and(|id| self.devices.remove(&id).is_some())
    }

    /// Takes the device and its accesses in, or what has changed of them.
    fn admit(&mut self, at: Time, from: &Origin, request: &Request, facts: &Facts<'_>) {
        let known = self.devices.get(&request.id);
        let name = match known.filter(|d| d.wanted == request.device) {
            Some(known) => known.name.clone(),
            None => self.free_name(at, request, facts),
        };
        let device = self.devices.entry(request.id).or_default();
        device.seen = at;
        // Whoever has shown its key is not overruled by TCP, where anybody may know its number.
        let shown = !device.sessions.is_disjoint(facts.sessions);
        if shown && matches!(from, Origin::Address(_)) {
            return;
        }
        device.name = name;
        device.wanted.clone_from(&request.device);
        device.requested.clone_from(&request.weights);
        device
            .accesses
            .retain(|n, _| request.accesses.contains_key(n));
        for (name, a) in &request.accesses {
            let known = device.accesses.entry(name.clone());
            let known = known.or_insert_with(|| Registered {
                kind: a.kind,
                weight: a.weight,
                place: Place::default(),
                addresses: Vec::new(),
            });
            (known.kind, known.weight) = (a.kind, a.weight);
        }
    }

    /// Returns a name that no other device has. One that is not heard of any more gives its
    /// name away, and goes.
    fn free_name(&mut self, at: Time, request: &Request, facts: &Facts<'_>) -> String {
        let stale = |d: &Device| at.since(d.seen) > FRESH && !d.is_connected(facts);
        let same = |id: &u64, d: &Device| *id != request.id && d.name == request.device;
        self.devices.retain(|id, d| !(same(id, d) && stale(d)));
        let others = self.devices.iter().filter(|(id, _)| **id != request.id);
        let taken: BTreeSet<&str> = others.map(|(_, d)| d.name.as_str()).collect();
        let numbered = (2..).map(|n| format!("{}-{n}", request.device));
        let mut names = std::iter::once(request.device.clone()).chain(numbered);
        names
            .find(|n| !taken.contains(n.as_str()))
            .unwrap_or_default()
    }

    /// Places the access that a registration came over.
    fn place(
        &mut self,
        at: Time,
        address: IpAddr,
        id: u64,
        over: &str,
        facts: &Facts<'_>,
    ) -> Result<(), String> {
        let address = address.to_canonical();
        let configured = (facts.configured)(address);
        self.claim(at, address, id, over)?;
        self.make_room_for(address, id, facts)?;
        let device = self.devices.get_mut(&id);
        let Some(access) = device.and_then(|d| d.accesses.get_mut(over)) else {
            return Ok(());
        };
        let place = configured.map_or(Place::Registered, Place::Configured);
        if place != access.place {
            access.addresses.clear();
        }
        access.addresses.retain(|h| h.address != address);
        access.addresses.push(Held { address, at });
        let extra = access.addresses.len().saturating_sub(MAX_ADDRESSES);
        access.addresses.drain(..extra);
        access.place = place;
        Ok(())
    }

    /// Makes room for an address that is new.
    fn make_room_for(&mut self, address: IpAddr, id: u64, facts: &Facts<'_>) -> Result<(), String> {
        let of = |d: &Device| {
            d.accesses
                .values()
                .map(|a| a.addresses.len())
                .sum::<usize>()
        };
        let all = self.devices.values();
        let mut held = all.clone().flat_map(|d| d.accesses.values());
        let known = held.any(|a| a.addresses.iter().any(|h| h.address == address));
        if known || all.map(of).sum::<usize>() < MAX_ALL_ADDRESSES {
            return Ok(());
        }
        match self.evict(facts, |other, d| other != id && of(d) > 0) {
            true => Ok(()),
            false => Err(format!(
                "the proxy knows {MAX_ALL_ADDRESSES} addresses of devices that are connected, and \
                 no more"
            )),
        }
    }

    /// Takes an address from an access that is not heard of on it any more.
    fn claim(&mut self, at: Time, address: IpAddr, id: u64, over: &str) -> Result<(), String> {
        for (other, device) in &mut self.devices {
            for (name, access) in &mut device.accesses {
                if (*other, name.as_str()) == (id, over) {
                    continue;
                }
                let held = access.addresses.iter().find(|h| h.address == address);
                match held {
                    Some(held) if at.since(held.at) <= FRESH => {
                        let whose = match *other == id {
                            true => format!("access {name}"),
                            false => "an access of another device".to_owned(),
                        };
                        return Err(format!(
                            "the proxy sees {over} under {address}, as it does {whose}, and \
                             cannot tell them apart (behind one NAT)"
                        ));
                    }
                    _ => access.addresses.retain(|h| h.address != address),
                }
            }
        }
        Ok(())
    }

    /// Returns the name here of each access of a device that has come by an address or a path.
    pub(crate) fn names(&self, id: u64) -> BTreeMap<String, String> {
        let Some(device) = self.devices.get(&id) else {
            return BTreeMap::new();
        };
        let all = device.accesses.keys();
        all.filter_map(|n| Some((n.clone(), device.name_of(n)?)))
            .collect()
    }

    /// Returns the accesses that the file does not name, as it would have them.
    pub(crate) fn accesses(&self) -> Vec<Access> {
        let all = self.devices.values();
        let of = |d: &Device| {
            let mine = d.accesses.iter();
            let mine = mine.filter(|(_, a)| a.place == Place::Registered);
            let shares = d.shares(None);
            let configured = d.accesses.values().any(|a| a.weight.is_some());
            let weight = |name: &String| shares.get(name).copied().filter(|_| configured);
            let access = |(name, a): (&String, &Registered)| {
                let addresses: Vec<IpAddr> = a.addresses.iter().map(|h| h.address).collect();
                Access {
                    name: d.name_of(name).unwrap_or_default(),
                    kind: a.kind,
                    interface: None,
                    address: addresses.last().copied().map(IpNet::from),
                    max_addresses: None,
                    backup: false,
                    priority: None,
                    weight: weight(name),
                    expected: Expected::default(),
                    limit: Limit::default(),
                    estimator: Estimator::default(),
                    cap: None,
                    power: None,
                    power_set: None,
                    registered: Some(addresses),
                }
            };
            mine.map(access).collect::<Vec<_>>()
        };
        all.flat_map(of).collect()
    }

    /// Returns the weights that a device has requested and that do not hold yet; `None` where
    /// nothing is to be done. Those of a session hold for the one that the registration came on.
    pub(crate) fn wish(&self, id: u64, from: &Origin) -> Option<Wish> {
        let device = self.devices.get(&id)?;
        let mut wish = Wish::default();
        // What was requested and is not any more goes back.
        if device.requested.is_none() && device.fulfilled.is_empty() {
            return None;
        }
        for (name, weight) in device.shares(device.requested.as_ref()) {
            let (Some(here), Some(access)) = (device.name_of(&name), device.accesses.get(&name))
            else {
                continue;
            };
            if access.place == Place::Registered {
                wish.all.insert(here, weight);
                continue;
            }
            wish.session.insert(here, weight);
            let addresses = access.addresses.iter().map(|h| (h.address, weight));
            wish.addresses.extend(addresses);
        }
        let token = match from {
            Origin::Session(token) => Some(token),
            Origin::Address(_) => None,
        };
        let before = token.map(|t| device.fulfilled_sessions.get(t));
        let holds = before.is_none_or(|b| *b.unwrap_or(&ByName::new()) == wish.session);
        let same =
            (&wish.all, &wish.addresses) == (&device.fulfilled.all, &device.fulfilled.addresses);
        Some(wish).filter(|_| !(same && holds))
    }

    /// Returns the weights of all addresses of devices on accesses of the file.
    pub(crate) fn address_weights(&self) -> BTreeMap<IpAddr, f64> {
        let mut all = BTreeMap::new();
        for device in self.devices.values().filter(|d| d.requested.is_some()) {
            for (name, weight) in device.shares(device.requested.as_ref()) {
                let access = device.accesses.get(&name);
                let access = access.filter(|a| matches!(a.place, Place::Configured(_)));
                let held = access.into_iter().flat_map(|a| &a.addresses);
                // 0 is for the device to say (MP_PRIO).
                all.extend(held.filter(|_| weight > 0.0).map(|h| (h.address, weight)));
            }
        }
        all
    }

    /// Returns the weights of a device that were set for it, by its own names.
    pub(crate) fn requested(&self, id: u64) -> ByName {
        let device = self.devices.get(&id);
        let requested = device.and_then(|d| d.requested.clone()).unwrap_or_default();
        let known = |name: &str| device.is_some_and(|d| d.name_of(name).is_some());
        requested.into_iter().filter(|(n, _)| known(n)).collect()
    }

    /// Forgets which wishes were fulfilled: weights are as configured again.
    pub(crate) fn forget_wishes(&mut self) {
        let all = self.devices.values_mut();
        all.for_each(|d| {
            d.fulfilled = Wish::default();
            d.fulfilled_sessions.clear();
        });
    }

    /// Notes that a wish was fulfilled.
    pub(crate) fn fulfilled(&mut self, id: u64, from: &Origin, wish: Wish) {
        if let Some(device) = self.devices.get_mut(&id) {
            if let Origin::Session(token) = from {
                device
                    .fulfilled_sessions
                    .insert(*token, wish.session.clone());
            }
            device.fulfilled = wish;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_api::registration;

    fn request(device: &str, id: u64, over: Option<&str>) -> Request {
        let access = |weight| registration::Access {
            kind: AccessKind::Wifi,
            weight,
            limit_bps: None,
        };
        let accesses = [
            ("nr".to_owned(), access(None)),
            ("wifi".to_owned(), access(Some(3.0))),
        ];
        Request {
            over: over.map(str::to_owned),
            ..Request::new(device, id, accesses.into())
        }
    }

    const TCP: Origin = Origin::Address(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn a(last: u8) -> IpAddr {
        [198, 51, 100, last].into()
    }

    fn s(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    /// Registry of a proxy whose file has `nr` for a network, and `lan` for one address.
    struct World {
        registry: Registry,
        peers: BTreeSet<IpAddr>,
        sessions: BTreeSet<u32>,
        paths: BTreeMap<u32, Option<String>>,
    }

    impl World {
        fn new() -> Self {
            Self {
                registry: Registry::default(),
                peers: BTreeSet::new(),
                sessions: [1, 2].into(),
                paths: BTreeMap::new(),
            }
        }

        fn register(&mut self, at: Time, from: &Origin, request: &Request) -> Result<(), String> {
            let configured = |a: IpAddr| {
                let name = match a.to_string() {
                    a if a.starts_with("10.64.") => Some("nr"),
                    a if a == "10.1.1.1" => Some("lan"),
                    _ => None,
                };
                name.map(str::to_owned)
            };
            let facts = Facts {
                configured: &configured,
                paths: &self.paths,
                peers: &self.peers,
                sessions: &self.sessions,
            };
            self.registry.register(at, from, request, &facts)
        }

        /// Registers from an address; returns the names that the device has then.
        fn by(&mut self, at: u64, from: IpAddr, request: &Request) -> Vec<String> {
            self.register(s(at), &Origin::Address(from), request)
                .unwrap();
            self.registry.names(request.id).into_values().collect()
        }

        fn refused(&mut self, at: u64, from: IpAddr, request: &Request) -> String {
            self.register(s(at), &Origin::Address(from), request)
                .unwrap_err()
        }
    }

    #[test]
    fn a_device_names_its_accesses_one_by_one() {
        let mut w = World::new();
        assert_eq!(w.by(0, a(1), &request("cpe", 7, Some("nr"))), ["nr@cpe"]);
        let both = w.by(0, a(2), &request("cpe", 7, Some("wifi")));
        assert_eq!(both, ["nr@cpe", "wifi@cpe"]);
        let accesses = w.registry.accesses();
        let of = |a: &Access| (a.name.clone(), a.weight, a.registered.clone());
        let known: Vec<_> = accesses.iter().map(of).collect();
        let expected = [
            ("nr@cpe".to_owned(), Some(1.0), Some(vec![a(1)])),
            ("wifi@cpe".to_owned(), Some(3.0), Some(vec![a(2)])),
        ];
        assert_eq!(known, expected);
        // One that moves keeps its name, and both addresses while packets may come from either.
        w.by(5, a(3), &request("cpe", 7, Some("nr")));
        let nr = w.registry.accesses().swap_remove(0);
        assert_eq!(nr.registered, Some(vec![a(1), a(3)]));
        for n in 4..99 {
            w.by(5, a(n), &request("cpe", 7, Some("nr")));
        }
        let nr = w.registry.accesses().swap_remove(0);
        assert_eq!(nr.registered.map(|a| a.len()), Some(MAX_ADDRESSES));
    }

    #[test]
    fn what_the_file_names_keeps_that_name() {
        let mut w = World::new();
        let cgn = "10.64.3.9".parse().unwrap();
        assert_eq!(w.by(0, cgn, &request("cpe", 7, Some("nr"))), ["nr"]);
        assert_eq!(w.registry.accesses(), []);
        let lan = "10.1.1.1".parse().unwrap();
        let both = w.by(0, lan, &request("cpe", 7, Some("wifi")));
        assert_eq!(both, ["nr", "lan"]);
    }

    #[test]
    fn two_accesses_under_one_address_are_told_apart_by_none() {
        let mut w = World::new();
        w.by(0, a(1), &request("cpe", 7, Some("nr")));
        let why = w.refused(60, a(1), &request("cpe", 7, Some("wifi")));
        assert!(why.contains("as it does access nr"), "{why}");
        let why = w.refused(60, a(1), &request("other", 8, Some("wifi")));
        assert!(why.contains("another device"), "{why}");
        // Once it is not heard of any more, the address is another's.
        let names = w.by(700, a(1), &request("other", 8, Some("wifi")));
        assert_eq!(names, ["wifi@other"]);
        let kept: Vec<_> = w.registry.accesses();
        let of = |name: &str| kept.iter().find(|a| a.name == name).unwrap();
        assert_eq!(of("nr@cpe").registered, Some(vec![]));
        assert_eq!(of("wifi@other").registered, Some(vec![a(1)]));
    }

    #[test]
    fn devices_of_one_name_are_numbered_until_one_has_gone() {
        let mut w = World::new();
        w.by(0, a(1), &request("cpe", 7, Some("nr")));
        let second = w.by(0, a(2), &request("cpe", 8, Some("nr")));
        assert_eq!(second, ["nr@cpe-2"]);
        // It keeps its name however often it registers.
        assert_eq!(w.by(900, a(2), &request("cpe", 8, Some("nr"))), second);
        // The first is connected, though it was not heard of for long.
        w.peers = [a(1)].into();
        assert_eq!(
            w.by(900, a(3), &request("cpe", 9, Some("nr"))),
            ["nr@cpe-3"]
        );
        w.peers.clear();
        assert_eq!(w.by(901, a(4), &request("cpe", 10, Some("nr"))), ["nr@cpe"]);
    }

    #[test]
    fn strangers_cannot_push_a_connected_device_out() {
        let mut w = World::new();
        w.by(0, a(1), &request("cpe", 1, Some("nr")));
        w.peers = [a(1)].into();
        for n in 0..2 * MAX_DEVICES as u64 {
            let from = IpAddr::from([203, 0, (n / 250) as u8, (n % 250) as u8]);
            w.by(1 + n, from, &request("x", 100 + n, Some("nr")));
        }
        assert_eq!(w.registry.devices.len(), MAX_DEVICES);
        assert_eq!(w.registry.names(1).len(), 1);
        let from = |n: u64| IpAddr::from([203, 0, (n / 250) as u8, (n % 250) as u8]);
        w.peers.extend((0..2 * MAX_DEVICES as u64).map(from));
        let why = w.refused(9999, a(9), &request("new", 5, Some("nr")));
        assert!(why.contains("256 devices"), "{why}");
    }

    #[test]
    fn weights_hold_for_the_device_s_own_accesses_alone() {
        let mut w = World::new();
        let wants = |over| Request {
            weights: Some([("nr".to_owned(), 1.0), ("wifi".to_owned(), 4.0)].into()),
            ..request("cpe", 7, over)
        };
        w.by(0, a(1), &wants(Some("nr")));
        // An access counts once it is known here.
        let first = w.registry.wish(7, &TCP).unwrap();
        assert_eq!(first.all, [("nr@cpe".to_owned(), 1.0)].into());
        w.registry.fulfilled(7, &TCP, first);
        assert_eq!(w.registry.wish(7, &TCP), None);
        w.by(0, a(2), &wants(Some("wifi")));
        assert_eq!(w.registry.wish(7, &TCP).unwrap().all.len(), 2);
        // An access of the file has others on it.
        let cgn = "10.64.3.9".parse().unwrap();
        w.by(0, cgn, &wants(Some("nr")));
        let wish = w.registry.wish(7, &TCP).unwrap();
        assert_eq!(wish.all, [("wifi@cpe".to_owned(), 4.0)].into());
        assert_eq!(wish.session, [("nr".to_owned(), 1.0)].into());
        assert_eq!(wish.addresses.get(&cgn), Some(&1.0));
        assert_eq!(w.registry.requested(7).len(), 2);
        assert_eq!(w.registry.address_weights(), [(cgn, 1.0)].into());
        // Once it is requested no more, weights go back to what is configured.
        let wish = w.registry.wish(7, &TCP).unwrap();
        w.registry.fulfilled(7, &TCP, wish);
        w.by(1, cgn, &request("cpe", 7, Some("nr")));
        let back = w.registry.wish(7, &TCP).unwrap();
        assert_eq!(back.all, [("wifi@cpe".to_owned(), 3.0)].into());
        assert!(w.registry.address_weights().is_empty());
    }

    #[test]
    fn weights_of_one_device_do_not_coarsen_those_of_others() {
        let mut w = World::new();
        let shares = |w: &mut World, nr: f64, wifi: f64| {
            let asks = Request {
                weights: Some([("nr".to_owned(), nr), ("wifi".to_owned(), wifi)].into()),
                ..request("cpe", 7, Some("nr"))
            };
            w.by(0, a(1), &asks);
            let device = &w.registry.devices[&7];
            let shares = device.shares(device.requested.as_ref());
            shares.into_values().collect::<Vec<_>>()
        };
        assert_eq!(shares(&mut w, 0.5, 1.5), [1.0, 3.0]);
        assert_eq!(shares(&mut w, 1e6, 1.0), [1000.0, 1.0]);
        assert_eq!(shares(&mut w, 0.0, 2.0), [0.0, 2.0]);
        for (nr, wifi) in [(1.001, 1.0), (1e-5, 1.0), (123.456, 7.89)] {
            let all = shares(&mut w, nr, wifi);
            let sound = |w: &f64| w.fract() == 0.0 && (1.0..=MAX_WEIGHT).contains(w);
            assert!(all.iter().all(sound), "{all:?}");
        }
    }

    #[test]
    fn addresses_of_all_devices_are_bounded() {
        let mut w = World::new();
        for id in 0..240_u64 {
            for n in 0..MAX_ADDRESSES as u8 {
                for (k, access) in ["nr", "wifi"].into_iter().enumerate() {
                    let from = IpAddr::from([203, k as u8, id as u8, n]);
                    w.by(id, from, &request(&format!("d{id}"), id, Some(access)));
                }
            }
        }
        let all = w.registry.accesses();
        let addresses: usize = all.iter().flat_map(|a| &a.registered).map(Vec::len).sum();
        assert!(addresses <= MAX_ALL_ADDRESSES, "{addresses}");
        assert_eq!(w.registry.names(239).len(), 2, "the newest is there");
    }

    #[test]
    fn weights_of_a_session_hold_for_the_next_one_too() {
        let mut w = World::new();
        w.paths = [(0, Some("nr".to_owned()))].into();
        let asks = Request {
            weights: Some([("nr".to_owned(), 4.0)].into()),
            paths: [(0, "nr".to_owned()), (9, "wifi".to_owned())].into(),
            ..request("cpe", 7, None)
        };
        let [first, second] = [1, 2].map(Origin::Session);
        w.register(s(0), &first, &asks).unwrap();
        assert_eq!(w.registry.names(7).len(), 1, "path 9 is not validated yet");
        let wish = w.registry.wish(7, &first).unwrap();
        assert_eq!(wish.session, [("nr".to_owned(), 4.0)].into());
        w.registry.fulfilled(7, &first, wish);
        assert_eq!(w.registry.wish(7, &first), None);
        w.sessions = [2].into();
        w.register(s(9), &second, &asks).unwrap();
        assert!(w.registry.wish(7, &second).is_some());
    }

    #[test]
    fn who_has_shown_a_key_is_not_overruled_by_tcp() {
        let mut w = World::new();
        let wants = |weight, over| Request {
            weights: Some([("nr".to_owned(), weight)].into()),
            paths: [(0, "nr".to_owned())].into(),
            ..request("cpe", 7, over)
        };
        let session = Origin::Session(1);
        w.register(s(0), &session, &wants(1.0, None)).unwrap();
        w.by(1, a(1), &wants(9.0, Some("nr")));
        assert_eq!(w.registry.requested(7), [("nr".to_owned(), 1.0)].into());
        // Its session has ended.
        w.sessions.clear();
        w.by(2, a(1), &wants(9.0, Some("nr")));
        assert_eq!(w.registry.requested(7), [("nr".to_owned(), 9.0)].into());
    }

    #[test]
    fn what_a_device_has_no_more_goes() {
        let mut w = World::new();
        w.by(0, a(1), &request("cpe", 7, Some("nr")));
        w.by(0, a(2), &request("cpe", 7, Some("wifi")));
        let mut less = request("cpe", 7, Some("nr"));
        less.accesses.remove("wifi");
        assert_eq!(w.by(1, a(1), &less), ["nr@cpe"]);
        assert_eq!(w.registry.accesses().len(), 1);
        // It is called otherwise from now on.
        less.device = "van".to_owned();
        assert_eq!(w.by(2, a(1), &less), ["nr@van"]);
    }
}
