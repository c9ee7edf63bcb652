//! Rules of steering as chains of nftables.
//!
//! Rules are about flows: the chain [`CHAIN`] asks them, one after the other, at the first packet
//! of each, and the rule that decides puts its number into the upper byte of the flow's mark
//! (conntrack). What follows goes by that number, and is counted by it both ways.
//!
//! Criteria of one value stand where the rule is asked. One of several has a chain, which leaves a
//! mark on packets that meet one of them: alternatives that led on from there would be checked by
//! the kernel in all their combinations.

use std::collections::BTreeMap;

use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::{self, Client, Descriptor, Outcome, User};

use super::direct::Unled;
use super::groups::Groups;
use super::names::Names;
use super::own;
use super::routes::FAMILIES;
use super::tables::Side;
use super::{DIRECT, MAX_WAYS};
use crate::nft::{Chain, Count, Counter, Hook, Layer4, Rule};

/// Number of the flows that meet no rule.
pub const DEFAULT: u8 = u8::MAX;

/// Mark of packets that meet a criterion of several values, while rules are asked.
const MET: u32 = 0xb1f;

/// Rule, with the number of its way where it sends flows directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steered {
    /// The rule.
    pub rule: rules::Rule,
    /// Number of its class where it sends flows over the bond; else that of the default.
    pub class: u8,
    /// Number of its way, below [`MAX_WAYS`].
    pub(super) way: Option<u8>,
}

/// Rule in force, with the number that its flows have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// Number, 1 to 254: the same as long as the rule is there, wherever it stands.
    pub number: u8,
    /// The rule.
    pub steered: Steered,
}

/// Numbers rules. Those that are in force as they are keep their numbers, and others get such as none
/// of these has: flows that go by a number are the rule's.
pub(super) fn numbered(new: Vec<Steered>, before: &[Numbered]) -> Vec<Numbered> {
    let mut kept: Vec<Option<u8>> = Vec::new();
    for steered in &new {
        let mut same = before.iter().filter(|b| b.steered == *steered);
        let number = same
            .find(|b| !kept.contains(&Some(b.number)))
            .map(|b| b.number);
        kept.push(number);
    }
    let is_kept = |n: &u8| kept.contains(&Some(*n));
    let was_there = |n: &u8| before.iter().any(|b| b.number == *n);
    let all = 1..DEFAULT;
    // Those of rules that go now come last.
    let fresh = all.clone().filter(|n| !was_there(n));
    let freed = all.filter(|n| was_there(n) && !is_kept(n));
    let free: Vec<u8> = fresh.chain(freed).collect();
    let mut free = free.into_iter();
    let all = new.into_iter().zip(&kept);
    let all = all.filter_map(|(steered, kept)| {
        let number = kept.or_else(|| free.next())?;
        Some(Numbered { number, steered })
    });
    all.collect()
}

/// Count of what has met a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// Flows that have begun; of those that are refused, attempts.
    pub flows: u64,
    /// Packets from hosts.
    pub up: Count,
    /// Packets to hosts.
    pub down: Count,
}

/// Counts by the number of the rule, from 1; [`DEFAULT`] of what meets none.
pub type Counts = BTreeMap<u8, RuleCount>;

/// Kinds of counters of a rule.
const KINDS: [&str; 3] = ["flows", "up", "down"];

fn counter(number: u8, kind: &str) -> String {
    match number {
        DEFAULT => format!("default_{kind}"),
        _ => format!("rule_{number}_{kind}"),
    }
}

/// Lists the numbers of rules, and that of the default.
fn numbers(rules: &[Numbered]) -> impl Iterator<Item = u8> {
    rules.iter().map(|r| r.number).chain([DEFAULT])
}

/// Makes the counters of rules.
pub(super) fn counters(rules: &[Numbered], from: &Counts) -> Vec<Counter> {
    let of = |number| {
        let count = from.get(&number).copied().unwrap_or_default();
        let flows = Count {
            packets: count.flows,
            bytes: 0,
        };
        let kinds = KINDS.into_iter().zip([flows, count.up, count.down]);
        kinds.map(move |(kind, from)| Counter {
            name: counter(number, kind),
            from,
        })
    };
    numbers(rules).flat_map(of).collect()
}

