//! Data of one class that waits to leave: its messages, the turns of its streams, and what of them is
//! to be sent again.

use super::outgoing_messages::OutgoingMessages;
use super::retransmissions::Retransmissions;
use super::turns::Turns;

/// Queue of one class. The data of streams stands with the streams.
#[derive(Debug, Default)]
pub(super) struct ClassQueue {
    pub(super) messages: OutgoingMessages,
    /// Turns of messages and of streams.
    pub(super) turns: Turns,
    /// Stream of which was sent last.
    pub(super) turn: u64,
    pub(super) retransmissions: Retransmissions,
}

impl ClassQueue {
    /// Bytes of messages, and of streams that are to be sent again.
    pub(super) fn bytes(&self) -> u64 {
        self.messages.bytes() as u64 + self.retransmissions.bytes()
    }
}
