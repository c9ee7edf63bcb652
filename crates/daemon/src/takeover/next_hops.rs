//! The next hops that interfaces had, for the daemon that follows one that was killed: the
//! kernel drops the routes of an interface that is down. In a file beside the control socket.

use std::net::IpAddr;
use std::path::Path;

use braid_access::memory::{Hop, Memory, Remembered};
use braid_access::view::{Route, View};
use serde::{Deserialize, Serialize};

use crate::takeover::state_file::KeptFile;

/// A next hop as it stands in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptHop {
    interface: String,
    v4: bool,
    table: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<IpAddr>,
    gateway: Option<IpAddr>,
    #[serde(default)]
    onlink: bool,
    metric: u32,
    #[serde(default)]
    addresses: Vec<IpAddr>,
}

impl From<&Remembered> for KeptHop {
    fn from(r: &Remembered) -> Self {
        Self {
            interface: r.interface.clone(),
            v4: r.v4,
            table: r.table,
            to: r.to,
            gateway: r.hop.gateway,
            onlink: r.hop.onlink,
            metric: r.hop.metric,
            addresses: r.addresses.clone(),
        }
    }
}

impl From<KeptHop> for Remembered {
    fn from(l: KeptHop) -> Self {
        Self {
            interface: l.interface,
            v4: l.v4,
            table: l.table,
            to: l.to,
            hop: Hop {
                gateway: l.gateway,
                onlink: l.onlink,
                metric: l.metric,
            },
            addresses: l.addresses,
        }
    }
}

/// The file. It goes with a daemon that ends in order, unless an interface is down.
pub(crate) struct Routes {
    file: KeptFile,
    kept: Vec<Remembered>,
}

impl Routes {
    /// And what the daemon before had seen. Gateways are held against the interface's network
    /// before they are used, as all are.
    pub(crate) fn beside(control: &Path) -> (Self, Memory) {
        let mut file = KeptFile::beside(control, ".routes", "by which gateways interfaces led out");
        let hops = file.read::<Vec<KeptHop>>();
        // One that cannot even begin changes nothing.
        file.stay(hops.is_some());
        let mut memory = Memory::default();
        let hops = hops.unwrap_or_default().into_iter();
        memory.recall(hops.map(Remembered::from));
        (Self { file, kept: vec![] }, memory)
    }

    /// Keeps what is new.
    pub(crate) fn keep(&mut self, memory: &Memory) {
        let now = memory.remembered();
        if now != self.kept {
            let hops: Vec<KeptHop> = now.iter().map(KeptHop::from).collect();
            if self.file.write(&hops) {
                self.kept = now;
            }
        }
    }

    /// The daemon ends in order, with what it has set: is there an interface by which only we
    /// know a way out?
    pub(crate) fn end(&mut self, memory: &Memory, view: &View) {
        let lost = |r: &Remembered| {
            let mut all = view.interfaces.iter();
            let interface = all.find(|i| i.name == r.interface);
            let mut theirs = view.routes.iter().filter(|d| !d.is_ours());
            interface.is_some_and(|i| {
                let there = |d: &Route| {
                    let table = r.table.is_none_or(|t| d.table == t);
                    let leads = match r.to {
                        Some(to) => d.to.contains(&to),
                        None => d.is_default() && d.is_v4() == r.v4,
                    };
                    d.ifindex == i.index && leads && table
                };
                !theirs.any(there)
            })
        };
        self.file.stay(memory.remembered().iter().any(lost));
    }

    /// There are no routes to look after.
    pub(crate) fn forget(&mut self) {
        self.file.stay(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_access::view::{Interface, MAIN_TABLE, PROTOCOL, everywhere};
    use proptest::prelude::*;

    fn remembered() -> impl Strategy<Value = Remembered> {
        let hop = (any::<Option<IpAddr>>(), any::<bool>(), any::<u32>());
        let hop = hop.prop_map(|(gateway, onlink, metric)| Hop {
            gateway,
            onlink,
            metric,
        });
        let to = (any::<Option<IpAddr>>(), any::<Vec<IpAddr>>());
        let table = any::<Option<u32>>();
        ("[a-z]{1,15}", any::<bool>(), table, to, hop).prop_map(
            |(interface, v4, table, (to, addresses), hop)| Remembered {
                interface,
                v4,
                table,
                to: to.filter(|_| table.is_none()),
                hop,
                addresses,
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_seen_is_found_again(all in prop::collection::vec(remembered(), 0..6)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            let mut memory = Memory::default();
            memory.recall(all);
            let (mut routes, nothing) = Routes::beside(&control);
            prop_assert_eq!(nothing.remembered(), []);
            routes.keep(&memory);
            // Killed: nothing is dropped.
            std::mem::forget(routes);
            let (mut routes, again) = Routes::beside(&control);
            prop_assert_eq!(again.remembered(), memory.remembered());
            // IPv4 may lead by an IPv6 gateway, and not the other way round.
            let fits = |r: &Remembered| r.hop.gateway.is_none_or(|g| r.v4 || g.is_ipv6());
            prop_assert!(again.remembered().iter().all(fits));
            routes.forget();
            drop(routes);
            prop_assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
        }

        #[test]
        fn garbage_tells_nothing(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            std::fs::write(t.path().join("c.sock.routes"), text).unwrap();
            prop_assert_eq!(Routes::beside(&control).1.remembered(), []);
        }
    }

    #[test]
    fn it_stays_for_as_long_as_a_route_is_lost() {
        let t = tempfile::tempdir().unwrap();
        let control = t.path().join("c.sock");
        let wifi = Interface {
            index: 4,
            name: "w".into(),
            ..Interface::default()
        };
        let route = Route {
            gateway: Some([192, 0, 2, 1].into()),
            metric: 600,
            protocol: 16,
            ..Route::new(MAIN_TABLE, everywhere(true), 4)
        };
        let with = |interfaces: &[Interface], routes: &[Route]| View {
            interfaces: interfaces.to_vec(),
            routes: routes.to_vec(),
            ..View::default()
        };
        let there = with(std::slice::from_ref(&wifi), std::slice::from_ref(&route));
        let down = with(std::slice::from_ref(&wifi), &[]);
        let by_us = Route {
            protocol: PROTOCOL,
            ..route
        };
        let ours = with(std::slice::from_ref(&wifi), &[by_us]);
        let gone = with(&[], &[]);
        let (mut routes, mut memory) = Routes::beside(&control);
        memory.learn(&there, &[]);
        for (view, stays) in [
            (&there, false),
            (&down, true),
            (&ours, true),
            (&gone, false),
        ] {
            routes.keep(&memory);
            routes.end(&memory, view);
            drop(routes);
            let again;
            (routes, again) = Routes::beside(&control);
            let expected = if stays { memory.remembered() } else { vec![] };
            assert_eq!(again.remembered(), expected, "{view:?}");
        }
    }
}
