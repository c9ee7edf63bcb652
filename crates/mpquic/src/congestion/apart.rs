//! Packets that congestion control leaves out: those that only acknowledge, which on the
//! datagram lane are acknowledged themselves. As in QUIC (RFC 9002 2 and 7), they are not
//! bytes in flight: else an end that receives much has no room for the little that it has
//! to send, such as the credit that its peer waits for.

use std::collections::BTreeMap;

/// More than are ever on their way: what the library never tells the end of is forgotten.
const MOST: usize = 1 << 16;

/// Packets of one path that only acknowledge and are on their way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    /// Their sizes by their numbers.
    packets: BTreeMap<u64, u16>,
    bytes: u64,
}

impl Apart {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn sent(&mut self, number: u64, bytes: u16) {
        if let Some(same) = self.packets.insert(number, bytes) {
            self.bytes -= u64::from(same);
        }
        self.bytes += u64::from(bytes);
        if self.packets.len() > MOST
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
        let mut apart = Apart::default();
        for n in 0..2 * MOST as u64 {
            apart.sent(n, 10);
            apart.sent(n, 20);
        }
        assert_eq!(apart.bytes(), 20 * MOST as u64);
        assert!(!apart.ended(0) && apart.ended(MOST as u64) && !apart.ended(MOST as u64));
        assert_eq!(apart.bytes(), 20 * (MOST as u64 - 1));
    }
}
