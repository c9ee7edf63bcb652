//! nftables over netlink: tables of rules, each put in place, replaced and removed as a whole.
//!
//! A table is described by [`Table`], [`Chain`] and [`Rule`], and reaches the kernel in one
//! transaction ([`Nftables`]): packets meet either the table as it was or as it is to be. No
//! program is called, so that no `nft` has to be installed; what is put in place can be looked at
//! with it (`nft list ruleset`).

mod rule;
mod transaction;

use netlink_packet_netfilter::nftables::{
    ChainAttribute, ChainMessage, Hook as HookAttribute, HookNumber, InetHookNumber,
    NfTablesMessage, RuleMessage, TableAttribute, TableFlags, TableMessage,
};

pub use rule::{Layer4, Rule};
pub use transaction::{NftError, Nftables};

/// Table of the family `inet`: its rules see IPv4 and IPv6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name, by which operators and the next daemon find it.
    pub name: &'static str,
    /// Whether it goes when the process that put it in place ends, however that ends. Else it
    /// stays until it is removed.
    pub owned: bool,
    /// Its chains.
    pub chains: Vec<Chain>,
}

/// Chain of rules at one place of a packet's way through the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Name, unique in the table.
    pub name: &'static str,
    /// Where packets meet it.
    pub hook: Hook,
    /// Rules in the order in which they are asked. What none decides about is accepted.
    pub rules: Vec<Rule>,
}

/// Where packets meet a chain, and with which priority among others there (least first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Packets that arrive, before they are routed (priority `mangle`).
    Prerouting,
    /// Packets for this machine itself (priority `filter`).
    Input,
    /// Packets that are forwarded (priority `filter`).
    Forward,
    /// Packets of this machine's own sockets; those whose mark a rule changes are routed again
    /// (type `route`, priority `mangle`).
    Output,
    /// Packets of this machine's own sockets, once their way is decided (priority `filter` + 10).
    Leaving,
    /// Source addresses of packets that leave (type `nat`, priority `srcnat`).
    SourceNat,
}

impl Hook {
    fn kind(self) -> &'static str {
        match self {
            Self::Prerouting | Self::Input | Self::Forward | Self::Leaving => "filter",
            Self::Output => "route",
            Self::SourceNat => "nat",
        }
    }

    fn number(self) -> InetHookNumber {
        match self {
            Self::Prerouting => InetHookNumber::PreRouting,
            Self::Input => InetHookNumber::LocalIn,
            Self::Forward => InetHookNumber::Forward,
            Self::Output | Self::Leaving => InetHookNumber::LocalOut,
            Self::SourceNat => InetHookNumber::PostRouting,
        }
    }

    fn priority(self) -> i32 {
        match self {
            Self::Prerouting | Self::Output => -150,
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
        for chain in &self.chains {
            steps.push(chain.step(self.name));
            steps.extend(chain.rules.iter().map(|rule| Step {
                message: NfTablesMessage::NewRule(RuleMessage {
                    attributes: rule.attributes(self.name, chain.name),
                }),
                attempt: format!("add rule inet {} {} ({rule})", self.name, chain.name),
            }));
        }
        steps
    }
}

impl Chain {
    fn step(&self, table: &str) -> Step {
        let hook = vec![
            HookAttribute::Number(HookNumber::Inet(self.hook.number())),
            // The attribute has the bits of a signed number.
            HookAttribute::Priority(self.hook.priority().cast_unsigned()),
        ];
        let attributes = vec![
            ChainAttribute::Table(table.into()),
            ChainAttribute::Name(self.name.into()),
            ChainAttribute::Hook(hook),
            ChainAttribute::Type(self.hook.kind().into()),
        ];
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
