//! A network that takes the place of another while traffic runs.

use std::time::Duration;

use braid_core::Time;

use super::Network;
use crate::model::backhaul::Backhaul;
use crate::model::link::{Link, Service};
use crate::model::queue::Waiting;
use crate::model::train::Sink;

/// Conversion of the former network's times to those of the new one.
#[derive(Clone, Copy)]
struct Shift {
    former: Time,
    new: Time,
}

impl Shift {
    fn of(self, t: Time) -> Time {
        let ns = i128::from(t.as_nanos()) - i128::from(self.former.as_nanos())
            + i128::from(self.new.as_nanos());
        Time::from_nanos(u64::try_from(ns.max(0)).unwrap_or(u64::MAX))
    }

    fn service(self, s: Service) -> Service {
        Service {
            start: self.of(s.start),
            end: self.of(s.end),
            ..s
        }
    }
}

impl Network {
    /// Goes on, at its own time `now`, where `former` is at its time `then`: what
    /// waits there waits here in the same order, and counts as having arrived
    /// now; what `former` serves or has under way it still delivers, before
    /// anything of this network. A frame that is on the air of a medium is sent
    /// again. Rates, losses and all draws are those of this network.
    ///
    /// Both have the same links, media and backhauls in the same order; this
    /// one has carried nothing yet.
    pub fn succeed(&mut self, now: Time, former: &mut Network, then: Time, sink: &mut dyn Sink) {
        let then = former.bring_up_to(then, sink);
        let shift = Shift {
            former: then,
            new: self.clock(now),
        };
        let mut arrivals: Vec<Time> = former.links.iter().flat_map(Link::arrivals).collect();
        arrivals.sort_unstable();
        arrivals.dedup();
        // Who was first stays first, a nanosecond each, and what comes to this
        // network counts as coming after them.
        let arrival = |of: Time| {
            let before = arrivals.partition_point(|&a| a < of);
            shift.new + Duration::from_nanos(before as u64)
        };
        self.clock(arrival(Time::MAX));
        for (link, old) in self.links.iter_mut().zip(&mut former.links) {
            link.succeed(old, shift, arrival);
        }
        for (line, old) in self.backhauls.iter_mut().zip(&former.backhauls) {
            line.succeed(old, shift);
        }
        former.forget_taken();
        for i in 0..self.links.len() {
            former.update(i);
            self.update(i);
        }
        for b in 0..self.backhauls.len() {
            self.run_backhaul(b, shift.new, sink);
        }
        for m in 0..self.media.len() {
            for station in &mut self.media[m].stations {
                station.settle(&self.links);
            }
            self.plan_medium(m, sink);
        }
    }

    /// Delivers and commits everything up to `now`.
    fn bring_up_to(&mut self, now: Time, sink: &mut dyn Sink) -> Time {
        let now = self.clock(now);
        self.advance(now, sink);
        for link in &mut self.links {
            link.commit(now, sink);
        }
        for b in 0..self.backhauls.len() {
            self.run_backhaul(b, now, sink);
        }
        now
    }

    /// The media have nothing left to send.
    fn forget_taken(&mut self) {
        for shared in &mut self.media {
            for (s, station) in shared.stations.iter().enumerate() {
                for receiver in 0..station.links.len() {
                    shared.medium.forget(s, receiver as u32);
                }
            }
            // Of the frames on the air nothing comes.
            shared.event = Time::MAX;
        }
        for line in &mut self.backhauls {
            line.event = Time::MAX;
        }
    }
}

impl Link {
    /// When what waits, with a medium or in the queue, arrived.
    fn arrivals(&self) -> impl Iterator<Item = Time> {
        self.taken
            .iter()
            .chain(self.queue.iter())
            .map(|w| w.arrival)
    }

    fn succeed(&mut self, former: &mut Link, shift: Shift, arrival: impl Fn(Time) -> Time) {
        let queue = std::iter::from_fn(|| former.queue.pop(u32::MAX));
        for waiting in former.taken.drain(..).chain(queue) {
            self.stats.in_packets += u64::from(waiting.packets());
            self.stats.in_bytes += waiting.bytes();
            self.queue.adopt(Waiting {
                arrival: arrival(waiting.arrival),
                ..waiting
            });
        }
        self.free = shift.of(former.free);
        self.service = shift.service(former.service);
        self.delay.not_before(shift.of(former.delay.last()));
    }
}

impl Backhaul {
    fn succeed(&mut self, former: &Backhaul, shift: Shift) {
        self.free = shift.of(former.free);
        self.service = shift.service(former.service);
    }
}
