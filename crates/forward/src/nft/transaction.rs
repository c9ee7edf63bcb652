//! Transactions of nf_tables: all steps happen, or none.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE};
use netlink_packet_netfilter::nftables::{NfTablesMessage, TableAttribute, TableMessage};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
};
use thiserror::Error;

use super::counter::{Count, Counter};
use super::set::{Change, changes};
use super::socket::{Datagram, NetfilterSocket, Reply};
use super::{Step, Table, removal};

/// Number of the subsystem, which the frame of a transaction names (NFNL_SUBSYS_NFTABLES).
const NFTABLES: u16 = 10;

/// Why rules could not be changed. None was.
#[derive(Debug, Error)]
#[error("nftables: {attempt}: {source}{hint}")]
pub struct NftError {
    /// Attempt, in words.
    attempt: String,
    /// Remedy, in brackets.
    hint: &'static str,
    source: io::Error,
}

impl NftError {
    fn new(attempt: impl Into<String>, source: io::Error) -> Self {
        let hint = match source.raw_os_error() {
            Some(libc::EPERM) => {
                " (it takes the capability CAP_NET_ADMIN, and that no other process owns the table)"
            }
            Some(libc::ENOENT | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT | libc::EAFNOSUPPORT) => {
                " (the kernel may lack a part of nf_tables: CONFIG_NF_TABLES, NF_TABLES_INET, \
                 NFT_TPROXY, NFT_FIB_INET, NFT_REJECT_INET, NFT_CT, NFT_MASQ; rules take NFT_SOCKET, too)"
            }
            _ => "",
        };
        let attempt = attempt.into();
        Self {
            attempt,
            hint,
            source,
        }
    }
}

/// Rules of the network namespace in which it was opened. Tables that are owned go with it.
#[derive(Debug)]
pub struct Nftables(NetfilterSocket);

impl Nftables {
    /// Opens it in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's.
    pub fn open() -> Result<Self, NftError> {
        let socket = NetfilterSocket::open();
        socket
            .map(Self)
            .map_err(|e| NftError::new("open a netlink socket", e))
    }

    /// Puts a table in place of one of that name.
    ///
    /// # Errors
    /// What the kernel refuses; then everything is as it was.
    pub fn replace(&mut self, table: &Table) -> Result<(), NftError> {
        self.commit(table.steps())
    }

    /// Removes a table, whether it is there or not.
    ///
    /// # Errors
    /// What the kernel refuses; then everything is as it was.
    pub fn remove(&mut self, name: &str) -> Result<(), NftError> {
        self.commit(removal(name))
    }

    /// Deletes addresses from sets of a table, where they have to be, and adds others to them: both by
    /// the names of the sets.
    ///
    /// # Errors
    /// What the kernel refuses; then everything is as it was.
    pub fn change_sets(
        &mut self,
        table: &str,
        deleted: &BTreeMap<String, Vec<IpAddr>>,
        added: &BTreeMap<String, Vec<IpAddr>>,
    ) -> Result<(), NftError> {
        let mut steps = Vec::new();
        let mut change = |sets: &BTreeMap<String, Vec<IpAddr>>, how: Change| {
            for (set, all) in sets {
                steps.extend(changes(table, set, all.iter().copied(), how));
            }
        };
        change(deleted, NfTablesMessage::DeleteSetElement);
        change(added, NfTablesMessage::NewSetElement);
        match steps.is_empty() {
            true => Ok(()),
            false => self.commit(steps),
        }
    }

    /// Whether there is a table of this name.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn has(&mut self, name: &str) -> Result<bool, NftError> {
        let attributes = vec![TableAttribute::Name(name.into())];
        let get = NfTablesMessage::GetTable(TableMessage { attributes });
        match self.0.request(of_inet(get)) {
            Ok(()) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
            Err(e) => Err(NftError::new(format!("look for table inet {name}"), e)),
        }
    }

    /// Reads the counters of a table, by their names; none where there is no such table.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counters(&mut self, table: &str) -> Result<BTreeMap<String, Count>, NftError> {
        let all = self.0.dump(of_inet(Counter::all_of(table)));
        let all =
            all.map_err(|e| NftError::new(format!("read the counters of table inet {table}"), e))?;
        let read = all.iter().filter_map(|message| match &message.inner {
            NetfilterMessageInner::NfTables(NfTablesMessage::NewObject(attributes)) => {
                Counter::read(table, attributes)
            }
            _ => None,
        });
        Ok(read.collect())
    }

    fn commit(&mut self, steps: Vec<Step>) -> Result<(), NftError> {
        let begin = self.0.next();
        let mut datagram = Datagram::default();
        let mut attempts = vec![];
        let last = steps.len();
        self.0
            .add(&mut datagram, frame(ControlMessage::BatchBegin), 0);
        for (i, step) in steps.into_iter().enumerate() {
            // Whatever fails is told; that all went well, once: thousands of replies find no room.
            let told = match i + 1 == last {
                true => NLM_F_ACK,
                false => 0,
            };
            let flags = told | NLM_F_CREATE | NLM_F_APPEND;
            self.0.add(&mut datagram, of_inet(step.message), flags);
            attempts.push(step.attempt);
        }
        self.0
            .add(&mut datagram, frame(ControlMessage::BatchEnd), 0);

        let sent = self.0.send(&datagram);
        sent.map_err(|e| NftError::new("send a transaction", e))?;
        loop {
            let failed = |e| NftError::new("read the reply to a transaction", e);
            for reply in self.0.replies().map_err(failed)? {
                let Reply::Done(sequence, outcome) = reply else {
                    continue;
                };
                // The frame's begin is the first, and the transaction as a whole fails with it.
                // What came to an earlier one has been told.
                let place = sequence.wrapping_sub(begin) as usize;
                if place > last + 1 {
                    continue;
                }
                let attempt = place.checked_sub(1).and_then(|i| attempts.get(i));
                outcome.map_err(|e| {
                    NftError::new(attempt.map_or("change the rules", String::as_str), e)
                })?;
                if place == last {
                    return Ok(());
                }
            }
        }
    }
}

/// Message about tables of the family `inet`.
fn of_inet(message: NfTablesMessage) -> NetfilterMessage {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0);
    NetfilterMessage::new(header, message)
}

/// Frame of a transaction: its begin or its end.
fn frame(control: ControlMessage) -> NetfilterMessage {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NFTABLES);
    NetfilterMessage::new(header, NetfilterMessageInner::from(control))
}
