//! Subflow facts of sock-diag beyond TCP: the attributes of the upper layer protocol.

use crate::nl::attr::{self, Attrs};

// `MPTCP_SUBFLOW_ATTR_*` of linux/mptcp.h.
const TOKEN_REM: u16 = 1;
const TOKEN_LOC: u16 = 2;
const FLAGS: u16 = 8;
const ID_REM: u16 = 9;
const ID_LOC: u16 = 10;

/// Facts about an MPTCP subflow that TCP does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UlpInfo {
    /// Token of the connection at this end, 0 if not told.
    pub token_local: u32,
    /// Token of the connection at the other end, 0 if not told.
    pub token_remote: u32,
    /// Id of the local address.
    pub local_id: u8,
    /// Id of the remote address.
    pub remote_id: u8,
    /// `MPTCP_SUBFLOW_FLAG_*`.
    pub flags: u32,
}

impl UlpInfo {
    /// The peer asked us to use it only as a backup.
    pub fn backup_remote(&self) -> bool {
        self.flags & (1 << 4) != 0
    }
    /// We asked the peer to use it only as a backup.
    pub fn backup_local(&self) -> bool {
        self.flags & (1 << 5) != 0
    }
    /// The handshake is complete, data may flow.
    pub fn fully_established(&self) -> bool {
        self.flags & (1 << 6) != 0
    }
    /// The peer spoke MPTCP in the handshake: `MP_CAPABLE` or `MP_JOIN`.
    pub fn by_handshake(&self) -> bool {
        self.flags & (1 | 1 << 2) != 0
    }

    /// This end asked for MPTCP in the handshake.
    pub fn asked(&self) -> bool {
        self.flags & (1 << 1 | 1 << 3) != 0
    }

    /// The handshake of this end, the active one, is over.
    pub fn connected(&self) -> bool {
        self.flags & (1 << 7) != 0
    }

    /// A data sequence mapping is in use for what is being received.
    pub fn mapped(&self) -> bool {
        self.flags & (1 << 8) != 0
    }

    pub(super) fn parse(inner: &[u8]) -> Self {
        let mut ulp = Self::default();
        Attrs(inner).each(|kind, v| match kind {
            TOKEN_REM => ulp.token_remote = attr::u32_of(v).unwrap_or(0),
            TOKEN_LOC => ulp.token_local = attr::u32_of(v).unwrap_or(0),
            FLAGS => ulp.flags = attr::u32_of(v).unwrap_or(0),
            ID_REM => ulp.remote_id = attr::u8_of(v).unwrap_or(0),
            ID_LOC => ulp.local_id = attr::u8_of(v).unwrap_or(0),
            _ => {}
        });
        ulp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nl::attr::{bytes, emit};

    #[test]
    fn reads_subflow_facts() {
        let flags: u32 = (1 << 5) | (1 << 6);
        let inner = emit(&[
            bytes(TOKEN_LOC, &7u32.to_ne_bytes()),
            bytes(TOKEN_REM, &9u32.to_ne_bytes()),
            bytes(FLAGS, &flags.to_ne_bytes()),
            bytes(ID_LOC, &[2]),
            bytes(ID_REM, &[0]),
        ]);
        let ulp = UlpInfo::parse(&inner);
        assert_eq!((ulp.token_local, ulp.token_remote), (7, 9));
        assert_eq!((ulp.local_id, ulp.remote_id), (2, 0));
        assert!(ulp.backup_local() && !ulp.backup_remote());
        assert!(ulp.fully_established() && !ulp.mapped());
    }
}
