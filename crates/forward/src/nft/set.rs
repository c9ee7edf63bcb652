//! Sets of addresses, which rules ask and which change without them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netlink_packet_netfilter::nftables::{
    DataAttribute, ListAttribute, NfTablesMessage, SetAttribute, SetElementAttribute,
    SetElementList, SetElementMessage, SetMessage,
};

use super::Step;
use super::rule::octets;

/// Types of addresses in the words of `nft`, for whoever lists a set (`ipv4_addr`, `ipv6_addr`).
const IPV4: u32 = 7;
const IPV6: u32 = 8;
/// Elements of one message at most: the length of a list has 16 bits.
const AT_ONCE: usize = 512;

/// Set of addresses of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Name, unique among the table's sets.
    pub name: String,
    /// Whether it is of IPv4; else of IPv6.
    pub v4: bool,
    /// Addresses to begin with; those of the other family are left out.
    pub addresses: BTreeSet<IpAddr>,
}

impl Set {
    /// Lists the steps that make it; `number` is another for each set of a transaction.
    pub(super) fn steps(&self, table: &str, number: u32) -> Vec<Step> {
        let (kind, length) = match self.v4 {
            true => (IPV4, 4),
            false => (IPV6, 16),
        };
        let made = Step {
            message: NfTablesMessage::NewSet(SetMessage {
                attributes: vec![
                    SetAttribute::Table(table.into()),
                    SetAttribute::Name(self.name.clone()),
                    SetAttribute::KeyType(kind),
                    SetAttribute::KeyLen(length),
                    SetAttribute::Id(number),
                ],
            }),
            attempt: format!("add set inet {table} {}", self.name),
        };
        let own = self.addresses.iter().filter(|ip| ip.is_ipv4() == self.v4);
        let filled = changes(
            table,
            &self.name,
            own.copied(),
            NfTablesMessage::NewSetElement,
        );
        [made].into_iter().chain(filled).collect()
    }
}

/// Kind of a change of elements: [`NfTablesMessage::NewSetElement`], or
/// [`NfTablesMessage::DeleteSetElement`].
pub(super) type Change = fn(SetElementMessage) -> NfTablesMessage;

/// Lists the steps that add addresses to a set, or delete them there.
pub(super) fn changes(
    table: &str,
    set: &str,
    addresses: impl Iterator<Item = IpAddr>,
    change: Change,
) -> Vec<Step> {
    let elements: Vec<_> = addresses
        .map(|ip| {
            let key = SetElementAttribute::Key(DataAttribute::Value(octets(ip)));
            ListAttribute::Element(vec![key])
        })
        .collect();
    let parts = elements.chunks(AT_ONCE).map(|part| Step {
        message: change(SetElementMessage {
            attributes: vec![
                SetElementList::Table(table.into()),
                SetElementList::Set(set.into()),
                SetElementList::Elements(part.to_vec()),
            ],
        }),
        attempt: format!("change set inet {table} {set}"),
    });
    parts.collect()
}
