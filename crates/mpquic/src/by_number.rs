//! Packets of one path by their numbers, which are given out in order: a queue with an index.

use std::collections::VecDeque;
use std::ops::{Bound, RangeBounds};

/// Values by ascending numbers that have few gaps, such as packets under way.
///
/// Each operation takes constant time, but for the gaps that it goes over. Memory is that of the
/// numbers from the first to the last.
#[derive(Clone, Debug)]
pub(crate) struct ByNumber<T> {
    /// The number of the first slot.
    base: u64,
    /// Neither the first nor the last is empty.
    slots: VecDeque<Option<T>>,
    len: usize,
}

impl<T> Default for ByNumber<T> {
    fn default() -> Self {
        Self {
            base: 0,
            slots: VecDeque::new(),
            len: 0,
        }
    }
}

impl<T> ByNumber<T> {
    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the one with the least number.
    pub(crate) fn first(&self) -> Option<(u64, &T)> {
        Some((self.base, self.slots.front()?.as_ref()?))
    }

    /// Returns the greatest number.
    pub(crate) fn last_number(&self) -> Option<u64> {
        let slots = self.slots.len() as u64;
        slots.checked_sub(1).map(|last| self.base + last)
    }

    fn slot(&self, number: u64) -> Option<usize> {
        usize::try_from(number.checked_sub(self.base)?).ok()
    }

    /// Returns the one with this number.
    pub(crate) fn get(&self, number: u64) -> Option<&T> {
        self.slots.get(self.slot(number)?)?.as_ref()
    }

    /// Returns the one with this number, to be changed.
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let slot = self.slot(number)?;
        self.slots.get_mut(slot)?.as_mut()
    }

    /// Adds one whose number is above all others.
    pub(crate) fn push(&mut self, number: u64, value: T) {
        debug_assert!(self.last_number().is_none_or(|last| last < number));
        if self.slots.is_empty() {
            self.base = number;
        }
        let gap = self.slot(number).unwrap_or(0);
        self.slots.resize_with(gap, || None);
        self.slots.push_back(Some(value));
        self.len += 1;
    }

    /// Removes the one with this number, and returns it.
    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        let slot = self.slot(number)?;
        let removed = self.slots.get_mut(slot)?.take()?;
        self.len -= 1;
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.base += 1;
        }
        while let Some(None) = self.slots.back() {
            self.slots.pop_back();
        }
        Some(removed)
    }

    /// Removes the one with the least number, and returns it.
    pub(crate) fn pop_first(&mut self) -> Option<(u64, T)> {
        let number = self.first()?.0;
        self.remove(number).map(|value| (number, value))
    }

    /// Returns the bytes of memory that it holds, without what the values refer to.
    #[cfg(test)]
    pub(crate) fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<Option<T>>()
    }

    /// Returns those with these numbers, ascending.
    pub(crate) fn range(
        &self,
        numbers: impl RangeBounds<u64>,
    ) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let slots = self.slots.len();
        let at = |number: u64| {
            usize::try_from(number.saturating_sub(self.base)).map_or(slots, |n| n.min(slots))
        };
        let from = match numbers.start_bound() {
            Bound::Included(n) => at(*n),
            Bound::Excluded(n) => at(n.saturating_add(1)),
            Bound::Unbounded => 0,
        };
        let to = match numbers.end_bound() {
            Bound::Included(n) => at(n.saturating_add(1)),
            Bound::Excluded(n) => at(*n),
            Bound::Unbounded => slots,
        };
        let base = self.base;
        let found = self.slots.range(from.min(to)..to).enumerate();
        found.filter_map(move |(k, slot)| Some((base + (from + k) as u64, slot.as_ref()?)))
    }

    /// Returns all, ascending.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        self.range(..)
    }

    /// Returns all, ascending, as a list of its own.
    pub(crate) fn into_vec(self) -> Vec<(u64, T)> {
        let numbered = self.slots.into_iter().zip(self.base..);
        let all = numbered.filter_map(|(slot, number)| Some((number, slot?)));
        all.collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is done, it holds what a map holds.
        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0u8..4, 0u64..40, 0u64..40), 1..200)) {
            let (mut queue, mut map) = (ByNumber::default(), BTreeMap::new());
            let mut next = 5;
            for (what, a, b) in steps {
                match what {
                    0 | 1 => {
                        next += 1 + a / 20;
                        queue.push(next, b);
                        map.insert(next, b);
                    }
                    2 => prop_assert_eq!(queue.remove(a + next / 2), map.remove(&(a + next / 2))),
                    _ => prop_assert_eq!(queue.pop_first(), map.pop_first()),
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (map.len(), map.is_empty()));
                prop_assert_eq!(queue.first(), map.first_key_value().map(|(n, v)| (*n, v)));
                prop_assert_eq!(queue.last_number(), map.last_key_value().map(|(n, _)| *n));
                prop_assert_eq!(queue.get(a), map.get(&a));
                prop_assert_eq!(queue.get_mut(b), map.get_mut(&b));
                let (from, to) = (a.min(b), a.max(b));
                let all = |range: (Bound<u64>, Bound<u64>)| {
                    let wanted: Vec<_> = map.range(range).map(|(n, v)| (*n, *v)).collect();
                    let found: Vec<_> = queue.range(range).map(|(n, v)| (n, *v)).collect();
                    (found, wanted)
                };
                for range in [
                    (Bound::Included(from), Bound::Included(to)),
                    (Bound::Unbounded, Bound::Excluded(to)),
                    (Bound::Excluded(from), Bound::Unbounded),
                ] {
                    let (found, wanted) = all(range);
                    prop_assert_eq!(found, wanted);
                }
            }
            let all = queue.into_vec();
            prop_assert_eq!(all, map.into_iter().collect::<Vec<_>>());
        }
    }
}