/// Returns the counts of rules out of the counters of their table.
pub(super) fn counts(rules: &[Numbered], read: &BTreeMap<String, Count>) -> Counts {
    let of = |number| {
        let [flows, up, down] = KINDS.map(|kind| {
            let found = read.get(&counter(number, kind));
            found.copied().unwrap_or_default()
        });
        let flows = flows.packets;
        (number, RuleCount { flows, up, down })
    };
    numbers(rules).map(of).collect()
}

/// Facts that change while the rules are as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Ways by which nothing leaves now.
    pub(super) unled: Unled,
    /// Control groups of the units that rules name.
    pub(super) groups: Groups,
    /// Addresses of the domains that rules name.
    pub(super) names: Names,
}

/// Makes the chains by which rules decide about what comes from one side.
pub(super) fn chains(rules: &[Numbered], side: Side, facts: &Facts) -> Vec<Chain> {
    let then = |number: u8| match number {
        DEFAULT => side.bond(DEFAULT_NUMBER),
        _ => side.chain(&format!("rule-{number}-then")),
    };
    // Connections that the daemon has stay with it, whatever rules there were when they began.
    let mut asked = match side {
        Side::Hosts => {
            let socket = || Rule::new().of_transparent_socket();
            let number = socket().of_flow(0).number_flow(DEFAULT);
            vec![number, socket().goto(&side.bond(DEFAULT_NUMBER))]
        }
        Side::Device => {
            let under_way = Rule::new().protocol(Layer4::Tcp).established();
            vec![under_way.of_flow(0).number_flow(DEFAULT)]
        }
    };
    let known = numbers(rules).map(|n| Rule::new().of_flow(n).goto(&then(n)));
    asked.extend(known);
    let mut chains = vec![];
    for Numbered { number, steered } in rules {
        // Packets of the device's own flows come by the other side's chains, too, with their number.
        let outcome = outcome(*number, steered, side, &facts.unled);
        chains.push(Chain::called(then(*number), outcome));
        if !side.meets(&steered.rule.descriptor) {
            continue;
        }
        let name = side.chain(&format!("rule-{number}"));
        let (conditions, mut decides, own) = criteria(&steered.rule.descriptor, facts, &name);
        asked.push(conditions.jump(&name));
        decides.extend(begun(*number));
        decides.push(Rule::new().goto(&then(*number)));
        chains.extend(own);
        chains.push(Chain::called(name, decides));
    }
    asked.extend(begun(DEFAULT));
    asked.push(Rule::new().goto(&side.bond(DEFAULT_NUMBER)));
    chains.push(Chain::called(side.rules(), asked));
    chains
}

/// Numbers and counts a flow.
fn begun(number: u8) -> [Rule; 2] {
    [
        Rule::new().number_flow(number),
        Rule::new().counted_as(&counter(number, "flows")),
    ]
}

/// Makes the rules of what becomes of a rule's packets.
fn outcome(number: u8, steered: &Steered, side: Side, unled: &Unled) -> Vec<Rule> {
    match (&steered.rule.outcome, steered.way) {
        (Outcome::Class(_), _) => vec![Rule::new().goto(&side.bond(steered.class))],
        (Outcome::Direct(_), Some(way)) => {
            debug_assert!(way < MAX_WAYS);
            let mut rules = vec![Rule::new().mark(DIRECT + u32::from(way))];
            // Told here, TCP ends at once: of what routing says there are a few a second, and to a
            // program's connection it says nothing.
            let mut refuse = |condition: &dyn Fn() -> Rule| {
                rules.push(condition().protocol(Layer4::Tcp).reset());
                rules.push(condition().prohibit());
            };
            match side {
                Side::Hosts => refuse(&|| Rule::new().unrouted()),
                // Where packets leave a program the kernel's routes cannot be asked.
                Side::Device => {
                    let families = FAMILIES.into_iter();
                    let lost = families.filter(|v4| unled.contains(&(way, *v4)));
                    lost.for_each(|v4| refuse(&|| Rule::new().family(v4)));
                }
            }
            rules.push(Rule::new().accept());
            rules
        }
        // Without a way it goes nowhere.
        (Outcome::Block | Outcome::Direct(_), _) => vec![
            Rule::new().counted_as(&counter(number, "up")),
            Rule::new().protocol(Layer4::Tcp).reset(),
            Rule::new().prohibit(),
        ],
    }
}

