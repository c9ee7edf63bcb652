//! When keys are updated (RFC 9001 6).
//!
//! The library judges by packet numbers whether a packet was sealed before an update, and
//! those of different paths cannot be compared: what is under way on slower paths when an
//! update arrives on a faster one is thrown away (noq-proto 1.4, `decrypt_packet_body`).
//! Of its own it updates within the first thousand packets, in the middle of the first
//! windows, and then near the limit of the cipher (2^23 packets of AES-GCM). So updates
//! are made here while nothing is under way.

use noq_proto::Connection as Quic;

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

impl Keys {
    /// Updates the keys if many packets were sent since the last update, and nothing but pings is
    /// under way; called now and then.
    pub(super) fn check(&mut self, quic: &mut Quic) {
        let stats = quic.stats();
        let (sent, received) = (stats.udp_tx.datagrams, stats.udp_rx.datagrams);
        let since = sent + received - self.looked;
        self.looked = sent + received;
        if since <= QUIET && sent - self.before > MANY {
            self.update(quic);
        }
    }

    /// Updates the keys now.
    pub(super) fn update(&mut self, quic: &mut Quic) {
        quic.force_key_update();
        self.before = quic.stats().udp_tx.datagrams;
    }
}
