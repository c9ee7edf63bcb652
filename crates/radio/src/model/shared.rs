//! Links whose queue a medium serves.

use braid_core::Time;

use super::link::Link;
use super::medium::{Head, Stations};
use super::network::StationLink;
use super::queue::Waiting;
use super::train::{DropCause, Sink};

impl Link {
    fn sendable(&self) -> bool {
        self.up && !(self.queue.is_empty() && self.taken.is_empty())
    }

    /// When the oldest packet, taken or not, could be sent.
    fn oldest(&self) -> Option<Time> {
        let oldest = self.taken.front().or(self.queue.head())?;
        // The end of an outage, if later.
        Some(oldest.arrival.max(self.free))
    }

    /// Whether a medium holds packets of this link.
    pub(super) fn has_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    fn take(&mut self, packets: u32, at: Time, sink: &mut dyn Sink) {
        let mut left = packets;
        while left > 0 {
            let Some(w) = self.queue.pop(left) else {
                break;
            };
            left -= w.packets();
            self.taken.push_back(w);
        }
        self.manage(at, sink);
    }

    /// Removes up to `packets` of the oldest taken ones, those of one train.
    fn settle(&mut self, packets: u32) -> Option<Waiting> {
        let head = self.taken.front_mut()?;
        if packets < head.packets() {
            Some(head.split(packets))
        } else {
            self.taken.pop_front()
        }
    }
}

/// A station and whose turn it is on it.
#[derive(Debug)]
pub(super) struct Station {
    pub(super) links: Vec<StationLink>,
    /// The link whose frame is next; the others follow in turn.
    turn: usize,
}

impl Station {
    pub(super) fn new(links: Vec<StationLink>) -> Self {
        Self { links, turn: 0 }
    }

    /// The link whose frame is next, if any has one.
    fn current(&self, links: &[Link]) -> Option<(usize, StationLink)> {
        let station = self.links.get(self.turn)?;
        let index = station.link.0 as usize;
        links.get(index)?.sendable().then_some((index, *station))
    }

    /// Turns to the next link that has a packet to send.
    fn turn(&mut self, links: &[Link]) {
        let n = self.links.len();
        let next = (1..=n).map(|i| (self.turn + i) % n).find(|&i| {
            let link = links.get(self.links[i].link.0 as usize);
            link.is_some_and(Link::sendable)
        });
        self.turn = next.unwrap_or(self.turn);
    }

    /// Turns on if the current link has nothing to send.
    pub(super) fn settle(&mut self, links: &[Link]) {
        if self.current(links).is_none() {
            self.turn(links);
        }
    }
}

/// Part of the network that a medium sees.
pub(super) struct View<'a> {
    pub(super) links: &'a mut [Link],
    pub(super) stations: &'a mut [Station],
    pub(super) sink: &'a mut dyn Sink,
}

impl View<'_> {
    fn index(&self, s: usize, receiver: u32) -> Option<usize> {
        let at = self.stations.get(s)?.links.get(receiver as usize)?;
        Some(at.link.0 as usize).filter(|&i| i < self.links.len())
    }

    /// Settles the oldest `packets` that were taken, a train's at a time.
    fn settle(
        &mut self,
        s: usize,
        receiver: u32,
        packets: u32,
        mut each: impl FnMut(&mut Link, Waiting, &mut dyn Sink),
    ) {
        let Some(i) = self.index(s, receiver) else {
            return;
        };
        let mut left = packets;
        while left > 0 {
            let Some(w) = self.links[i].settle(left) else {
                break;
            };
            left -= w.packets();
            each(&mut self.links[i], w, self.sink);
        }
        if let Some(station) = self.stations.get_mut(s) {
            // Another's turn goes on.
            if station.turn == receiver as usize {
                station.turn(self.links);
            }
        }
    }
}

impl Stations for View<'_> {
    fn head(&self, s: usize) -> Option<Head> {
        let station = self.stations.get(s)?;
        let (i, at) = station.current(self.links)?;
        Some(Head {
            arrival: self.links[i].oldest()?,
            receiver: station.turn as u32,
            phy_mbps: at.phy_mbps,
        })
    }

    fn waiting(&self, s: usize, receiver: u32, by: Time, f: &mut dyn FnMut(u32) -> bool) {
        let Some(i) = self.index(s, receiver) else {
            return;
        };
        let link = &self.links[i];
        for w in link.queue.iter() {
            if w.arrival.max(link.free) > by {
                return;
            }
            for p in w.first..w.end {
                if !f(w.train.packet_bytes(p)) {
                    return;
                }
            }
        }
    }

    fn take(&mut self, s: usize, receiver: u32, packets: u32, at: Time) {
        if let Some(i) = self.index(s, receiver) {
            self.links[i].take(packets, at, self.sink);
        }
    }

    fn garbled(&mut self, s: usize, receiver: u32, at: Time) -> bool {
        self.index(s, receiver)
            .is_some_and(|i| self.links[i].loss.next(1, at).is_some())
    }

    fn sent(&mut self, s: usize, receiver: u32, packets: u32, at: Time) {
        self.settle(s, receiver, packets, |link, w, sink| {
            link.stats.sent_packets += u64::from(w.packets());
            link.stats.sent_bytes += w.bytes();
            link.fly(w, at, sink);
        });
    }

    fn gave_up(&mut self, s: usize, receiver: u32, packets: u32, _at: Time) {
        self.settle(s, receiver, packets, |link, w, sink| {
            link.stats.discard(w.span(), DropCause::RetryLimit, sink);
        });
    }
}
