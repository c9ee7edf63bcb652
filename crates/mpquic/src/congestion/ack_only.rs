//! Packets that congestion control leaves out: those that only acknowledge, which on the
//! datagram lane are acknowledged themselves. As in QUIC (RFC 9002 2 and 7), they are not
//! bytes in flight: else an end that receives much has no room for the little that it has
//! to send, such as the credit that its peer waits for.

use std::collections::BTreeMap;

/// More than are ever on their way: what the library never tells the end of is forgotten.
const MAX_PACKETS: usize = 1 << 16;

/// Packets of one path that only acknowledge and are on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExemptPackets {
    /// Sizes by packet numbers.
    packets: BTreeMap<u64, u16>,
    bytes: u64,
}

impl ExemptPackets {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn sent(&mut self, number: u64, bytes: u16) {
        if let Some(same) = self.packets.insert(number, bytes) {
            self.bytes -= u64::from(same);
        }
        self.bytes += u64::from(bytes);
        if self.packets.len() > MAX_PACKETS
            && let Some((_, oldest)) = self.packets.pop_first()
        {
            self.bytes -= u64::from(oldest);
        }
    }

    /// One was acknowledged or lost; whether it was one of these.
    pub(super) fn ended(&mut self, number: u64) -> bool {
        let bytes = self.packets.remove(&number);
        self.bytes -= bytes.map_or(0, u64::from);
        bytes.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_packets() {
        let mut exempt = ExemptPackets::default();
        for n in 0..2 * MAX_PACKETS as u64 {
            exempt.sent(n, 10);
            exempt.sent(n, 20);
        }
        assert_eq!(exempt.bytes(), 20 * MAX_PACKETS as u64);
        assert!(
            !exempt.ended(0)
                && exempt.ended(MAX_PACKETS as u64)
                && !exempt.ended(MAX_PACKETS as u64)
        );
        assert_eq!(exempt.bytes(), 20 * (MAX_PACKETS as u64 - 1));
    }
}
