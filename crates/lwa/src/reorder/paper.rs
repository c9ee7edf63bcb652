//! Reordering time of the LWA testbed: twice the longer of the two links' round trips
//! (Pasca et al., WiNTECH 2018, section 4).

use std::time::Duration;

use braid_core::Time;

use super::{Entry, LONGEST, ReorderingTime};
use crate::link::Link;

pub(super) const ENTRY: Entry = Entry {
    name: "paper",
    argument: "",
    about: "twice the longer round trip of both links",
    make: |argument| {
        argument
            .is_empty()
            .then(|| Box::new(Paper::default()) as Box<dyn ReorderingTime>)
    },
};

/// Before the first probe is answered.
const START: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
struct Paper([Option<Duration>; 2]);

impl ReorderingTime for Paper {
    fn round_trip(&mut self, _now: Time, link: Link, rtt: Duration) {
        // Smoothed as steering smooths it, so that one late answer does not decide.
        let smoothed = &mut self.0[link.index()];
        *smoothed = Some(smoothed.map_or(rtt, |s| (s * 7 + rtt) / 8));
    }

    fn time(&self, _now: Time) -> Duration {
        let longest = self.0.iter().flatten().max();
        longest.map_or(START, |&rtt| (rtt * 2).min(LONGEST))
    }
}
