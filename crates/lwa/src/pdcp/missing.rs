//! When gaps in the numbers opened, so that it is known how late what fills them comes.

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;

/// Gaps that are remembered.
const GAPS: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Missing(VecDeque<(u32, u32, Time)>);

impl Missing {
    /// COUNTs `first..end` were skipped at `now`.
    pub(super) fn open(&mut self, first: u32, end: u32, now: Time) {
        if self.0.len() == GAPS {
            self.0.pop_front();
        }
        self.0.push_back((first, end, now));
    }

    /// How long ago the gap opened that `count` fills.
    pub(super) fn age(&self, count: u32, now: Time) -> Option<Duration> {
        let gap = self.0.iter().rev().find(|g| g.0 <= count && count < g.1)?;
        Some(now.since(gap.2))
    }
}
