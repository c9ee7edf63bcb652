//! The drop-tail queue in front of a link.

use std::collections::VecDeque;

use braid_core::Time;

use super::train::{Span, Train};

/// Waiting packets of one train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) train: Train,
    /// First and one past the last waiting packet.
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) arrival: Time,
    /// Number of the first packet among all that entered this queue.
    pub(super) seq: u64,
}

impl Waiting {
    pub(super) fn packets(&self) -> u32 {
        self.end - self.first
    }

    pub(super) fn bytes(&self) -> u64 {
        self.train.bytes(self.first, self.end)
    }

    pub(super) fn span(&self) -> Span {
        Span {
            id: self.train.id,
            first: self.first,
            end: self.end,
        }
    }

    /// The first `n` packets, which leave `self`.
    pub(super) fn split(&mut self, n: u32) -> Waiting {
        let head = Waiting {
            end: self.first + n,
            ..*self
        };
        self.first += n;
        self.seq += u64::from(n);
        head
    }
}

/// Most that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Packets(u64),
    /// Bytes, with `overhead` bytes added to every packet.
    Bytes {
        bytes: u64,
        overhead: u32,
    },
}

impl Limit {
    /// One past the last of the packets `from..` of `train` that fit beside
    /// `packets` of together `bytes`.
    fn fit(self, train: &Train, from: u32, packets: u64, bytes: u64) -> u32 {
        match self {
            Limit::Packets(max) => {
                let n = max
                    .saturating_sub(packets)
                    .min((train.packets - from).into());
                from + n as u32
            }
            Limit::Bytes {
                bytes: max,
                overhead,
            } => {
                let held = bytes + packets * u64::from(overhead);
                fit(
                    train,
                    from,
                    train.packets,
                    max.saturating_sub(held),
                    overhead,
                )
            }
        }
    }

    fn holds(self, packets: u64, bytes: u64) -> bool {
        match self {
            Limit::Packets(max) => packets <= max,
            Limit::Bytes {
                bytes: max,
                overhead,
            } => bytes + packets * u64::from(overhead) <= max,
        }
    }
}

/// One past the last of the packets `first..end` of `train` that together,
/// with `overhead` each, are at most `room` bytes.
pub(super) fn fit(train: &Train, first: u32, end: u32, room: u64, overhead: u32) -> u32 {
    if first >= end {
        return first;
    }
    let each = u64::from(train.full_bytes) + u64::from(overhead);
    let has_last = end == train.packets;
    let full = u64::from(end - first) - u64::from(has_last);
    let n = room.checked_div(each).unwrap_or(u64::MAX).min(full);
    let last = u64::from(train.last_bytes) + u64::from(overhead);
    if n == full && has_last && room - n * each >= last {
        return end;
    }
    // At most `end - first`.
    first + n as u32
}

/// Packets in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    items: VecDeque<Waiting>,
    bytes: u64,
    packets: u64,
    seq: u64,
}

impl Queue {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub(super) fn head(&self) -> Option<&Waiting> {
        self.items.front()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiting> {
        self.items.iter()
    }

    /// Takes in the packets of `train` that fit beside `ahead` (packets and
    /// bytes that wait outside this queue), of which the first `direct` do not
    /// count; returns the number of the first that does not fit. A lone packet
    /// always finds room.
    pub(super) fn push(
        &mut self,
        train: Train,
        arrival: Time,
        limit: Limit,
        ahead: (u64, u64),
        direct: u32,
    ) -> u32 {
        let (packets, bytes) = (self.packets + ahead.0, self.bytes + ahead.1);
        let lone = u32::from(packets == 0);
        let end = limit
            .fit(&train, direct, packets, bytes)
            .max((direct + lone).min(train.packets));
        if end > 0 {
            self.put(train, arrival, end);
        }
        end
    }

    fn put(&mut self, train: Train, arrival: Time, end: u32) {
        self.items.push_back(Waiting {
            train,
            first: 0,
            end,
            arrival,
            seq: self.seq,
        });
        self.seq += u64::from(end);
        self.packets += u64::from(end);
        self.bytes += train.bytes(0, end);
    }

    /// Removes the first `n` packets, at most those of the first train.
    pub(super) fn pop(&mut self, n: u32) -> Option<Waiting> {
        let head = self.items.front_mut()?;
        let out = if n < head.packets() {
            head.split(n)
        } else {
            self.items.pop_front()?
        };
        self.packets -= u64::from(out.packets());
        self.bytes -= out.bytes();
        Some(out)
    }

    /// Drops from the tail what is over `limit` beside `ahead`.
    pub(super) fn trim(&mut self, limit: Limit, ahead: (u64, u64), mut out: impl FnMut(Waiting)) {
        while let Some(tail) = self.items.back_mut() {
            let over = !limit.holds(self.packets + ahead.0, self.bytes + ahead.1);
            if !over || self.packets + ahead.0 <= 1 {
                return;
            }
            let mut gone = *tail;
            tail.end -= 1;
            gone.first = tail.end;
            gone.seq += u64::from(tail.packets());
            if tail.packets() == 0 {
                self.items.pop_back();
            }
            self.packets -= 1;
            self.bytes -= gone.bytes();
            out(gone);
        }
    }
}
