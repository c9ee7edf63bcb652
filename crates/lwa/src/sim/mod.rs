//! A node and a UE joined by simulated links, in virtual time.
//!
//! `soak` holds every delivered packet against what was sent, under loss, reordering, copies,
//! outages, changes of key and re-establishments; `throughput` measures steering.

mod pipe;
mod soak;
mod throughput;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use braid_core::Time;

use crate::bearer::{End, EndConfig, Framing};
use crate::link::Link;
use crate::wire::lwaap::DrbId;
use pipe::Pipe;

/// Node and UE, as indices.
const NODE: usize = 0;
const UE: usize = 1;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A frame arrives at an end over a link; the number says which of `Pair::frames`.
    Frame {
        end: usize,
        link: usize,
        frame: usize,
    },
    /// A link may have room again.
    Room { end: usize, link: usize },
    /// The application acts: the number means something to it.
    App(u64),
}

/// Both ends and the four one-way links between them.
struct Pair {
    now: Time,
    ends: [End; 2],
    /// Links that leave each end.
    pipes: [[Pipe; 2]; 2],
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    sequence: u64,
    frames: Vec<Option<(Vec<u8>, u32)>>,
    free: Vec<usize>,
    wakes: [[Option<Time>; 2]; 2],
    /// Re-establishments of each end.
    epochs: [u32; 2],
    /// Wi-Fi has no tunnels: frames of an earlier epoch count.
    ethernet: bool,
}

/// A thing that happened and that the test looks at.
enum Seen {
    /// An action of the application is due.
    App(u64),
    /// A frame of the current tunnels is about to be received.
    Arrival {
        end: usize,
        link: usize,
        frame: Vec<u8>,
    },
    /// A packet was delivered.
    Delivered {
        end: usize,
        drb: DrbId,
        packet: Vec<u8>,
    },
}

impl Pair {
    fn new(node: EndConfig, ue: EndConfig, pipes: [[Pipe; 2]; 2]) -> Self {
        Pair {
            ethernet: node.framing[1] == Framing::Ethernet,
            now: Time::ZERO,
            ends: [End::new(node).unwrap(), End::new(ue).unwrap()],
            pipes,
            events: BinaryHeap::new(),
            sequence: 0,
            frames: Vec::new(),
            free: Vec::new(),
            wakes: [[None; 2]; 2],
            epochs: [0; 2],
        }
    }

    fn at(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.events.push(Reverse((at, self.sequence, event)));
    }

    /// Calls the application's action `what` at `at`.
    fn act(&mut self, at: Time, what: u64) {
        self.at(at, Event::App(what));
    }

    /// Runs until `end`, and shows `see` all that happens.
    fn run(&mut self, end: Time, mut see: impl FnMut(&mut Pair, Seen)) {
        loop {
            let timers = self.ends[NODE].timeout().min(self.ends[UE].timeout());
            let event = self.events.peek().map_or(Time::MAX, |e| e.0.0);
            let next = timers.min(event).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            if event <= next {
                let Some(Reverse((_, _, event))) = self.events.pop() else {
                    return;
                };
                match event {
                    Event::Frame { end, link, frame } => {
                        let Some((bytes, epoch)) = self.frames[frame].take() else {
                            continue;
                        };
                        self.free.push(frame);
                        if epoch == self.epochs[end] || (self.ethernet && link == 1) {
                            let frame = bytes.clone();
                            see(self, Seen::Arrival { end, link, frame });
                        }
                        self.ends[end].receive(next, Link::ALL[link], &bytes);
                    }
                    Event::Room { end, link } => self.wakes[end][link] = None,
                    Event::App(what) => see(self, Seen::App(what)),
                }
            }
            for end in [NODE, UE] {
                if self.ends[end].timeout() <= next {
                    self.ends[end].handle_timeout(next);
                    assert!(self.ends[end].timeout() > next, "a timer that never ends");
                }
                while let Some((drb, packet)) = self.ends[end].pop() {
                    see(self, Seen::Delivered { end, drb, packet });
                }
                self.pump(end);
            }
        }
    }

    /// Sends what the end has, as far as its links have room.
    fn pump(&mut self, end: usize) {
        let now = self.now;
        loop {
            let room = [0, 1].map(|l| self.pipes[end][l].has_room(now));
            for link in [0, 1] {
                if !room[link] && self.wakes[end][link].is_none() {
                    let at = self.pipes[end][link].room_at(now);
                    self.wakes[end][link] = Some(at);
                    self.at(at, Event::Room { end, link });
                }
            }
            let Some(offer) = self.ends[end].offer(room, now) else {
                return;
            };
            let (link, frame) = (offer.link.index(), offer.frame.clone());
            offer.accept(now);
            for at in self.pipes[end][link].send(now, frame.len()) {
                let kept = Some((frame.clone(), self.epochs[end]));
                let place = match self.free.pop() {
                    Some(place) => {
                        self.frames[place] = kept;
                        place
                    }
                    None => {
                        self.frames.push(kept);
                        self.frames.len() - 1
                    }
                };
                let end = 1 - end;
                self.at(
                    at,
                    Event::Frame {
                        end,
                        link,
                        frame: place,
                    },
                );
            }
        }
    }
}

fn ms(n: u64) -> Time {
    Time::from(Duration::from_millis(n))
}
