//! Receiving side of Xw-U flow control: which numbers of a link came, and the status about them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use braid_core::Time;

use crate::wire::xw::{DeliveryStatus, SN_MODULUS};

/// A missing number counts as lost when it did not come for so long: links deliver in order,
/// almost.
const TOLERANCE: Duration = Duration::from_millis(10);
/// A lost range is named in so many statuses, as statuses are lost too.
const REPEATS: u8 = 4;
/// Ranges that are kept; beyond, the oldest counts as lost at once.
const RANGES: usize = 60;

/// Numbers of one link, without wrapping: the first one sent is [`SN_MODULUS`].
#[derive(Debug)]
pub(super) struct Arrivals {
    highest: u64,
    /// Missing ranges by their first number: the last number, and when the gap was seen.
    missing: BTreeMap<u64, (u64, Time)>,
    lost: VecDeque<(u64, u64, u8)>,
    news: bool,
}

impl Default for Arrivals {
    fn default() -> Self {
        Arrivals {
            highest: u64::from(SN_MODULUS) - 1,
            missing: BTreeMap::new(),
            lost: VecDeque::new(),
            news: false,
        }
    }
}

impl Arrivals {
    /// Packet number `sn` came.
    pub(super) fn arrived(&mut self, now: Time, sn: u32) {
        self.news = true;
        let half = u64::from(SN_MODULUS / 2);
        let ahead = u64::from(sn).wrapping_sub(self.highest) % u64::from(SN_MODULUS);
        if ahead == 0 {
            return;
        }
        if ahead < half {
            let sn = self.highest + ahead;
            if ahead > 1 {
                self.missing.insert(self.highest + 1, (sn - 1, now));
            }
            self.highest = sn;
            while self.missing.len() > RANGES {
                self.lose_first();
            }
        } else {
            let sn = (self.highest + ahead).wrapping_sub(u64::from(SN_MODULUS));
            self.fill(sn);
        }
    }

    fn fill(&mut self, sn: u64) {
        let Some((&first, &(last, seen))) = self.missing.range(..=sn).next_back() else {
            return;
        };
        if sn > last {
            return;
        }
        self.missing.remove(&first);
        if first < sn {
            self.missing.insert(first, (sn - 1, seen));
        }
        if sn < last {
            self.missing.insert(sn + 1, (last, seen));
        }
    }

    fn lose_first(&mut self) {
        if let Some((first, (last, _))) = self.missing.pop_first() {
            self.lost.push_back((first, last, 0));
            if self.lost.len() > RANGES {
                self.lost.pop_front();
            }
        }
    }

    /// Whether there is something to report: packets came, or a gap has become a loss.
    pub(super) fn has_news(&self) -> bool {
        self.news || !self.missing.is_empty()
    }

    /// Status to be sent now.
    pub(super) fn status(&mut self, now: Time, desired_buffer_bytes: u32) -> DeliveryStatus {
        self.news = false;
        while let Some((_, &(_, seen))) = self.missing.first_key_value() {
            if now.since(seen) < TOLERANCE {
                break;
            }
            self.lose_first();
        }
        let complete =
            (self.missing.first_key_value()).map_or(self.highest, |(first, _)| first - 1);
        let wrap = |n: u64| (n % u64::from(SN_MODULUS)) as u32;
        let lost = (self.lost.iter())
            .map(|&(first, last, _)| (wrap(first), wrap(last)))
            .collect();
        self.lost.retain_mut(|range| {
            range.2 += 1;
            range.2 < REPEATS
        });
        DeliveryStatus {
            final_frame: false,
            highest_delivered: wrap(complete),
            desired_buffer_bytes,
            min_desired_buffer_bytes: desired_buffer_bytes,
            lost,
        }
    }
}
