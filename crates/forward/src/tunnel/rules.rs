//! Rules about what comes out of the tunnel and what goes into it, at either end.

use ipnet::IpNet;

use super::INTERFACE;
use super::pool::Pools;
use crate::egress::{Allowed, special};
use crate::nft::{Chain, Hook, Rule, Table};

/// Table of the proxy; it goes with the daemon.
const GATEWAY: &str = "braid-gateway";

fn arriving() -> Rule {
    Rule::new().arriving_on(INTERFACE)
}

/// Accepts of what comes out of the tunnel what belongs to something that went in.
fn answers_alone() -> Vec<Rule> {
    vec![
        arriving().established().accept(),
        arriving().counted().drop(),
    ]
}

/// Makes the chains of the device: what comes out of the tunnel belongs to what went in, and what
/// goes in, of whatever class, gets the device's address.
pub(crate) fn device() -> [Chain; 3] {
    let into = super::classes().map(super::interface);
    let source = into.map(|name| Rule::new().leaving_by(&name).masquerade());
    [
        Chain::at(Hook::Forward, "tunnel-forward", answers_alone()),
        Chain::at(Hook::Input, "tunnel-input", answers_alone()),
        Chain::at(Hook::SourceNat, "tunnel-source", source.collect()),
    ]
}

/// Makes the table of a proxy that lets devices reach what is `allowed`.
pub(super) fn gateway(pools: Pools, allowed: &Allowed) -> Table {
    let mut forward = vec![
        // Devices do not reach each other.
        arriving().leaving_by(INTERFACE).counted().prohibit(),
        arriving().established().accept(),
    ];
    let networks = allowed.networks.iter();
    forward.extend(networks.map(|net| arriving().to(*net).accept()));
    if allowed.internet {
        forward.extend(special().map(|net| arriving().to(net).counted().prohibit()));
    } else {
        forward.push(arriving().counted().prohibit());
    }
    // Nor are they reached by what they have not begun.
    let leaving = || Rule::new().leaving_by(INTERFACE);
    forward.push(leaving().established().accept());
    forward.push(leaving().counted().drop());

    let nets = [Some(IpNet::from(pools.v4)), pools.v6.map(IpNet::from)];
    let translated = nets.into_iter().flatten();
    let translated = translated.map(|net| {
        let from = Rule::new().from(net).not_leaving_by(INTERFACE);
        from.masquerade()
    });
    Table {
        name: GATEWAY,
        owned: true,
        counters: vec![],
        sets: vec![],
        chains: vec![
            Chain::at(Hook::Forward, "forward", forward),
            Chain::at(Hook::Input, "input", answers_alone()),
            Chain::at(Hook::SourceNat, "source", translated.collect()),
        ],
    }
}
