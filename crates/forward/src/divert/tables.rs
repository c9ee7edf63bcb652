//! Tables of rules about a LAN's packets.

use super::MARK;
use crate::inbound::Ports;
use crate::nft::{Chain, Hook, Layer4, Rule, Table};
use crate::tunnel;

/// Table that hands connections to the daemon. It goes with the daemon.
pub(super) const DIVERSION: &str = "braid";
/// Table that keeps a LAN's packets from leaving past the daemon. It stays.
pub(super) const KILL_SWITCH: &str = "braid-kill-switch";

/// Makes the table that hands each TCP connection from a LAN, to whatever destination, to the
/// listeners, and leads all else into the tunnel. What is for this machine itself is left to it,
/// and what stays on its link to the link.
pub(super) fn diversion(lan: &[String], ports: Ports) -> Table {
    let mut rules = vec![];
    for interface in lan {
        let arriving = || Rule::new().arriving_on(interface);
        rules.push(arriving().to_this_machine().accept());
        let families = [(true, Some(ports.v4)), (false, ports.v6)];
        for (v4, port) in families {
            let Some(port) = port else { continue };
            let diverted = arriving().to_socket(v4, Layer4::Tcp, port);
            rules.push(diverted.mark(MARK).counted().accept());
        }
        rules.push(arriving().protocol(Layer4::Tcp).accept());
        rules.push(arriving().to_many().accept());
        rules.push(arriving().mark(tunnel::MARK).counted().accept());
    }
    let lan = Chain {
        name: "lan",
        hook: Hook::Prerouting,
        rules,
    };
    Table {
        name: DIVERSION,
        owned: true,
        chains: std::iter::once(lan)
            .chain(tunnel::rules::device())
            .collect(),
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
