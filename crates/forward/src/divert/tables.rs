//! Tables of rules about a LAN's packets.

use super::MARK;
use crate::inbound::Ports;
use crate::nft::{Chain, Hook, Layer4, Rule, Table};
use crate::tunnel;

/// Port of resolvers (RFC 1035 4.2).
const DNS: u16 = 53;
/// Table that hands connections to the daemon. It goes with the daemon.
pub(super) const DIVERSION: &str = "braid";
/// Table that keeps a LAN's packets from leaving past the daemon. It stays.
pub(super) const KILL_SWITCH: &str = "braid-kill-switch";

/// Makes the table that hands each TCP connection from a LAN, to whatever destination, to the
/// listeners, and leads all else into the tunnel. What is for this machine itself is left to it,
/// what stays on its link to the link, and what goes to another host of the LAN to that. Where the
/// proxy reaches no IPv6, hosts are told at once, so that they go on with IPv4 (RFC 8305).
pub(super) fn diversion(lan: &[String], ports: Ports, v6: bool, dns: bool) -> Table {
    let mut rules = vec![];
    for interface in lan {
        let arriving = || Rule::new().arriving_on(interface);
        rules.push(arriving().to_this_machine().accept());
        rules.push(arriving().to_many().accept());
        rules.extend(lan.iter().map(|to| arriving().routed_by(to).accept()));
        if !v6 {
            let tcp = arriving().family(false).protocol(Layer4::Tcp);
            rules.push(tcp.counted().reset());
            rules.push(arriving().family(false).counted().prohibit());
        }
        let families = [(true, Some(ports.v4)), (false, ports.v6)];
        for (v4, port) in families {
            let Some(port) = port else { continue };
            let diverted = arriving().to_socket(v4, Layer4::Tcp, port);
            rules.push(diverted.mark(MARK).counted().accept());
        }
        rules.push(arriving().protocol(Layer4::Tcp).accept());
        rules.push(arriving().mark(tunnel::MARK).counted().accept());
    }
    let hosts = Chain {
        name: "lan",
        hook: Hook::Prerouting,
        rules,
    };
    Table {
        name: DIVERSION,
        owned: true,
        chains: std::iter::once(hosts)
            .chain(dns.then(|| resolving(lan)))
            .chain(tunnel::rules::device())
            .collect(),
    }
}

/// Makes the chain that leads into the tunnel what this machine asks of resolvers elsewhere: for its
/// hosts, if it serves DNS to them.
fn resolving(lan: &[String]) -> Chain {
    let mut rules = vec![Rule::new().to_this_machine().accept()];
    rules.extend(lan.iter().map(|to| Rule::new().leaving_by(to).accept()));
    for protocol in [Layer4::Udp, Layer4::Tcp] {
        let asked = Rule::new().to_port(protocol, DNS);
        rules.push(asked.mark(tunnel::MARK).counted());
    }
    Chain {
        name: "resolving",
        hook: Hook::Output,
        rules,
    }
}

/// Makes the table that refuses what a LAN would send past the daemon: whatever is forwarded to
/// an interface that is none of the LAN's.
pub(super) fn kill_switch(lan: &[String]) -> Table {
    let mut rules = vec![];
    for from in lan {
        let arriving = || Rule::new().arriving_on(from);
        rules.extend(lan.iter().map(|to| arriving().leaving_by(to).accept()));
        // It is there with a daemon alone.
        rules.push(arriving().leaving_by(tunnel::INTERFACE).accept());
        // Whoever sent it is told, so that programs do not wait.
        let tcp = arriving().protocol(Layer4::Tcp);
        rules.push(tcp.counted().reset());
        rules.push(arriving().counted().prohibit());
    }
    Table {
        name: KILL_SWITCH,
        owned: false,
        chains: vec![Chain {
            name: "forward",
            hook: Hook::Forward,
            rules,
        }],
    }
}
