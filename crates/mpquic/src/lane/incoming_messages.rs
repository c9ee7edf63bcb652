//! Messages that arrive on the datagram lane, each once, and in the order of their flows where
//! that is wanted.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use bytes::Bytes;
use rangemap::RangeSet;

use super::assembly::Assembly;
use super::error::Violation;
use super::message_order::{Orders, Place};

/// The largest message.
pub(super) const MAX_MESSAGE: u32 = 64 << 10;
/// Messages of which parts are missing, at most.
const MAX_PARTIAL: usize = 4096;
/// Parts that a message may lie in, with gaps between them: ours are never so small.
const MAX_PARTS: usize = 1024;
/// Maximum bytes of memory of all messages that are not taken: the oldest are given up.
const MAX_COST: usize = 16 << 20;
/// Maximum bytes of memory of a message beside its data.
const MESSAGE_COST: usize = 512;
/// Numbers of messages that are told apart; those before are past.
const MAX_NUMBERS: u64 = 4 * MAX_PARTIAL as u64;

/// A message of which parts are missing.
#[derive(Debug)]
struct Partial {
    parts: Assembly,
    total: u32,
    place: Option<Place>,
}

impl Partial {
    fn cost(&self) -> usize {
        MESSAGE_COST + self.parts.cost()
    }
}

/// Messages that have arrived, whole or in part.
#[derive(Debug, Default)]
pub(super) struct IncomingMessages {
    partial: BTreeMap<u64, Partial>,
    /// Numbers of messages that have been given, or given up.
    done: RangeSet<u64>,
    orders: Orders,
    ready: VecDeque<Bytes>,
    /// Bytes of memory that the partial, waiting and ready messages cost.
    held: usize,
}

fn cost(message: &Bytes) -> usize {
    MESSAGE_COST + message.len()
}

impl IncomingMessages {
    /// Takes a part of a message: of which number, how long that is, and where the part begins;
    /// `place` where it has one in a flow.
    pub(super) fn take(
        &mut self,
        (number, total, offset): (u64, u32, u32),
        place: Option<Place>,
        data: &Bytes,
        now: Instant,
    ) -> Result<(), Violation> {
        if total > MAX_MESSAGE {
            return Err(Violation("sent a message larger than it may"));
        }
        if data.is_empty() {
            return Err(Violation("sent a message without anything in it"));
        }
        if self.done.contains(&number) {
            return Ok(());
        }
        let known = self.partial.remove(&number);
        self.held -= known.as_ref().map_or(0, Partial::cost);
        let mut message = known.unwrap_or_else(|| Partial {
            parts: Assembly::default(),
            total,
            place,
        });
        if message.total != total {
            return Err(Violation("said two lengths of one message"));
        }
        message.parts.put(0, offset.into(), data);
        if let Some(whole) = message.parts.whole(total as usize) {
            self.held += cost(&whole);
            let ready = &mut self.ready;
            match message.place {
                None => ready.push_back(whole),
                Some(place) => {
                    let give = |data| ready.push_back(data);
                    let thrown = self.orders.take(place, whole, now, give);
                    self.held -= thrown.as_ref().map_or(0, cost);
                }
            }
            self.finish(number);
        } else if message.parts.parts() > MAX_PARTS {
            return Err(Violation("sent a message in pieces that are too small"));
        } else {
            self.held += message.cost();
            self.partial.insert(number, message);
        }
        self.make_room();
        self.release(now);
        Ok(())
    }

    /// A message has been given, or given up.
    fn finish(&mut self, number: u64) {
        self.done.insert(number..number + 1);
        let last = self.done.last().map_or(0, |r| r.end);
        self.pass(last.saturating_sub(MAX_NUMBERS));
    }

    /// Passes over the messages before `number`: what comes of them later is too late.
    fn pass(&mut self, number: u64) {
        if number == 0 {
            return;
        }
        self.done.insert(0..number);
        while let Some(entry) = self.partial.first_entry().filter(|e| *e.key() < number) {
            self.held -= entry.remove().cost();
        }
    }

    /// Gives up the oldest messages where there are too many.
    fn make_room(&mut self) {
        while self.held > MAX_COST || self.partial.len() > MAX_PARTIAL {
            let freed = if let Some((old, parts)) = self.partial.pop_first() {
                self.finish(old);
                parts.cost()
            } else if let Some(old) = self.ready.pop_front() {
                cost(&old)
            } else if let Some(old) = self.orders.pop() {
                cost(&old)
            } else {
                return;
            };
            self.held -= freed;
        }
    }

    /// Gives the ordered messages that need not wait (any longer).
    pub(super) fn release(&mut self, now: Instant) {
        let ready = &mut self.ready;
        self.orders.release(now, |data| ready.push_back(data));
    }

    /// When [`IncomingMessages::release`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        self.orders.due()
    }

    /// Whether there is a next message.
    pub(super) fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The next message.
    pub(super) fn next(&mut self) -> Option<Bytes> {
        let next = self.ready.pop_front()?;
        self.held -= cost(&next);
        Some(next)
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let partial: usize = self.partial.values().map(Partial::cost).sum();
        let whole = self.orders.waiting().chain(&self.ready);
        let held = partial + whole.map(cost).sum::<usize>();
        assert_eq!(held, self.held, "what messages cost is counted wrong");
        held + 64 * self.done.len() + self.orders.cost()
    }
}
