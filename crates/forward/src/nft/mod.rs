//! nftables over netlink: tables of rules, each put in place, replaced and removed as a whole.
//!
//! A table is described by [`Table`], [`Chain`] and [`Rule`], and reaches the kernel in one
//! transaction ([`Nftables`]): packets meet either the table as it was or as it is to be. No
//! program is called, so that no `nft` has to be installed; what is put in place can be looked at
//! with it (`nft list ruleset`).

mod attributes;
mod counter;
mod rule;
mod set;
mod socket;
mod transaction;

use std::borrow::Cow;

use netlink_packet_netfilter::nftables::{
    ChainAttribute, ChainMessage, Hook as HookAttribute, HookNumber, InetHookNumber,
    NfTablesMessage, RuleMessage, TableAttribute, TableFlags, TableMessage,
};

pub use counter::{Count, Counter};
pub(crate) use rule::{FLOW_NUMBER, in_mark};
pub use rule::{Layer4, Rule};
pub use set::Set;
pub(crate) use socket::NetfilterSocket;
pub use transaction::{NftError, Nftables};

/// Table of the family `inet`: its rules see IPv4 and IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name, by which operators and the next daemon find it.
    pub name: &'static str,
    /// Whether it goes when the process that put it in place ends, however that ends. Else it
    /// stays until it is removed.
    pub owned: bool,
    /// Counters, which rules name.
    pub counters: Vec<Counter>,
    /// Sets of addresses, which rules name.
    pub sets: Vec<Set>,
    /// Its chains.
    pub chains: Vec<Chain>,
}

/// Chain of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Name, unique in the table.
    name: Cow<'static, str>,
    /// Where packets meet it; absent: where rules lead to it.
    hook: Option<Hook>,
    /// Rules in the order in which they are asked.
    rules: Vec<Rule>,
}

impl Chain {
    /// Makes a chain at one place of a packet's way through the kernel. What none of its rules decides
    /// about is accepted.
    pub fn at(hook: Hook, name: &'static str, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            hook: Some(hook),
            rules,
        }
    }

    /// Makes a chain that other rules lead to ([`Rule::jump`], [`Rule::goto`]).
    pub fn called(name: impl Into<Cow<'static, str>>, rules: Vec<Rule>) -> Self {
        Self {
            name: name.into(),
            hook: None,
            rules,
        }
    }
}

/// Where packets meet a chain, and with which priority among others there (least first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets that arrive, before they are routed (priority `mangle`).
    Prerouting,
    /// Packets that arrive, behind that (priority `mangle` + 1).
    Arrived,
    /// Packets for this machine itself (priority `filter`).
    Input,
    /// Packets that are forwarded (priority `filter`).
    Forward,
    /// Packets of this machine's own sockets; those whose mark a rule changes are routed again
    /// (type `route`, priority `mangle`).
    Output,
    /// Packets of this machine's own sockets, once their way is decided (priority `filter` + 10).
    Leaving,
    /// Packets that leave, whoever sent them (priority `mangle`).
    Postrouting,
    /// Source addresses of packets that leave (type `nat`, priority `srcnat`).
    SourceNat,
}

impl Hook {
    fn kind(self) -> &'static str {
        match self {
            Self::Prerouting
            | Self::Arrived
            | Self::Input
            | Self::Forward
            | Self::Leaving
            | Self::Postrouting => "filter",
            Self::Output => "route",
            Self::SourceNat => "nat",
        }
    }

    fn number(self) -> InetHookNumber {
        match self {
            Self::Prerouting | Self::Arrived => InetHookNumber::PreRouting,
            Self::Input => InetHookNumber::LocalIn,
            Self::Forward => InetHookNumber::Forward,
            Self::Output | Self::Leaving => InetHookNumber::LocalOut,
            Self::Postrouting | Self::SourceNat => InetHookNumber::PostRouting,
        }
    }

    fn priority(self) -> i32 {
        match self {
            Self::Prerouting | Self::Output | Self::Postrouting => -150,
            Self::Arrived => -149,
            Self::Input | Self::Forward => 0,
            Self::Leaving => 10,
            Self::SourceNat => 100,
        }
    }
}

/// Message of a transaction, and what it attempts.
struct Step {
    message: NfTablesMessage,
    attempt: String,
}

impl Table {
    /// Lists the steps that put the table in place of one of that name.
    fn steps(&self) -> Vec<Step> {
        let mut steps = removal(self.name);
        let mut attributes = vec![TableAttribute::Name(self.name.into())];
        if self.owned {
            attributes.push(TableAttribute::Flags(TableFlags::Owner));
        }
        steps.push(Step {
            message: NfTablesMessage::NewTable(TableMessage { attributes }),
            attempt: format!("add table inet {}", self.name),
        });
        steps.extend(self.counters.iter().map(|c| c.step(self.name)));
        for (set, number) in self.sets.iter().zip(1..) {
            steps.extend(set.steps(self.name, number));
        }
        // Rules name chains, sets and counters, which have to be there.
        steps.extend(self.chains.iter().map(|c| c.step(self.name)));
        for chain in &self.chains {
            steps.extend(chain.rules.iter().map(|rule| Step {
                message: NfTablesMessage::NewRule(RuleMessage {
                    attributes: rule.attributes(self.name, &chain.name),
                }),
                attempt: format!("add rule inet {} {} ({rule})", self.name, chain.name),
            }));
        }
        steps
    }
}

impl Chain {
    fn step(&self, table: &str) -> Step {
        let mut attributes = vec![
            ChainAttribute::Table(table.into()),
            ChainAttribute::Name(self.name.clone().into()),
        ];
        if let Some(hook) = self.hook {
            attributes.push(ChainAttribute::Hook(vec![
                HookAttribute::Number(HookNumber::Inet(hook.number())),
                // The attribute has the bits of a signed number.
                HookAttribute::Priority(hook.priority().cast_unsigned()),
            ]));
            attributes.push(ChainAttribute::Type(hook.kind().into()));
        }
        Step {
            message: NfTablesMessage::NewChain(ChainMessage { attributes }),
            attempt: format!("add chain inet {table} {}", self.name),
        }
    }
}

/// Lists the steps that remove a table, whether it is there or not.
fn removal(name: &str) -> Vec<Step> {
    let table = || TableMessage {
        attributes: vec![TableAttribute::Name(name.into())],
    };
    vec![
        Step {
            message: NfTablesMessage::NewTable(table()),
            attempt: format!("take hold of table inet {name}"),
        },
        Step {
            message: NfTablesMessage::DeleteTable(table()),
            attempt: format!("delete table inet {name}"),
        },
    ]
}