/// Alternative of a criterion: what it adds to a rule.
type Alternative = Box<dyn Fn(Rule) -> Rule>;

/// Makes the conditions of the criteria that have one value; the rules that return, in the chain
/// `name`, unless one value of each other criterion is met; and the chains that these ask.
fn criteria(descriptor: &Descriptor, facts: &Facts, name: &str) -> (Rule, Vec<Rule>, Vec<Chain>) {
    let (mut conditions, mut rules, mut chains) = (Rule::new(), vec![], vec![]);
    for alternatives in alternatives(descriptor, facts) {
        if let [only] = &alternatives[..] {
            conditions = only(conditions);
            continue;
        }
        let any = format!("{name}-{}", chains.len() + 1);
        let met = alternatives.iter().map(|a| a(Rule::new()).mark(MET).back());
        rules.push(Rule::new().mark(0));
        rules.push(Rule::new().jump(&any));
        rules.push(Rule::new().marked(0).back());
        chains.push(Chain::called(any, met.collect()));
    }
    (conditions, rules, chains)
}

/// Lists the alternatives of each criterion that has any.
fn alternatives(d: &Descriptor, facts: &Facts) -> Vec<Vec<Alternative>> {
    fn boxed(f: impl Fn(Rule) -> Rule + 'static) -> Alternative {
        Box::new(f)
    }
    let clients = d.client.iter().copied().map(|client| {
        boxed(move |r| match client {
            Client::Mac(mac) => r.from_mac(mac.0),
            Client::Network(net) => r.from(net),
        })
    });
    let users = d.user.iter().filter_map(|user| match user {
        User::Id(id) => Some(*id),
        // One that there is no more sends nothing.
        User::Name(name) => nix::unistd::User::from_name(name)
            .ok()
            .flatten()
            .map(|u| u.uid.as_raw()),
    });
    let mut users: Vec<Alternative> = users.map(|id| boxed(move |r| r.of_user(id))).collect();
    if users.is_empty() && !d.user.is_empty() {
        users.push(boxed(|r| r.of_user(u32::MAX)));
    }
    let units = d
        .unit
        .iter()
        .flat_map(|unit| facts.groups.get(unit).into_iter().flatten());
    let mut units: Vec<Alternative> = units
        .map(|group| (group.id, group.level))
        .map(|(id, level)| boxed(move |r| r.of_group(id, level)))
        .collect();
    if units.is_empty() && !d.unit.is_empty() {
        // None of them runs. No group has this number.
        units.push(boxed(|r| r.of_group(0, 1)));
    }
    let to = d.to.iter().copied().map(|net| boxed(move |r| r.to(net)));
    let domains = d.domain.iter().flat_map(|d| facts.names.sets_of(d));
    let domains = domains.map(|(set, v4)| boxed(move |r| r.to_one_of(&set, v4)));
    let protocols = d.protocol.iter().flat_map(|p| p.numbers());
    let protocols = protocols.map(|n| boxed(move |r| r.protocol_number(n)));
    let ports = d.port.iter().copied().flat_map(|ports| {
        let to_ports = move |r: Rule| r.to_ports(ports.first, ports.last);
        // Protocols that are named have ports; else those count that do.
        let named = !d.protocol.is_empty();
        let plain = named.then(|| boxed(to_ports));
        let each = (!named)
            .then(|| [Layer4::Tcp, Layer4::Udp].map(|p| boxed(move |r| to_ports(r.protocol(p)))));
        plain.into_iter().chain(each.into_iter().flatten())
    });
    let dscp = d
        .dscp
        .iter()
        .copied()
        .flat_map(|dscp| [true, false].map(|v4| boxed(move |r| r.dscp(v4, dscp.value()))));
    let all = [
        clients.collect(),
        users,
        units,
        to.collect(),
        domains.collect(),
        protocols.collect(),
        ports.collect(),
        dscp.collect::<Vec<_>>(),
    ];
    all.into_iter().filter(|a| !a.is_empty()).collect()
}

