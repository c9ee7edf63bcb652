//! One line that several links go through: they have one queue together, which
//! is served in order of arrival, and a rate of all; delay, loss and outages
//! stay each link's own.

use std::sync::Arc;
use std::time::Duration;

use braid_core::Time;

use super::codel::{Codel, HeadPacket, Standing};
use super::link::{Beside, Link, Service};
use super::rate::{Capacity, Server};
use super::serve::{CHUNK, chunk};
use super::spec::RateSpec;
use super::train::{DropCause, Sink};

pub(super) struct Backhaul {
    server: Server,
    /// CoDel of the common queue, if that is not drop-tail.
    codel: Option<Codel>,
    /// Indices of the links behind it.
    links: Vec<usize>,
    /// From when the server is free.
    pub(super) free: Time,
    pub(super) service: Service,
    /// [`Time::MAX`]: nothing to do before a link has.
    pub(super) event: Time,
}

impl Backhaul {
    pub(super) fn new(rate: &RateSpec, codel: Option<Codel>, links: Vec<usize>) -> Self {
        Self {
            server: Server::new(Arc::new(Capacity::new(rate))),
            codel,
            links,
            free: Time::ZERO,
            service: Service::default(),
            event: Time::MAX,
        }
    }

    pub(super) fn links(&self) -> &[usize] {
        &self.links
    }

    /// The link whose packet is next, and when its service begins.
    fn next(&self, links: &[Link]) -> Option<(usize, Time)> {
        let (i, arrival) = oldest(&self.links, links)?;
        let start = self.server.begin(
            self.free.max(arrival),
            links[i].on_wire(links[i].head_bytes()?, 1),
        )?;
        Some((i, start))
    }

    /// Returns what waits for the line at `now` besides the queue of link `i`, to which
    /// a packet of `first` bytes comes.
    pub(super) fn beside(&mut self, i: usize, first: u64, now: Time, links: &[Link]) -> Beside {
        let empty = self.links.iter().all(|&l| links[l].queue.is_empty());
        if empty && self.free < now {
            self.server.idle();
        }
        let direct = empty
            && self.free <= now
            && links[i].up
            && self.server.begin(now, links[i].on_wire(first, 1)) == Some(now);
        let others = self.links.iter().filter(|&&l| l != i);
        let waiting = others.fold(self.service.waiting(now), |(p, b), &l| {
            let q = &links[l].queue;
            (p + q.packets(), b + q.bytes())
        });
        Beside {
            waiting,
            direct: u32::from(direct),
        }
    }

    /// Serves everything whose service begins by `now`.
    pub(super) fn commit(&mut self, now: Time, links: &mut [Link], sink: &mut dyn Sink) {
        let due = |n: &(usize, Time)| n.1 <= now;
        while let Some((mut i, mut start)) = self.next(links).filter(due) {
            let mut length = CHUNK;
            if let Some(codel) = &mut self.codel {
                let behind = &self.links;
                codel.drop_until_sendable(
                    start,
                    &mut Heads {
                        behind,
                        links,
                        sink,
                    },
                );
                let Some(left) = self.next(links).filter(due) else {
                    return;
                };
                (i, start) = left;
                // CoDel looks at each packet when its own service begins.
                length = Duration::ZERO;
            }
            let link = &mut links[i];
            let Some((packets, service)) = chunk(
                &mut link.queue,
                &mut self.server,
                link.overhead,
                start,
                length,
            ) else {
                return;
            };
            self.service = service;
            self.free = service.end;
            link.depart(packets, service.end, sink);
        }
    }

    /// Sets when there is something to do next. What is served later arrives
    /// later, so that serving can wait as long as each link has packets under
    /// way.
    pub(super) fn plan(&mut self, links: &[Link]) {
        let starved = self.links.iter().any(|&i| {
            let l = &links[i];
            l.up && !l.queue.is_empty() && (l.line.due().is_none() || l.delay.reorders())
        });
        let next = if starved { self.next(links) } else { None };
        self.event = next.map_or(Time::MAX, |n| n.1);
    }
}

/// The link behind the line whose packet is next, and since when it waits.
fn oldest(behind: &[usize], links: &[Link]) -> Option<(usize, Time)> {
    let heads = behind.iter().filter_map(|&i| {
        let link = links.get(i).filter(|l| l.up)?;
        // The end of an outage, if later.
        Some((i, link.queue.head()?.arrival.max(link.free)))
    });
    heads.min_by_key(|h| h.1)
}

/// The common queue as CoDel sees it.
struct Heads<'a> {
    behind: &'a [usize],
    links: &'a mut [Link],
    sink: &'a mut dyn Sink,
}

impl Standing for Heads<'_> {
    fn head(&self) -> Option<HeadPacket> {
        let (i, arrival) = oldest(self.behind, self.links)?;
        let bytes = self.links[i].head_bytes()?;
        let all: u64 = self
            .behind
            .iter()
            .map(|&l| self.links[l].queue.bytes())
            .sum();
        Some(HeadPacket {
            arrival,
            bytes,
            behind: all - bytes,
        })
    }

    fn drop_head(&mut self) {
        let Some((i, _)) = oldest(self.behind, self.links) else {
            return;
        };
        let link = &mut self.links[i];
        if let Some(w) = link.queue.pop(1) {
            link.stats.discard(w.span(), DropCause::Codel, self.sink);
        }
    }
}
