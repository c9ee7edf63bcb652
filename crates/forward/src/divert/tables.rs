//! Tables of rules about a LAN's packets.

use std::collections::BTreeMap;

use braid_core::class::DEFAULT_NUMBER;

use super::steering::{self, Counts, Numbered};
use super::{DIRECT, DIRECT_MASK, MARK};
use crate::inbound::Ports;
use crate::nft::{Chain, Hook, Layer4, Rule, Table};
use crate::tunnel;

/// Port of resolvers (RFC 1035 4.2).
const DNS: u16 = 53;
/// Table that hands connections to the daemon. It goes with the daemon.
pub(super) const DIVERSION: &str = "braid";
/// Table that keeps a LAN's packets from leaving past the daemon. It stays.
pub(super) const KILL_SWITCH: &str = "braid-kill-switch";
/// Chain of what goes over the bond, in the default class.
pub(super) const BOND: &str = "bond";

/// Returns the chain of what goes over the bond in a class.
pub(super) fn bond(class: u8) -> String {
    match class {
        DEFAULT_NUMBER => BOND.to_owned(),
        _ => format!("{BOND}-{class}"),
    }
}

/// Diversion of a LAN.
#[derive(Clone, Debug)]
pub(super) struct Diversion {
    /// Interfaces to the hosts.
    pub(super) lan: Vec<String>,
    /// Transparent listeners by the numbers of classes, that of the default among them.
    pub(super) ports: BTreeMap<u8, Ports>,
    /// Whether the proxy reaches IPv6.
    pub(super) v6: bool,
    /// Whether what this machine asks of resolvers goes the same way.
    pub(super) dns: bool,
    /// Rules in the order of precedence.
    pub(super) rules: Vec<Numbered>,
}

impl Diversion {
    /// Makes the table that hands each TCP connection from a LAN, to whatever destination, to the
    /// listeners, and leads all else into the tunnel, as far as no rule says otherwise. What is for
    /// this machine itself is left to it, what stays on its link to the link, and what goes to
    /// another host of the LAN to that. `counts`: what the rules have counted before.
    pub(super) fn table(&self, counts: &Counts) -> Table {
        let mut rules = vec![];
        for interface in &self.lan {
            let arriving = || Rule::new().arriving_on(interface);
            rules.push(arriving().to_this_machine().accept());
            rules.push(arriving().to_many().accept());
            rules.extend(self.lan.iter().map(|to| arriving().routed_by(to).accept()));
            rules.push(arriving().goto(match self.rules.is_empty() {
                true => BOND,
                false => steering::CHAIN,
            }));
        }
        let mut chains = vec![Chain::at(Hook::Prerouting, "lan", rules)];
        let bonds = self.ports.iter();
        chains.extend(bonds.map(|(class, ports)| self.bond(*class, *ports)));
        let mut counters = vec![];
        if !self.rules.is_empty() {
            chains.extend(steering::chains(&self.rules));
            chains.extend(steering::counting(&self.lan, &self.rules));
            counters = steering::counters(&self.rules, counts);
            let direct = Rule::new().marked_within(DIRECT, DIRECT_MASK);
            let source = vec![direct.masquerade()];
            chains.push(Chain::at(Hook::SourceNat, "direct-source", source));
        }
        chains.extend(self.dns.then(|| self.resolving()));
        chains.extend(tunnel::rules::device());
        Table {
            name: DIVERSION,
            owned: true,
            counters,
            chains,
        }
    }

    /// Makes the chain of what goes over the bond in a class. Where the proxy reaches no IPv6, hosts are told at
    /// once, so that they go on with IPv4 (RFC 8305).
    fn bond(&self, class: u8, ports: Ports) -> Chain {
        let mut rules = vec![];
        if !self.v6 {
            let tcp = Rule::new().family(false).protocol(Layer4::Tcp);
            rules.push(tcp.counted().reset());
            rules.push(Rule::new().family(false).counted().prohibit());
        }
        let families = [(true, Some(ports.v4)), (false, ports.v6)];
        for (v4, port) in families {
            let Some(port) = port else { continue };
            let diverted = Rule::new().to_socket(v4, Layer4::Tcp, port);
            rules.push(diverted.mark(MARK).counted().accept());
        }
        rules.push(Rule::new().protocol(Layer4::Tcp).accept());
        let into = Rule::new().mark(tunnel::mark(class));
        rules.push(into.counted().accept());
        Chain::called(bond(class), rules)
    }

    /// Makes the chain that leads into the tunnel what this machine asks of resolvers elsewhere: for
    /// its hosts, if it serves DNS to them.
    fn resolving(&self) -> Chain {
        let mut rules = vec![Rule::new().to_this_machine().accept()];
        let to_hosts = |to: &String| Rule::new().leaving_by(to).accept();
        rules.extend(self.lan.iter().map(to_hosts));
        for protocol in [Layer4::Udp, Layer4::Tcp] {
            let asked = Rule::new().to_port(protocol, DNS);
            rules.push(asked.mark(tunnel::MARK).counted());
        }
        Chain::at(Hook::Output, "resolving", rules)
    }
}

/// Makes the table that refuses what a LAN would send past the daemon: whatever is forwarded to
/// an interface that is none of the LAN's, but for what a rule sends there.
pub(super) fn kill_switch(lan: &[String]) -> Table {
    let mut rules = vec![];
    for from in lan {
        let arriving = || Rule::new().arriving_on(from);
        rules.extend(lan.iter().map(|to| arriving().leaving_by(to).accept()));
        // Both are there with a daemon alone: the interfaces, and who gives the mark.
        let into = tunnel::classes().map(tunnel::interface);
        rules.extend(into.map(|name| arriving().leaving_by(&name).accept()));
        rules.push(arriving().marked_within(DIRECT, DIRECT_MASK).accept());
        // Whoever sent it is told, so that programs do not wait.
        let tcp = arriving().protocol(Layer4::Tcp);
        rules.push(tcp.counted().reset());
        rules.push(arriving().counted().prohibit());
    }
    Table {
        name: KILL_SWITCH,
        owned: false,
        counters: vec![],
        chains: vec![Chain::at(Hook::Forward, "forward", rules)],
    }
}
