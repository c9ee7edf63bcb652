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

    /// How many packets are longer than `mtu` bytes: the first ones, as only the last of a train
    /// may be shorter than the others.
    pub(super) fn longer_than(&self, mtu: u32) -> u32 {
        if self.train.full_bytes <= mtu {
            return 0;
        }
        let last_fits = self.end == self.train.packets && self.train.last_bytes <= mtu;
        self.packets() - u32::from(last_fits && self.end > self.first)
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
        self.adopt(Waiting {
            train,
            first: 0,
            end,
            arrival,
            seq: 0,
        });
    }

    /// Takes in packets, as the last ones, whatever the limit.
    pub(super) fn adopt(&mut self, packets: Waiting) {
        self.items.push_back(Waiting {
            seq: self.seq,
            ..packets
        });
        self.seq += u64::from(packets.packets());
        self.packets += u64::from(packets.packets());
        self.bytes += packets.bytes();
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn train(packets: u32, full_bytes: u32, last_bytes: u32) -> Train {
        Train {
            id: 1,
            packets,
            full_bytes,
            last_bytes,
        }
    }

    #[test]
    fn cuts_a_train_where_the_limit_falls() {
        let push = |limit, ahead, direct| {
            Queue::default().push(train(10, 1000, 200), Time::ZERO, limit, ahead, direct)
        };
        let bytes = |bytes, overhead| Limit::Bytes { bytes, overhead };
        assert_eq!(push(Limit::Packets(4), (0, 0), 0), 4);
        assert_eq!(push(Limit::Packets(4), (3, 3000), 0), 1);
        assert_eq!(push(Limit::Packets(4), (0, 0), 1), 5);
        assert_eq!(push(bytes(3999, 0), (0, 0), 0), 3);
        assert_eq!(push(bytes(4000, 0), (0, 0), 0), 4);
        assert_eq!(push(bytes(4000, 1), (0, 0), 0), 3);
        assert_eq!(push(bytes(9200, 0), (0, 0), 0), 10);
        assert_eq!(push(bytes(9199, 0), (0, 0), 0), 9);
        assert_eq!(push(bytes(4000, 38), (2, 1000), 0), 2);
        assert_eq!(push(bytes(0, 0), (0, 0), 0), 1, "a lone packet");
        assert_eq!(push(bytes(0, 0), (1, 10), 0), 0);
        assert_eq!(
            push(bytes(0, 0), (0, 0), 1),
            2,
            "one in service, a lone one behind"
        );
    }

    #[test]
    fn trims_from_the_tail() {
        let mut q = Queue::default();
        let all = Limit::Packets(100);
        q.push(train(3, 1000, 1000), Time::ZERO, all, (0, 0), 0);
        q.push(train(3, 1000, 500), Time::ZERO, all, (0, 0), 0);
        let mut gone = Vec::new();
        let limit = Limit::Bytes {
            bytes: 3500,
            overhead: 0,
        };
        q.trim(limit, (0, 0), |w| gone.push((w.first, w.bytes(), w.seq)));
        assert_eq!(gone, [(2, 500, 5), (1, 1000, 4), (0, 1000, 3)]);
        q.trim(Limit::Packets(0), (0, 0), |w| {
            gone.push((w.first, w.bytes(), w.seq))
        });
        assert_eq!((q.packets(), q.bytes()), (1, 1000), "a lone packet stays");
    }

    proptest! {
        #[test]
        fn fit_is_the_most_that_fits(
            packets in 1u32..50, full in 0u32..2000, last in 0u32..2000,
            first in 0u32..50, end in 1u32..50, room in 0u64..60_000, overhead in 0u32..60,
        ) {
            let t = train(packets, full, last.min(full));
            let (first, end) = (first.min(packets), end.min(packets));
            let got = fit(&t, first, end, room, overhead);
            let wire = |e| t.bytes(first, e) + u64::from(e - first) * u64::from(overhead);
            prop_assert!(got >= first && got <= end.max(first));
            prop_assert!(got == first || wire(got) <= room);
            prop_assert!(got >= end || wire(got + 1) > room);
        }

        #[test]
        fn counts_stay_right(ops in prop::collection::vec((0u8..3, 1u32..9), 1..60)) {
            let mut q = Queue::default();
            for (op, n) in ops {
                match op {
                    0 => { q.push(train(n, 1000, 7), Time::ZERO, Limit::Packets(20), (0, 0), 0); }
                    1 => { q.pop(n); }
                    _ => q.trim(Limit::Packets(n.into()), (0, 0), |_| ()),
                }
                prop_assert_eq!(q.packets(), q.iter().map(|w| u64::from(w.packets())).sum::<u64>());
                prop_assert_eq!(q.bytes(), q.iter().map(Waiting::bytes).sum::<u64>());
                prop_assert!(q.iter().all(|w| w.packets() > 0));
                prop_assert!(q.packets() <= 20);
            }
        }
    }
}
