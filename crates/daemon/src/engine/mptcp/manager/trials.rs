//! Trials of addresses: they show which lead anywhere.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_access::trial::Tried;
use braid_core::Time;
use braid_mptcp::diag::TcpSocket;

use super::super::samples;
use super::Manager;

impl Manager {
    /// Takes what the sockets tell; returns whether another address may have to take the place
    /// of one.
    pub(crate) fn look_at_trials(&mut self, sockets: &[TcpSocket], t: Time) -> bool {
        let view = &self.view;
        let key = |index: u32, address| (view.name(index), address);
        let up = |index: u32| view.interface(index).is_some_and(|i| i.up && i.carrier);
        let there = view.addresses.iter().filter(|a| up(a.ifindex));
        let there: BTreeSet<_> = there.map(|a| key(a.ifindex, a.address)).collect();
        let uses = &self.plan.uses;
        let used = uses.iter().map(|u| key(u.ifindex, u.address)).collect();
        self.memory.known.trials.keep(&there, &used);
        let silent = self.liveness.detector.silent();
        let tried = uses.iter().map(|u| Tried {
            interface: &u.interface,
            address: u.address,
            silent: silent.contains_key(&u.address),
            doubled: there.iter().filter(|(_, a)| *a == u.address).count() > 1,
        });
        let tried: Vec<_> = tried.collect();
        let attempts = samples::attempts(sockets);
        self.memory.known.trials.look(&tried, &attempts, t)
    }

    /// Takes what came back to this address from the proxy.
    pub(crate) fn answered(&mut self, address: IpAddr, at: Time) {
        self.liveness.detector.heard(address);
        let Some(u) = self.plan.uses.iter().find(|u| u.address == address) else {
            return;
        };
        let news = self.memory.known.trials.answered(&u.interface, address);
        // Its access is in another state now.
        if news {
            self.retry = Some(at);
        }
    }
}
