//! Trials of addresses: they show which lead anywhere.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use braid_core::Time;
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::manage::trial::Tried;

use super::super::samples;
use super::Manager;

impl Manager {
    /// Takes what the sockets tell; returns whether another address may have to take the place
    /// of one.
    pub(super) fn look_at_trials(&mut self, sockets: &[TcpSocket], t: Time) -> bool {
        let view = &self.view;
        let key = |index: u32, address| (view.name(index), address);
        let up = |index: u32| view.interface(index).is_some_and(|i| i.up && i.carrier);
        let there = view.addresses.iter().filter(|a| up(a.ifindex));
        let there: BTreeSet<_> = there.map(|a| key(a.ifindex, a.address)).collect();
        let uses = &self.plan.uses;
        let used = uses.iter().map(|u| key(u.ifindex, u.address)).collect();
        self.memory.trials.keep(&there, &used);
        let silent = self.detector.silent();
        let tried = uses.iter().map(|u| Tried {
            interface: &u.interface,
            address: u.address,
            silent: silent.contains_key(&u.address),
            doubled: there.iter().filter(|(_, a)| *a == u.address).count() > 1,
        });
        let tried: Vec<_> = tried.collect();
        let attempts = samples::attempts(sockets);
        self.memory.trials.look(&tried, &attempts, t)
    }

    /// A probe from this address was answered.
    pub(super) fn answered(&mut self, address: IpAddr, at: Time) {
        let Some(u) = self.plan.uses.iter().find(|u| u.address == address) else {
            return;
        };
        let news = self.memory.trials.answered(&u.interface, address);
        if news && u.trial {
            self.retry = Some(at);
        }
    }

    /// Addresses that are to be watched anew: another interface has taken them over.
    pub(super) fn moved(&mut self, now: &BTreeMap<IpAddr, String>) -> BTreeSet<IpAddr> {
        let before = std::mem::replace(&mut self.probed, now.clone());
        let elsewhere = |(a, i): &(&IpAddr, &String)| before.get(a).is_some_and(|b| b != *i);
        now.iter().filter(elsewhere).map(|(a, _)| *a).collect()
    }
}
