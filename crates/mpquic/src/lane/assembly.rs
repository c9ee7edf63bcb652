//! Parts of a stream or a message that come in any order, more than once and cut anew.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

/// A shorter part is copied: it would hold all of the datagram that it came in.
const COPIED: usize = 1024;
/// Short parts that follow one another are joined up to this.
const JOINED: usize = 4096;
/// Maximum bytes of memory of a part beside its data: its place, and the rest of its datagram.
const PART_COST: usize = 512;

/// Parts that have arrived, by their offset, without overlaps.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    parts: BTreeMap<u64, Bytes>,
    bytes: usize,
}

impl Assembly {
    /// Takes what is new of `data`, which begins at `offset`, from `from` on.
    pub(super) fn put(&mut self, from: u64, offset: u64, data: &Bytes) {
        let (begin, end) = (offset.max(from), offset + data.len() as u64);
        let place = |x: u64| usize::try_from(x - offset).unwrap_or(usize::MAX);
        let last = self.parts.last_key_value();
        if begin < end && last.is_none_or(|(o, p)| o + p.len() as u64 <= begin) {
            // Behind all others, as most is.
            self.insert(begin, data.slice(place(begin)..));
            return;
        }
        let before = self.parts.range(..=begin).next_back();
        let mut at = before.map_or(begin, |(o, p)| begin.max(o + p.len() as u64));
        let mut gaps = Vec::new();
        for (o, p) in self.parts.range(begin..end.max(begin)) {
            if at < *o {
                gaps.push(at..*o);
            }
            at = at.max(o + p.len() as u64);
        }
        if at < end {
            gaps.push(at..end);
        }
        for gap in gaps {
            self.insert(gap.start, data.slice(place(gap.start)..place(gap.end)));
        }
    }

    fn insert(&mut self, at: u64, part: Bytes) {
        self.bytes += part.len();
        if part.len() >= COPIED {
            self.parts.insert(at, part);
            return;
        }
        let before = self.parts.range_mut(..at).next_back();
        match before {
            Some((o, p)) if o + p.len() as u64 == at && p.len() + part.len() <= JOINED => {
                let mut joined = BytesMut::from(std::mem::take(p));
                joined.extend_from_slice(&part);
                *p = joined.freeze();
            }
            _ => {
                self.parts.insert(at, Bytes::copy_from_slice(&part));
            }
        }
    }

    /// Whether there is a part that begins at `next`.
    pub(super) fn has(&self, next: u64) -> bool {
        self.parts.contains_key(&next)
    }

    /// The part that begins at `next`.
    pub(super) fn take(&mut self, next: u64) -> Option<Bytes> {
        let part = self.parts.remove(&next)?;
        self.bytes -= part.len();
        Some(part)
    }

    /// Where the parts that follow one another from `from` on end; `from` if there is none.
    pub(super) fn reach(&self, from: u64) -> u64 {
        self.parts.range(from..).fold(from, |at, (o, p)| match *o {
            o if o == at => at + p.len() as u64,
            _ => at,
        })
    }

    /// Throws away all parts from `from` on.
    pub(super) fn cut(&mut self, from: u64) {
        let gone = self.parts.split_off(&from);
        self.bytes -= gone.values().map(Bytes::len).sum::<usize>();
    }

    /// All of it, from 0 to `total`, once it is there.
    pub(super) fn whole(&mut self, total: usize) -> Option<Bytes> {
        if self.bytes < total {
            return None;
        }
        self.bytes = 0;
        let mut parts = std::mem::take(&mut self.parts).into_values();
        let first = parts.next()?;
        let mut rest = parts.peekable();
        if rest.peek().is_none() {
            return Some(first);
        }
        let mut all = BytesMut::with_capacity(total);
        [first]
            .into_iter()
            .chain(rest)
            .for_each(|p| all.extend_from_slice(&p));
        Some(all.freeze())
    }

    /// How many there are.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Bytes of memory that it holds, at most.
    pub(super) fn cost(&self) -> usize {
        self.bytes + PART_COST * self.parts.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_the_pieces_the_whole_is_the_same(
            total in 1usize..20_000,
            pieces in prop::collection::vec((any::<prop::sample::Index>(), 1usize..3000), 0..200),
        ) {
            let all: Bytes = (0..total).map(|i| (i * 31 % 251) as u8).collect();
            let mut a = Assembly::default();
            let mut have = vec![false; total];
            for (at, len) in pieces {
                let at = at.index(total);
                let end = (at + len).min(total);
                a.put(0, at as u64, &all.slice(at..end));
                have[at..end].fill(true);
                prop_assert_eq!(a.bytes, have.iter().filter(|h| **h).count());
            }
            if have.contains(&false) {
                prop_assert_eq!(a.whole(total), None);
                a.put(0, 0, &all);
            }
            prop_assert_eq!(a.whole(total), Some(all));
            prop_assert_eq!(a.cost(), 0);
        }

        #[test]
        fn what_is_taken_is_not_put_again(cut in 1u64..999, ends in 1u64..1000) {
            let all = Bytes::from(vec![7; 1000]);
            let mut a = Assembly::default();
            a.put(0, 0, &all.slice(..cut as usize));
            prop_assert_eq!(a.take(0).map(|p| p.len() as u64), Some(cut));
            a.put(cut, 0, &all.slice(..ends as usize));
            prop_assert_eq!(a.bytes as u64, ends.saturating_sub(cut));
            prop_assert_eq!(a.take(cut).map(|p| p.len() as u64), (ends > cut).then(|| ends - cut));
        }
    }

    #[test]
    fn what_follows_a_gap_is_cut_off() {
        let mut a = Assembly::default();
        let all = Bytes::from(vec![7; 9000]);
        for (begin, end) in [(0, 2000), (2000, 4500), (5000, 6000), (8000, 9000)] {
            a.put(0, begin, &all.slice(begin as usize..end as usize));
        }
        assert_eq!(
            (a.reach(0), a.reach(2000), a.reach(4500)),
            (4500, 4500, 4500)
        );
        a.cut(4500);
        assert_eq!((a.bytes, a.parts()), (4500, 2));
        assert_eq!(a.take(0).map(|p| p.len()), Some(2000));
        assert_eq!((a.reach(2000), a.reach(0)), (4500, 0));
        a.cut(0);
        assert_eq!(a.cost(), 0);
    }

    /// One byte each, in order: they are joined. Every other one: they cost what they hold.
    #[test]
    fn small_parts_cost_little_or_are_counted() {
        let mut a = Assembly::default();
        let datagram = Bytes::from(vec![1; 1400]);
        for i in 0..100_000 {
            a.put(0, i, &datagram.slice(..1));
        }
        assert!(a.cost() < 120_000, "{}", a.cost());
        for i in 0..1000 {
            a.put(0, 200_000 + 2 * i, &datagram.slice(..1));
        }
        assert_eq!(a.parts(), 100_000usize.div_ceil(JOINED) + 1000);
    }
}
