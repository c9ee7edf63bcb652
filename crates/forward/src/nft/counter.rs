//! Counters of a table, which several rules may share, and which can be read.

use netlink_packet_core::{DefaultNla, Nla, NlasIterator, Parseable};
use netlink_packet_netfilter::nftables::NfTablesMessage;

use super::Step;
use super::attributes::{nested, number, text};
use super::rule::COUNTER;

// Attributes of an object, and of a counter within (include/uapi/linux/netfilter/nf_tables.h).
const TABLE: u16 = 1;
const NAME: u16 = 2;
const TYPE: u16 = 3;
const DATA: u16 = 4;
const BYTES: u16 = 1;
const PACKETS: u16 = 2;

/// Counted packets, and their bytes with the headers of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Counter of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name, unique among the table's counters.
    pub name: String,
    /// Count to begin with.
    pub from: Count,
}

impl Counter {
    pub(super) fn step(&self, table: &str) -> Step {
        let data = [
            DefaultNla::new(BYTES, self.from.bytes.to_be_bytes().into()),
            DefaultNla::new(PACKETS, self.from.packets.to_be_bytes().into()),
        ];
        let attributes = vec![
            text(TABLE, table),
            text(NAME, &self.name),
            number(TYPE, COUNTER),
            nested(DATA, &data),
        ];
        Step {
            message: NfTablesMessage::NewObject(attributes),
            attempt: format!("add counter inet {table} {}", self.name),
        }
    }

    /// Makes the question for all counters of a table.
    pub(super) fn all_of(table: &str) -> NfTablesMessage {
        NfTablesMessage::GetObject(vec![text(TABLE, table), number(TYPE, COUNTER)])
    }

    /// Reads one out of the attributes of an object of a table; `None` for another object.
    pub(super) fn read(table: &str, attributes: &[DefaultNla]) -> Option<(String, Count)> {
        let bytes = |all: &[DefaultNla], kind| {
            let found = all.iter().find(|a| a.kind() & !NLA_FLAGS == kind)?;
            let mut value = vec![0; found.value_len()];
            found.emit_value(&mut value);
            Some(value)
        };
        let of = |kind| bytes(attributes, kind);
        if of(TYPE)? != COUNTER.to_be_bytes() || string(&of(TABLE)?)? != table {
            return None;
        }
        let data = of(DATA)?;
        let inner: Vec<DefaultNla> = NlasIterator::new(&data[..])
            .filter_map(|a| DefaultNla::parse(&a.ok()?).ok())
            .collect();
        let number = |kind| Some(u64::from_be_bytes(bytes(&inner, kind)?.try_into().ok()?));
        let count = Count {
            packets: number(PACKETS)?,
            bytes: number(BYTES)?,
        };
        Some((string(&of(NAME)?)?, count))
    }
}

/// Bits of an attribute's kind that are none (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
const NLA_FLAGS: u16 = 0xc000;

fn string(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    Some(text.trim_end_matches('\0').to_owned())
}
