//! Probes of both links: echo requests, and the round trips they show.
//!
//! The answer to a probe of Wi-Fi comes back over LTE, as in the LWA testbed.

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;

use crate::link::Link;

/// An unanswered probe is forgotten after so long.
const FORGOTTEN: Duration = Duration::from_secs(2);
const MOST: usize = 2048;

#[derive(Debug)]
pub(super) struct Probes {
    interval: Duration,
    newest_weight: f64,
    next_at: Time,
    sequence: u16,
    open: VecDeque<(u16, Link, Time)>,
    slrtt: [Option<Duration>; 2],
}

impl Probes {
    pub(super) fn new(interval: Duration, newest_weight: f64) -> Self {
        Probes {
            interval,
            newest_weight,
            next_at: Time::ZERO,
            sequence: 0,
            open: VecDeque::new(),
            slrtt: [None; 2],
        }
    }

    pub(super) fn timeout(&self) -> Time {
        self.next_at
    }

    /// Whether probes are due; then the next ones are an interval away.
    pub(super) fn due(&mut self, now: Time) -> bool {
        let due = now >= self.next_at;
        if due {
            self.next_at = (self.next_at + self.interval).max(now + self.interval / 2);
        }
        due
    }

    /// Number of a probe that leaves over `link` now.
    pub(super) fn send(&mut self, now: Time, link: Link) -> u16 {
        while (self.open.front()).is_some_and(|p| now.since(p.2) > FORGOTTEN)
            || self.open.len() >= MOST
        {
            self.open.pop_front();
        }
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        self.open.push_back((sequence, link, now));
        sequence
    }

    /// The answer to `sequence` came: the link that was probed, and its round trip.
    pub(super) fn answered(&mut self, now: Time, sequence: u16) -> Option<(Link, Duration)> {
        let at = self.open.iter().position(|p| p.0 == sequence)?;
        let (_, link, sent) = self.open.remove(at)?;
        let rtt = now.since(sent);
        let smoothed = &mut self.slrtt[link.index()];
        *smoothed = Some(smoothed.map_or(rtt, |s| {
            rtt.mul_f64(self.newest_weight) + s.mul_f64(1.0 - self.newest_weight)
        }));
        Some((link, rtt))
    }

    /// Smoothed round trip of `link`.
    pub(super) fn slrtt(&self, link: Link) -> Option<Duration> {
        self.slrtt[link.index()]
    }
}
