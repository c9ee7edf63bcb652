//! Tables of rules about a LAN's packets.

use std::collections::BTreeMap;

use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::Descriptor;

use super::routes::FAMILIES;
use super::steering::{self, Counts, Facts, Numbered};
use super::{DIRECT, DIRECT_MASK, MARK, RESOLVING, own};
use crate::inbound::Ports;
use crate::nft::{Chain, Hook, Layer4, Rule, Table};
use crate::tunnel;

/// Port of resolvers (RFC 1035 4.2).
const DNS: u16 = 53;
/// Table that hands connections to the daemon. It goes with the daemon.
pub(super) const DIVERSION: &str = "braid";
/// Table that keeps a LAN's packets from leaving past the daemon. It stays.
pub(super) const KILL_SWITCH: &str = "braid-kill-switch";

/// Origin of packets that are diverted, each with chains of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Hosts behind this machine: their packets arrive.
    Hosts,
    /// Programs of this machine: their packets leave a socket.
    Device,
}

impl Side {
    /// Returns the name of a chain of this side.
    pub(super) fn chain(self, name: &str) -> String {
        match self {
            Self::Hosts => name.to_owned(),
            Self::Device => format!("own-{name}"),
        }
    }

    /// Returns the chain of what goes over the bond in a class.
    pub(super) fn bond(self, class: u8) -> String {
        match class {
            DEFAULT_NUMBER => self.chain("bond"),
            _ => self.chain(&format!("bond-{class}")),
        }
    }

    /// Returns the chain that asks the rules.
    pub(super) fn rules(self) -> String {
        self.chain("rules")
    }

    /// Whether traffic of this side may meet a descriptor.
    pub(super) fn meets(self, descriptor: &Descriptor) -> bool {
        match self {
            Self::Hosts => descriptor.is_of_hosts(),
            Self::Device => descriptor.is_of_device(),
        }
    }
}

/// State of the device's own programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OwnPrograms {
    /// Carry what is no connection, too.
    pub(super) carried: bool,
    /// Questions to resolvers leave past the bond where they cannot go through the tunnel.
    pub(super) resolves_past: bool,
}

/// Diversion of a LAN, and of the device's own programs.
#[derive(Clone, Debug)]
pub(super) struct Diversion {
    /// Interfaces to the hosts.
    pub(super) lan: Vec<String>,
    /// Own programs; absent: these leave as the routes say.
    pub(super) own: Option<OwnPrograms>,
    /// Transparent listeners by the numbers of classes, that of the default among them.
    pub(super) ports: BTreeMap<u8, Ports>,
    /// Whether the proxy reaches IPv6.
    pub(super) v6: bool,
    /// Whether what this machine asks of resolvers goes the same way.
    pub(super) dns: bool,
    /// Sockets for questions to resolvers, while these are asked by TCP.
    pub(super) resolvers: Option<Ports>,
    /// Facts on which rules depend.
    pub(super) facts: Facts,
    /// Rules in the order of precedence.
    pub(super) rules: Vec<Numbered>,
}