/// Makes the chains that count packets both ways: of hosts at the interfaces `lan`, and with `own` of the
/// device itself. What a rule refuses is counted there, and what its sender is told is no traffic.
pub(super) fn counting(lan: &[String], own: bool, rules: &[Numbered]) -> Vec<Chain> {
    let blocks = |r: &&Numbered| r.steered.rule.outcome == Outcome::Block;
    let carried = rules.iter().filter(|r| !blocks(r)).map(|r| r.number);
    let carried: Vec<u8> = carried.chain([DEFAULT]).collect();
    let counted = |kind: &str| {
        let of = |n: &u8| {
            let rule = Rule::new().of_flow(*n);
            rule.counted_as(&counter(*n, kind)).accept()
        };
        carried.iter().map(of).collect()
    };
    let up = lan.iter().map(|i| Rule::new().arriving_on(i).goto("up"));
    let down = lan.iter().map(|i| Rule::new().leaving_by(i).goto("down"));
    let mut chains = vec![
        Chain::called("up", counted("up")),
        Chain::called("down", counted("down")),
        Chain::at(Hook::Arrived, "counted-up", up.collect()),
        Chain::at(Hook::Postrouting, "counted-down", down.collect()),
    ];
    if own {
        let up = FAMILIES.map(|v4| Rule::new().from(own::source(v4)).goto("up"));
        let down = FAMILIES.map(|v4| Rule::new().to(own::source(v4)).goto("down"));
        chains.push(Chain::at(Hook::Postrouting, "counted-own-up", up.into()));
        chains.push(Chain::at(Hook::Input, "counted-own-down", down.into()));
    }
    chains
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steered(port: u16) -> Steered {
        let rule = format!("{{\"port\": {port}, \"block\": true}}");
        Steered {
            rule: serde_json::from_str(&rule).unwrap(),
            class: 0,
            way: None,
        }
    }

    fn all(ports: impl IntoIterator<Item = u16>, before: &[Numbered]) -> Vec<Numbered> {
        numbered(ports.into_iter().map(steered).collect(), before)
    }

    fn places(all: &[Numbered]) -> Vec<u8> {
        all.iter().map(|r| r.number).collect()
    }

    #[test]
    fn a_rule_keeps_its_number_and_no_other_gets_it() {
        let first = all([1, 2, 3], &[]);
        assert_eq!(places(&first), [1, 2, 3]);
        let second = all([4, 3, 1], &first);
        assert_eq!(places(&second), [4, 3, 1]);
        // The same twice are two rules.
        assert_eq!(places(&all([3, 3], &second)), [3, 2]);
        // Where all are taken, numbers of rules that go are used again.
        let full = all(1..=254, &[]);
        let turned = all((1..=253).chain([999]), &full);
        assert_eq!(places(&turned), (1..=254).collect::<Vec<_>>());
        let moved = all(101..=354, &full);
        let mut numbers = places(&moved);
        assert_eq!(numbers[..154], (101..=254).collect::<Vec<_>>());
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 254);
    }

    #[test]
    fn counts_are_read_as_they_were_put() {
        let count = |n: u64| RuleCount {
            flows: n,
            up: Count {
                packets: n + 1,
                bytes: 1500 * n,
            },
            down: Count {
                packets: n + 2,
                bytes: 900 * n,
            },
        };
        let rules = all([1, 2], &[]);
        let from: Counts = [(1, count(3)), (2, count(70)), (DEFAULT, count(9))].into();
        let put = counters(&rules, &from).into_iter();
        let read: BTreeMap<_, _> = put.map(|c| (c.name, c.from)).collect();
        assert_eq!(read.len(), 9);
        assert_eq!(counts(&rules, &read), from);
        assert_eq!(counters(&all(1..=254, &[]), &from).len(), 3 * 255);
    }
}
