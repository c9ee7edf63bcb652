//! Steering by the round trips of both links (Pasca et al., WiNTECH 2018, section 3.2).
//!
//! `rtt` is the paper: probes every 3 ms, SLRTT = (1 - alpha) LRTT + alpha SLRTT with
//! alpha = 1/P, P being the interval in ms; in a cycle LTE carries as many packets as Wi-Fi's
//! round trip has milliseconds, and the other way round, so that the window (the sum) varies.
//! `rtt-code` is the authors' published code (their LWIP repository): probes every second, the
//! newest weighs 0.6, Wi-Fi's packets first and then LTE's, each as one burst.

use std::time::Duration;

use braid_core::Time;

use super::{Demand, Entry, LinkView, Steering, prefer};
use crate::link::Link;

pub(super) const PAPER: Entry = Entry {
    name: "rtt",
    argument: "",
    about: "packets in the inverse ratio of the round trips, probed every 3 ms",
    make: |argument| make(argument, false),
};

pub(super) const CODE: Entry = Entry {
    name: "rtt-code",
    argument: "",
    about: "the same ratio in bursts, probed every second, as the authors' code has it",
    make: |argument| make(argument, true),
};

fn make(argument: &str, bursts: bool) -> Option<Box<dyn Steering>> {
    let rtt = Rtt {
        bursts,
        window: [0; 2],
        left: [0; 2],
    };
    argument.is_empty().then(|| Box::new(rtt) as _)
}

const PAPER_INTERVAL: Duration = Duration::from_millis(3);
const CODE_INTERVAL: Duration = Duration::from_secs(1);
/// Longest cycle of one link in packets: a link silent for long must not fix the ratio for long.
const MOST: u32 = 1000;

#[derive(Debug)]
struct Rtt {
    bursts: bool,
    /// Packets per link in this cycle.
    window: [u32; 2],
    /// Packets that each link still gets in it.
    left: [u32; 2],
}

/// Packets per link in a cycle: each gets as many as the other's round trip has milliseconds.
fn cycle(links: &[LinkView; 2]) -> [u32; 2] {
    let ms = |view: &LinkView| {
        let rtt = view.slrtt.unwrap_or(Duration::from_millis(1));
        (rtt.as_secs_f64() * 1e3).ceil().clamp(1.0, f64::from(MOST)) as u32
    };
    [ms(&links[1]), ms(&links[0])]
}

impl Rtt {
    fn current(&self, links: &[LinkView; 2]) -> ([u32; 2], [u32; 2]) {
        if self.left == [0; 2] {
            let window = cycle(links);
            (window, window)
        } else {
            (self.window, self.left)
        }
    }

    fn next(&self, (window, left): ([u32; 2], [u32; 2])) -> Link {
        let [lte, wlan] = left;
        // Spread: the link that has more of its part of the cycle left.
        let lte_first =
            u64::from(lte) * u64::from(window[1]) > u64::from(wlan) * u64::from(window[0]);
        match (lte, wlan) {
            (0, _) => Link::Wlan,
            (_, 0) => Link::Lte,
            _ if self.bursts || !lte_first => Link::Wlan,
            _ => Link::Lte,
        }
    }
}

impl Steering for Rtt {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        prefer(links, demand, self.next(self.current(links)))
    }

    fn sent(&mut self, _now: Time, links: &[LinkView; 2], link: Link) {
        (self.window, self.left) = self.current(links);
        let left = &mut self.left[link.index()];
        *left = left.saturating_sub(1);
        if !links[link.other().index()].usable {
            // Nobody can take the other's part: the next packet begins a new cycle.
            self.left = [0; 2];
        }
    }

    fn probe_interval(&self) -> Option<Duration> {
        Some(if self.bursts {
            CODE_INTERVAL
        } else {
            PAPER_INTERVAL
        })
    }

    fn newest_weight(&self) -> f64 {
        if self.bursts { 0.6 } else { 1.0 - 1.0 / 3.0 }
    }
}