impl Diversion {
    /// Goes by other rules. What is known of domains that these name, too, stays known.
    pub(super) fn with_rules(mut self, rules: Vec<Numbered>) -> Self {
        self.facts.names = self.facts.names.of(&rules);
        self.rules = rules;
        self
    }

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
            rules.push(arriving().goto(&self.first(Side::Hosts)));
        }
        if self.own.is_some() {
            // Connections of own programs, marked as they left: their flows have a number already.
            let diverted = FAMILIES.map(|v4| {
                let own = Rule::new().arriving_on("lo").from(own::source(v4));
                let own = own.protocol(Layer4::Tcp).marked(MARK);
                own.goto(&self.first(Side::Hosts))
            });
            rules.extend(diverted);
        }
        if self.resolvers.is_some() {
            let asked = Rule::new().arriving_on("lo").to_port(Layer4::Udp, DNS);
            rules.push(asked.marked(MARK).goto(&Side::Hosts.bond(DEFAULT_NUMBER)));
        }
        let mut chains = vec![Chain::at(Hook::Prerouting, "lan", rules)];
        let bonds = self.ports.iter();
        chains.extend(bonds.map(|(class, ports)| self.bond(*class, *ports)));
        if let Some(own) = self.own {
            let classes = self.ports.keys();
            chains.extend(classes.map(|class| self.own_bond(*class, own)));
            let leaving = FAMILIES.map(|v4| {
                let own = Rule::new().from(own::source(v4));
                own.goto(&self.first(Side::Device))
            });
            chains.push(Chain::at(Hook::Output, "own", leaving.into()));
            let source = vec![Rule::new().marked(RESOLVING).masquerade()];
            chains.push(Chain::at(Hook::SourceNat, "resolving-source", source));
        }
        let mut counters = vec![];
        if !self.rules.is_empty() {
            chains.extend(steering::chains(&self.rules, Side::Hosts, &self.facts));
            if self.own.is_some() {
                chains.extend(steering::chains(&self.rules, Side::Device, &self.facts));
            }
            let own = self.own.is_some();
            chains.extend(steering::counting(&self.lan, own, &self.rules));
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
            sets: self.facts.names.sets(),
            chains,
        }
    }

    /// Returns the chain that packets of a side come to first.
    fn first(&self, side: Side) -> String {
        match self.rules.is_empty() {
            true => side.bond(DEFAULT_NUMBER),
            false => side.rules(),
        }
    }

    /// Makes the rules that refuse IPv6 where the proxy reaches none: senders are told at once, so that
    /// they go on with IPv4 (RFC 8305).
    fn unreached(&self) -> Vec<Rule> {
        if self.v6 {
            return vec![];
        }
        let v6 = || Rule::new().family(false);
        vec![
            v6().protocol(Layer4::Tcp).counted().reset(),
            v6().counted().prohibit(),
        ]
    }

    /// Makes the chain of what programs of this machine send over the bond in a class: connections come
    /// back by the loopback, where they are handed to a listener.
    fn own_bond(&self, class: u8, own: OwnPrograms) -> Chain {
        let mut rules = vec![];
        if own.resolves_past {
            for protocol in [Layer4::Udp, Layer4::Tcp] {
                let asked = Rule::new().to_port(protocol, DNS).mark(RESOLVING);
                rules.push(asked.counted().accept());
            }
        }
        rules.extend(self.unreached());
        let tcp = Rule::new().protocol(Layer4::Tcp);
        rules.push(tcp.mark(MARK).counted().accept());
        if self.resolvers.is_some() {
            let asked = Rule::new().to_port(Layer4::Udp, DNS);
            rules.push(asked.mark(MARK).counted().accept());
        }
        rules.push(match own.carried {
            true => Rule::new().mark(tunnel::mark(class)).counted().accept(),
            false => Rule::new().counted().prohibit(),
        });
        Chain::called(Side::Device.bond(class), rules)
    }

    /// Makes the chain of what hosts send over the bond in a class.
    fn bond(&self, class: u8, ports: Ports) -> Chain {
        let mut rules = self.unreached();
        let families = [(true, Some(ports.v4)), (false, ports.v6)];
        for (v4, port) in families {
            let Some(port) = port else { continue };
            let diverted = Rule::new().to_socket(v4, Layer4::Tcp, port);
            rules.push(diverted.mark(MARK).counted().accept());
        }
        rules.push(Rule::new().protocol(Layer4::Tcp).accept());
        if let Some(ports) = self.resolvers {
            for (v4, port) in [(true, Some(ports.v4)), (false, ports.v6)] {
                let Some(port) = port else { continue };
                let asked = Rule::new().to_port(Layer4::Udp, DNS);
                let asked = asked.to_socket(v4, Layer4::Udp, port);
                rules.push(asked.mark(MARK).counted().accept());
            }
        }
        let into = Rule::new().mark(tunnel::mark(class));
        rules.push(into.counted().accept());
        Chain::called(Side::Hosts.bond(class), rules)
    }

    /// Makes the chain that leads into the tunnel what this machine asks of resolvers elsewhere: for
    /// its hosts, if it serves DNS to them.
    fn resolving(&self) -> Chain {
        let mut rules = vec![Rule::new().to_this_machine().accept()];
        if self.own.is_some() {
            // They go over the bond as all else.
            rules.extend(FAMILIES.map(|v4| Rule::new().from(own::source(v4)).accept()));
        }
        let to_hosts = |to: &String| Rule::new().leaving_by(to).accept();
        rules.extend(self.lan.iter().map(to_hosts));
        for (protocol, mark) in [
            (Layer4::Udp, self.resolvers.map_or(tunnel::MARK, |_| MARK)),
            (Layer4::Tcp, tunnel::MARK),
        ] {
            let asked = Rule::new().to_port(protocol, DNS);
            rules.push(asked.mark(mark).counted());
        }
        Chain::at(Hook::Output, "resolving", rules)
    }
}

/// Makes the table that refuses what a LAN would send past the daemon: whatever is forwarded to
/// an interface that is none of the LAN's, but for what a rule sends there. With `own` it refuses what
/// programs of this machine would send, too.
pub(super) fn kill_switch(lan: &[String], own: bool) -> Table {
    let mut chains = vec![Chain::at(Hook::Forward, "forward", forwarded(lan))];
    if own {
        let own = FAMILIES.map(|v4| Rule::new().from(own::source(v4)).goto("own"));
        chains.push(Chain::at(Hook::Leaving, "output", own.into()));
        chains.push(Chain::called("own", unmarked()));
    }
    Table {
        name: KILL_SWITCH,
        owned: false,
        counters: vec![],
        sets: vec![],
        chains,
    }
}

/// Makes the rules that refuse what a program of this machine sends and no daemon has marked.
fn unmarked() -> Vec<Rule> {
    let marks = [
        (MARK, u32::MAX),
        (RESOLVING, u32::MAX),
        (DIRECT, DIRECT_MASK),
        (tunnel::MARK, u32::MAX),
        (tunnel::CLASS_MARK, tunnel::CLASS_MASK),
    ];
    let mut rules: Vec<_> = marks
        .into_iter()
        .map(|(mark, mask)| Rule::new().marked_within(mark, mask).accept())
        .collect();
    rules.push(Rule::new().to_this_machine().accept());
    rules.push(Rule::new().protocol(Layer4::Tcp).counted().reset());
    rules.push(Rule::new().counted().prohibit());
    rules
}

/// Makes the rules that refuse what hosts send and is forwarded past the daemon.
fn forwarded(lan: &[String]) -> Vec<Rule> {
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
    rules
}
