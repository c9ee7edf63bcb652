//! When keys are updated (RFC 9001 6).
//!
//! The library judges by packet numbers whether a packet was sealed before an update, and
//! those of different paths cannot be compared: what is under way on slower paths when an
//! update arrives on a faster one is thrown away (noq-proto 1.4, `decrypt_packet_body`).
//! Of its own it updates within the first thousand packets, in the middle of the first
//! windows, and then near the limit of the cipher (2^23 packets of AES-GCM). So updates
//! are made here while nothing is under way.

use super::Connection;

/// Packets after which an update is made at the next opportunity.
const MANY: u64 = 1 << 20;
/// Packets between two looks when nothing but pings is under way.
const QUIET: u64 = 64;

/// Counts of the datagrams sent, and received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Keys {
    /// Sent until the last update.
    before: u64,
    /// Sent and received at the last look.
    looked: u64,
}

impl Connection {
    /// The handshake is confirmed at the proxy, and of the paths there is but one.
    pub(super) fn first_keys(&mut self) {
        if !self.is_client() {
            self.update_keys();
        }
    }

    /// Looked for now and then.
    pub(super) fn look_at_keys(&mut self) {
        let stats = self.quic.stats();
        let (sent, received) = (stats.udp_tx.datagrams, stats.udp_rx.datagrams);
        let since = sent + received - self.keys.looked;
        self.keys.looked = sent + received;
        if since <= QUIET && sent - self.keys.before > MANY {
            self.update_keys();
        }
    }

    fn update_keys(&mut self) {
        self.quic.force_key_update();
        self.keys.before = self.quic.stats().udp_tx.datagrams;
    }
}
