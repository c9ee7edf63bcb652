//! Transactions of nf_tables: all steps happen, or none.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_netfilter::nftables::{NfTablesMessage, TableAttribute, TableMessage};
use netlink_packet_netfilter::none::ControlMessage;
use netlink_packet_netfilter::{
    NetfilterHeader, NetfilterMessage, NetfilterMessageInner, NetfilterProtoFamily,
};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_NETFILTER};
use thiserror::Error;

use super::{Step, Table, removal};

/// Number of the subsystem, which the frame of a transaction names (NFNL_SUBSYS_NFTABLES).
const NFTABLES: u16 = 10;
/// Bytes for replies: an error repeats the message that it is about.
const REPLIES: usize = 64 << 10;

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
                 NFT_TPROXY, NFT_FIB_INET, NFT_REJECT_INET)"
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
pub struct Nftables {
    socket: Socket,
    sequence: u32,
}

impl Nftables {
    /// Opens it in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The socket's.
    pub fn open() -> Result<Self, NftError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_NETFILTER)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            // Replies are there once a message is sent.
            socket.set_non_blocking(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|e| NftError::new("open a netlink socket", e))?;
        Ok(Self {
            socket,
            sequence: 0,
        })
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

    /// Whether there is a table of this name.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn has(&mut self, name: &str) -> Result<bool, NftError> {
        let attributes = vec![TableAttribute::Name(name.into())];
        let get = NfTablesMessage::GetTable(TableMessage { attributes });
        let header = NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0);
        let mut bytes = vec![];
        self.append(&mut bytes, NetfilterMessage::new(header, get), NLM_F_ACK);
        let failed = |e| NftError::new(format!("look for table inet {name}"), e);
        self.socket.send(&bytes, 0).map_err(failed)?;
        loop {
            // The table itself comes before the acknowledgement.
            match self.replies()?.pop() {
                Some((_, Ok(()))) => return Ok(true),
                Some((_, Err(e))) if e.raw_os_error() == Some(libc::ENOENT) => return Ok(false),
                Some((_, Err(e))) => return Err(failed(e)),
                None => {}
            }
        }
    }

    fn commit(&mut self, steps: Vec<Step>) -> Result<(), NftError> {
        let first = self.sequence;
        let mut bytes = vec![];
        let mut attempts = vec![];
        self.append(&mut bytes, frame(ControlMessage::BatchBegin), 0);
        for step in steps {
            let header = NetfilterHeader::new(NetfilterProtoFamily::Inet, 0, 0);
            let message = NetfilterMessage::new(header, step.message);
            let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_APPEND;
            self.append(&mut bytes, message, flags);
            attempts.push(step.attempt);
        }
        self.append(&mut bytes, frame(ControlMessage::BatchEnd), 0);

        let sent = self.socket.send(&bytes, 0);
        sent.map_err(|e| NftError::new("send a transaction", e))?;
        let mut acknowledged = 0;
        while acknowledged < attempts.len() {
            for (sequence, outcome) in self.replies()? {
                // The frame's begin is the first; the transaction as a whole fails with it.
                let place = sequence.wrapping_sub(first).checked_sub(1);
                let attempt = place.and_then(|i| attempts.get(i as usize));
                outcome.map_err(|e| {
                    NftError::new(attempt.map_or("change the rules", String::as_str), e)
                })?;
                acknowledged += 1;
            }
        }
        Ok(())
    }

    fn append(&mut self, bytes: &mut Vec<u8>, message: NetfilterMessage, flags: u16) {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        self.sequence = self.sequence.wrapping_add(1);
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let at = bytes.len();
        bytes.resize(at + message.buffer_len(), 0);
        message.serialize(&mut bytes[at..]);
    }

    /// Reads the replies of one datagram: to which message, and how it ended.
    fn replies(&mut self) -> Result<Vec<(u32, io::Result<()>)>, NftError> {
        let failed = |e| NftError::new("read the reply to a transaction", e);
        let mut buf = Vec::with_capacity(REPLIES);
        self.socket.recv(&mut buf, 0).map_err(failed)?;
        let mut rest = &buf[..];
        let mut all = vec![];
        while !rest.is_empty() {
            let malformed = |e| failed(io::Error::other(e));
            let reply = NetlinkMessage::<NetfilterMessage>::deserialize(rest).map_err(malformed)?;
            if let NetlinkPayload::Error(e) = &reply.payload {
                let outcome = match e.code {
                    None => Ok(()),
                    Some(_) => Err(e.to_io()),
                };
                all.push((reply.header.sequence_number, outcome));
            }
            // Messages begin at multiples of four.
            let length = (reply.header.length as usize).next_multiple_of(4);
            rest = rest.get(length.max(16)..).unwrap_or_default();
        }
        Ok(all)
    }
}

/// Frame of a transaction: its begin or its end.
fn frame(control: ControlMessage) -> NetfilterMessage {
    let header = NetfilterHeader::new(NetfilterProtoFamily::Unspec, 0, NFTABLES);
    NetfilterMessage::new(header, NetfilterMessageInner::from(control))
}
