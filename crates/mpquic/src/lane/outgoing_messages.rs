//! Messages that wait to leave. They are sent once: what is lost of them is not sent again.

use std::collections::VecDeque;

use bytes::Bytes;

use super::piece::MIN_PIECE;
use super::wire::{Frame, message_header};

/// Bytes of messages that may wait to leave.
const MAX_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Message {
    number: u64,
    ordered: bool,
    data: Bytes,
    sent: usize,
}

/// Messages that wait to leave, in the order in which they were taken.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessages {
    waiting: VecDeque<Message>,
    /// Bytes of the waiting messages that have not left.
    bytes: usize,
    /// Number of the next.
    next: u64,
}

impl OutgoingMessages {
    /// Takes a message; false if it is empty or there is no room for it now.
    pub(super) fn push(&mut self, data: Bytes, ordered: bool) -> bool {
        if data.is_empty() || self.bytes + data.len() > MAX_BYTES {
            return false;
        }
        self.bytes += data.len();
        self.waiting.push_back(Message {
            number: self.next,
            ordered,
            data,
            sent: 0,
        });
        self.next += 1;
        true
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The next part of the oldest.
    pub(super) fn part(&mut self, room: usize) -> Option<Frame> {
        let m = self.waiting.front_mut()?;
        let (total, offset) = (m.data.len() as u32, m.sent as u32);
        let fits = room.checked_sub(message_header(m.number, total, offset, room))?;
        let left = m.data.len() - m.sent;
        if left > fits && fits < MIN_PIECE {
            return None;
        }
        let n = left.min(fits);
        let frame = Frame::Message {
            number: m.number,
            total,
            offset,
            ordered: m.ordered,
            data: m.data.slice(m.sent..m.sent + n),
        };
        m.sent += n;
        self.bytes -= n;
        if m.sent == m.data.len() {
            self.waiting.pop_front();
        }
        Some(frame)
    }

    /// Bytes of memory that they hold, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.waiting.len() * size_of::<Message>() + self.bytes
    }
}
