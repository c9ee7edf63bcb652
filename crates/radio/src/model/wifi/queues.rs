//! Queues in memory behind the stations of a medium: for tests, for the tables
//! of the documentation, and for models that have no real packets.

use std::collections::VecDeque;

use braid_core::{Time, seed};
use rand::RngExt;

use crate::model::{Head, Stations};

/// First in, first out per receiver, receivers in turn.
#[derive(Debug)]
pub struct Queues {
    stations: Vec<Station>,
    rng: seed::Rng,
    /// Packets received since the owner last looked.
    pub delivered: Vec<Delivery>,
    /// Packets given up.
    pub dropped: u64,
}

/// A packet that was received.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// When.
    pub at: Time,
    /// When it had arrived at its station.
    pub arrival: Time,
    /// The station that sent it.
    pub station: usize,
    /// The receiver.
    pub receiver: u32,
    /// IP bytes.
    pub bytes: u32,
    /// Number of the packet among those of its receiver.
    pub number: u64,
}

#[derive(Debug, Default)]
struct Station {
    receivers: Vec<Receiver>,
    /// Index of the receiver whose turn is next.
    turn: usize,
}

#[derive(Debug, Default)]
struct Receiver {
    waiting: VecDeque<Delivery>,
    taken: VecDeque<Delivery>,
    /// Never runs out of packets of this size.
    endless: Option<u32>,
    garbled: f64,
    phy_mbps: Option<f64>,
    next_number: u64,
}

impl Queues {
    /// Empty queues for `stations` stations; losses are drawn from `seed`.
    pub fn new(stations: usize, seed: u64) -> Self {
        let mut all = Vec::new();
        all.resize_with(stations, Station::default);
        Self {
            stations: all,
            rng: seed::stream(seed, "queues in memory"),
            delivered: Vec::new(),
            dropped: 0,
        }
    }

    fn receiver(&mut self, s: usize, receiver: u32) -> &mut Receiver {
        let all = &mut self.stations[s].receivers;
        let index = receiver as usize;
        if index >= all.len() {
            all.resize_with(index + 1, Receiver::default);
        }
        &mut all[index]
    }

    /// Packets of `bytes` for `receiver` never run out.
    pub fn saturate(&mut self, s: usize, receiver: u32, bytes: u32) {
        self.receiver(s, receiver).endless = Some(bytes);
    }

    /// The channel to `receiver` garbles each packet with this probability and
    /// carries `phy_mbps` (`None`: the medium's default rate).
    pub fn channel(&mut self, s: usize, receiver: u32, garbled: f64, phy_mbps: Option<f64>) {
        let channel = self.receiver(s, receiver);
        (channel.garbled, channel.phy_mbps) = (garbled, phy_mbps);
    }

    /// A packet of `bytes` for `receiver` arrives at `arrival`.
    pub fn push(&mut self, s: usize, receiver: u32, arrival: Time, bytes: u32) {
        let to = self.receiver(s, receiver);
        let number = to.next_number;
        to.next_number += 1;
        to.waiting.push_back(Delivery {
            at: arrival,
            arrival,
            station: s,
            receiver,
            bytes,
            number,
        });
    }

    /// Packets of station `s` not settled yet (of endless receivers only those taken).
    pub fn backlog(&self, s: usize) -> usize {
        let receivers = self.stations[s].receivers.iter();
        receivers.map(|r| r.waiting.len() + r.taken.len()).sum()
    }

    fn end_turn(&mut self, s: usize, receiver: u32) {
        let station = &mut self.stations[s];
        station.turn = (receiver as usize + 1) % station.receivers.len();
    }
}

impl Receiver {
    fn oldest(&self) -> Option<Time> {
        let first = self.taken.front().or(self.waiting.front());
        first
            .map(|p| p.arrival)
            .or(self.endless.map(|_| Time::ZERO))
    }
}

impl Stations for Queues {
    fn head(&self, s: usize) -> Option<Head> {
        let Station { receivers, turn } = &self.stations[s];
        (0..receivers.len()).find_map(|k| {
            let index = (turn + k) % receivers.len();
            receivers[index].oldest().map(|arrival| Head {
                arrival,
                receiver: index as u32,
                phy_mbps: receivers[index].phy_mbps,
            })
        })
    }

    fn waiting(&self, s: usize, receiver: u32, by: Time, f: &mut dyn FnMut(u32) -> bool) {
        let from = &self.stations[s].receivers[receiver as usize];
        let arrived = from.waiting.iter().take_while(|p| p.arrival <= by);
        if arrived.into_iter().all(|p| f(p.bytes))
            && let Some(bytes) = from.endless
        {
            while f(bytes) {}
        }
    }

    fn take(&mut self, s: usize, receiver: u32, packets: u32, at: Time) {
        while self.receiver(s, receiver).waiting.len() < packets as usize {
            let Some(bytes) = self.receiver(s, receiver).endless else {
                break;
            };
            self.push(s, receiver, at, bytes);
        }
        let from = self.receiver(s, receiver);
        let packets = from.waiting.len().min(packets as usize);
        from.taken.extend(from.waiting.drain(..packets));
    }

    fn garbled(&mut self, s: usize, receiver: u32, _at: Time) -> bool {
        let probability = self.receiver(s, receiver).garbled;
        probability > 0.0 && self.rng.random_bool(probability.min(1.0))
    }

    fn sent(&mut self, s: usize, receiver: u32, packets: u32, at: Time) {
        for _ in 0..packets {
            if let Some(packet) = self.receiver(s, receiver).taken.pop_front() {
                self.delivered.push(Delivery { at, ..packet });
            }
        }
        self.end_turn(s, receiver);
    }

    fn gave_up(&mut self, s: usize, receiver: u32, packets: u32, _at: Time) {
        let from = self.receiver(s, receiver);
        let packets = from.taken.len().min(packets as usize);
        from.taken.drain(..packets);
        self.dropped += packets as u64;
        self.end_turn(s, receiver);
    }
}
