//! Addresses of the proxy that devices are told of (ADD_ADDR, RFC 8684 3.4.1): for accesses
//! that do not reach the one that was connected to.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use braid_mptcp::diag::Diag;
use braid_mptcp::pm::{Endpoint, EndpointFlags, PathManager};

use super::Mptcp;
use crate::DaemonError;
use crate::state::lock;

/// Ids of our endpoints, by which those of an end that was killed are known.
const IDS: std::ops::RangeInclusive<u8> = 248..=255;

/// Steps to be taken with the endpoints that are there.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    delete: Vec<u8>,
    add: Vec<Endpoint>,
    stay: Vec<IpAddr>,
}

/// Addresses that are announced to devices.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    wanted: Vec<IpAddr>,
    /// Not wanted, but connections are on them.
    stay: Vec<IpAddr>,
}

impl Announced {
    /// Announces these addresses to devices, from now on and in connections that live, and no
    /// others of ours, except for those that connections are on.
    pub(crate) fn set(
        &mut self,
        pm: &mut PathManager,
        wanted: &[IpAddr],
    ) -> Result<(), DaemonError> {
        wanted.clone_into(&mut self.wanted);
        self.apply(pm)?;
        if !self.stay.is_empty() {
            let all: Vec<_> = self.stay.iter().map(IpAddr::to_string).collect();
            tracing::info!(
                "announced as long as connections are on it: {}\n  to end these: \
                 ip mptcp endpoint delete id ID, as of ip mptcp endpoint show",
                all.join(", ")
            );
        }
        Ok(())
    }

    /// Takes back what connections were on.
    pub(crate) fn withdraw(&mut self, pm: &mut PathManager) -> Result<(), DaemonError> {
        match self.stay.is_empty() {
            true => Ok(()),
            false => self.apply(pm),
        }
    }

    fn apply(&mut self, pm: &mut PathManager) -> Result<(), DaemonError> {
        let there = pm.endpoints()?;
        // Asked only where there is something to take back: it is a list of all sockets.
        let used = match there.iter().any(|e| unwanted(e, &self.wanted)) {
            true => Diag::open()?.addresses_in_use()?,
            false => BTreeSet::new(),
        };
        let change = change(&there, &self.wanted, &used);
        for id in change.delete {
            pm.delete(id)?;
        }
        for endpoint in change.add {
            pm.add(&endpoint)?;
        }
        self.stay = change.stay;
        Ok(())
    }
}

/// Between two looks whether connections are still there.
const EVERY: Duration = Duration::from_secs(1);

/// Takes back what is announced for the sake of connections alone, once they have ended.
pub(super) async fn watch(state: Arc<Mptcp>) -> DaemonError {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(e) = lock(&state.namespace).withdraw() {
            tracing::warn!("{e}; it is tried again");
        }
    }
}

/// Ours, and not announced any more.
fn unwanted(e: &Endpoint, wanted: &[IpAddr]) -> bool {
    IDS.contains(&e.id) && e.flags == EndpointFlags::SIGNAL && !wanted.contains(&e.address)
}

/// The kernel ends the subflows of an endpoint that is deleted, and with the last of them a
/// connection: so those `used` stay.
fn change(there: &[Endpoint], wanted: &[IpAddr], used: &BTreeSet<IpAddr>) -> Change {
    let unwanted = there.iter().filter(|e| unwanted(e, wanted));
    let (stay, delete): (Vec<_>, Vec<_>) = unwanted.partition(|e| used.contains(&e.address));
    let delete: Vec<u8> = delete.iter().map(|e| e.id).collect();
    let taken: BTreeSet<u8> = there.iter().map(|e| e.id).collect();
    let free = IDS.filter(|id| !taken.contains(id) || delete.contains(id));
    // Somebody else's announces it as well.
    let known = |a: &&IpAddr| {
        let announces = |e: &Endpoint| e.address == **a && e.flags.contains(EndpointFlags::SIGNAL);
        there.iter().any(announces)
    };
    let new = wanted.iter().filter(|a| !known(a)).zip(free);
    let add = new.map(|(address, id)| Endpoint {
        id,
        ..Endpoint::new(*address, None, EndpointFlags::SIGNAL)
    });
    Change {
        add: add.collect(),
        delete,
        stay: stay.iter().map(|e| e.address).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn address() -> impl Strategy<Value = IpAddr> {
        (0u8..12).prop_map(|n| IpAddr::from([192, 0, 2, n]))
    }

    fn endpoints() -> impl Strategy<Value = Vec<Endpoint>> {
        let flags = prop::sample::select(vec![EndpointFlags::SIGNAL, EndpointFlags::SUBFLOW]);
        let by_address = prop::collection::btree_map(address(), (flags, 240u8..=255), 0..6);
        by_address.prop_map(|all| {
            let mut ids = BTreeSet::new();
            let all = all.into_iter().map(|(address, (flags, id))| Endpoint {
                id,
                ..Endpoint::new(address, None, flags)
            });
            all.filter(|e| ids.insert(e.id)).collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_wanted_is_announced_and_nothing_of_others_goes(
            mut there in endpoints(), wanted in prop::collection::btree_set(address(), 0..3),
            used in prop::collection::btree_set(address(), 0..3),
        ) {
            let wanted: Vec<_> = wanted.into_iter().collect();
            let others = there.clone();
            let c = change(&there, &wanted, &used);
            let stay: BTreeSet<_> = c.stay.iter().copied().collect();
            prop_assert!(stay.is_subset(&used));
            there.retain(|e| !c.delete.contains(&e.id));
            for e in c.add {
                prop_assert!(there.iter().all(|t| t.id != e.id));
                there.push(e);
            }
            for e in &others {
                let ours = IDS.contains(&e.id) && e.flags == EndpointFlags::SIGNAL;
                prop_assert!(ours || there.contains(e));
            }
            let announces = |e: &Endpoint, a| e.address == a && e.flags == EndpointFlags::SIGNAL;
            let announced = |a: &IpAddr| there.iter().any(|e| announces(e, *a));
            prop_assert!(wanted.iter().all(announced));
            for e in others.iter().filter(|e| used.contains(&e.address)) {
                prop_assert!(there.contains(e));
            }
            // Later, when nothing is on them any more.
            let rest = change(&there, &wanted, &BTreeSet::new());
            prop_assert_eq!((rest.add, rest.stay), (vec![], vec![]));
            prop_assert_eq!(rest.delete.len(), stay.len());
        }
    }
}
