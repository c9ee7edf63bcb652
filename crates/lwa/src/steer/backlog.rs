//! Steering by delivery status: each packet goes where it is delivered first.
//!
//! A link delivers a packet after its shortest delay, or after all that is in flight on it, at
//! the rate at which it delivered while busy, whichever is longer. The slower link is used when
//! a packet gets there before the faster link has worked off all that waits. No link gets more
//! in flight than twice what its delay and the time between reports need: the rest waits here,
//! where it can still go elsewhere, and not in the queue of the radio.

use braid_core::Time;

use super::{Demand, Entry, LinkView, Steering, takes};
use crate::link::Link;

pub(super) const ENTRY: Entry = Entry {
    name: "backlog",
    argument: "",
    about: "each packet where it is delivered first, by delivery status",
    make: |argument| argument.is_empty().then(|| Box::new(Backlog) as _),
};

/// In flight at most before a link has shown its rate.
const START_BYTES: u64 = 48_000;
/// In flight at least that a link may have.
const FLOOR_BYTES: u64 = 6_000;
/// In flight at most, as a multiple of rate times shortest delay.
const GAIN: f64 = 2.0;
/// Such while the shortest delay is measured anew: the link's queue must empty.
const DRAIN_GAIN: f64 = 0.75;

#[derive(Debug)]
struct Backlog;

/// Seconds until `bytes` more are delivered; none before the link has shown its rate.
fn seconds(view: &LinkView, bytes: u64) -> Option<f64> {
    let rate = view.delivery_rate?.as_bps() as f64;
    let delay = view.min_delay?.as_secs_f64();
    (rate > 0.0).then(|| delay.max((view.in_flight_bytes + bytes) as f64 * 8.0 / rate))
}

/// Bytes that may be in flight.
fn limit_bytes(view: &LinkView) -> u64 {
    let gain = if view.draining { DRAIN_GAIN } else { GAIN };
    match (view.delivery_rate, view.min_delay) {
        // Between two reports nothing is known to be delivered: that much is in flight as well.
        (Some(rate), Some(delay)) => (rate.scaled(gain))
            .bytes_in(delay + view.report_interval)
            .max(FLOOR_BYTES),
        _ => START_BYTES,
    }
}

impl Steering for Backlog {
    fn choose(&self, _now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link> {
        let open = |link: Link| {
            let view = &links[link.index()];
            takes(view, demand) && view.in_flight_bytes + demand.packet_bytes <= limit_bytes(view)
        };
        let [lte, wlan] = Link::ALL.map(|l| seconds(&links[l.index()], demand.packet_bytes));
        // A link that has not shown its rate is tried.
        let first = match (lte, wlan) {
            (None, Some(_)) => Link::Lte,
            (Some(_), None) => Link::Wlan,
            (Some(lte), Some(wlan)) if wlan < lte => Link::Wlan,
            (Some(_), Some(_)) => Link::Lte,
            (None, None) => {
                let in_flight = links.map(|l| l.in_flight_bytes);
                if in_flight[1] < in_flight[0] {
                    Link::Wlan
                } else {
                    Link::Lte
                }
            }
        };
        if open(first) {
            return Some(first);
        }
        let second = first.other();
        if !open(second) {
            return None;
        }
        if !links[first.index()].usable {
            return Some(second);
        }
        // Worth it only if it does not come behind all that waits for the first.
        let drained = seconds(&links[first.index()], demand.waiting_bytes);
        let there = seconds(&links[second.index()], demand.packet_bytes);
        match (drained, there) {
            (Some(drained), Some(there)) if there > drained => None,
            _ => Some(second),
        }
    }
}
