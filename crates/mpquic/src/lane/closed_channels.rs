//! Channels that have ended, in bounded memory.

use std::ops::Range;

use rangemap::RangeSet;

/// More gaps than this between those that have ended are not remembered.
const MAX_GAPS: usize = 1024;

/// Channels that have ended and are not used again.
#[derive(Debug, Default)]
pub(super) struct ClosedChannels(RangeSet<u64>);

impl ClosedChannels {
    /// Returns whether a channel has ended.
    pub(super) fn contains(&self, channel: u64) -> bool {
        self.0.contains(&channel)
    }

    /// Adds one. Where there are too many gaps, the lowest of which `is_open` says that
    /// nothing in it is in use counts as ended too: whoever numbers channels upwards has
    /// passed it long ago.
    pub(super) fn insert(&mut self, channel: u64, is_open: impl Fn(Range<u64>) -> bool) {
        self.0.insert(channel..channel + 1);
        if self.0.len() <= MAX_GAPS {
            return;
        }
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return;
        };
        let all = first.start..last.end;
        let unused = self.0.gaps(&all).find(|gap| !is_open(gap.clone()));
        if let Some(gap) = unused {
            self.0.insert(gap);
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        64 * self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_bounded_and_forgets_none_that_is_in_use() {
        let open = [1, 77, 5001];
        let mut closed = ClosedChannels::default();
        for n in 0..100_000 {
            closed.insert(2 * n, |gap| open.iter().any(|o| gap.contains(o)));
        }
        assert!(closed.0.len() <= MAX_GAPS);
        assert!((0..100_000).all(|n| closed.contains(2 * n)));
        assert!(open.iter().all(|o| !closed.contains(*o)));
        assert!(closed.contains(3) && !closed.contains(199_997));
    }
}
