//! The distributed coordination function: who sends when.
//!
//! Nothing is simulated slot by slot: from the backoff counters and the arrival
//! of each station's oldest packet follows when the next transmission starts,
//! and one pass over the stations per frame exchange brings them up to date.

use std::time::Duration;

use braid_core::{Time, seed};
use rand::RngExt;

use super::phy::Phy;
use super::spec::{WifiError, WifiSpec};
use super::window::{Address, Window};
use crate::model::{Head, Medium, MediumStats, ReceiverStats, StationStats, Stations};

/// An 802.11 channel on which every station hears every other.
///
/// Slots are counted from the end of the last exchange plus DIFS. A packet that
/// finds the channel idle for longer leaves at the next slot boundary, without
/// backoff; one that arrives while it is busy, with a backoff.
#[derive(Debug)]
pub struct Dcf {
    phy: Phy,
    rng: seed::Rng,
    stations: Vec<Station>,
    state: State,
    /// Stations on the air; empty while the channel is idle.
    sending: Vec<Sending>,
    busy: Duration,
    rounds: u64,
    collisions: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Stations count down from this time on, which may be still to come.
    Contention { base: Time },
    /// The longest frame on the air ends then.
    Air { end: Time },
}

#[derive(Debug, Default)]
struct Station {
    /// Slots still to wait, at the base of the present contention.
    backoff: u64,
    /// Nothing to send and counted down to zero before the channel got busy: a
    /// packet that arrives until the contention starts must wait `spare` slots.
    rested: bool,
    spare: u64,
    cw: u32,
    /// Exchanges failed in a row.
    failures: u32,
    /// One per receiver, by its number.
    windows: Vec<Window>,
    stats: StationStats,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    to: Address,
    packets: u32,
    air: Duration,
    reply: Duration,
    /// The owner forgot the packets meanwhile.
    void: bool,
}

impl Dcf {
    /// A channel as `spec` says, shared by `stations` stations, idle since time zero.
    ///
    /// # Errors
    /// A setting that the standard does not allow, with what it does allow.
    pub fn new(spec: &WifiSpec, stations: usize, seed: u64) -> Result<Self, WifiError> {
        let phy = Phy::new(spec)?;
        let mut dcf = Self {
            rng: seed::stream(seed, "802.11 backoff"),
            stations: Vec::new(),
            // Idle for long: whoever comes first need not wait.
            state: State::Contention { base: Time::ZERO },
            sending: Vec::with_capacity(stations),
            busy: Duration::ZERO,
            rounds: 0,
            collisions: 0,
            phy,
        };
        dcf.stations.resize_with(stations, Station::default);
        for station in &mut dcf.stations {
            station.rested = true;
            station.cw = dcf.phy.cw.0;
            station.spare = dcf.rng.random_range(0..=u64::from(station.cw));
        }
        Ok(dcf)
    }

    /// When station `s` would start if no other did: after its backoff, and not
    /// before the slot boundary that follows the arrival of its packet.
    fn start_of(&self, s: usize, head: &Head, base: Time) -> Time {
        let slot = self.phy.slot.as_nanos() as u64;
        let counted = base
            + self
                .phy
                .slot
                .saturating_mul(clamp(self.stations[s].wait(head, base)));
        if head.arrival < base {
            return counted;
        }
        let after = head.arrival.since(base).as_nanos() as u64 / slot + 1;
        counted.max(base + Duration::from_nanos(after.saturating_mul(slot)))
    }

    fn next_start(&self, base: Time, stations: &dyn Stations) -> Option<Time> {
        let starts = (0..self.stations.len())
            .filter_map(|s| Some(self.start_of(s, &stations.head(s)?, base)));
        starts.min()
    }

    /// A transmission starts at `at`; everyone else freezes.
    fn start(&mut self, at: Time, base: Time, stations: &mut dyn Stations) {
        let idle_slots = at.since(base).as_nanos() as u64 / self.phy.slot.as_nanos() as u64;
        // Under EDCA the counter goes down at the boundary at which the others
        // start, under DCF only after a slot that was idle to its end.
        let counted = idle_slots + u64::from(self.phy.edca);
        let mut air = Duration::ZERO;
        for s in 0..self.stations.len() {
            let head = stations.head(s);
            match head {
                Some(head) if self.start_of(s, &head, base) == at => {
                    let to = Address {
                        station: s,
                        receiver: head.receiver,
                    };
                    let mode = self.phy.mode(head.phy_mbps);
                    let station = &mut self.stations[s];
                    let window = station.window(head.receiver);
                    if let Some(frame) = window.compose(&self.phy, mode, to, at, stations) {
                        station.stats.attempts += 1;
                        station.stats.airtime += frame.air;
                        air = air.max(frame.air);
                        self.sending.push(Sending {
                            to,
                            packets: frame.packets,
                            air: frame.air,
                            reply: frame.reply,
                            void: false,
                        });
                    }
                }
                _ => self.stations[s].freeze(head.as_ref(), counted, base, at),
            }
        }
        self.state = if self.sending.is_empty() {
            // The owner announced a packet and did not have it; go on behind it.
            State::Contention {
                base: at + self.phy.slot,
            }
        } else {
            State::Air { end: at + air }
        };
        self.busy += air;
    }

    /// The transmission ends at `end`.
    fn finish(&mut self, end: Time, stations: &mut dyn Stations) {
        let collision = self.sending.len() > 1;
        self.rounds += 1;
        self.collisions += u64::from(collision);
        let mut quiet = self.phy.eifs;
        for i in 0..self.sending.len() {
            let sending = self.sending[i];
            let to = sending.to;
            let limit = self.phy.retry_limit;
            let station = &mut self.stations[to.station];
            let window = station.window(to.receiver);
            let failed = match (sending.void, collision) {
                (true, _) => 0,
                (false, true) => window.outcome(sending.packets, || true),
                (false, false) => window.outcome(sending.packets, || {
                    stations.garbled(to.station, to.receiver, end)
                }),
            };
            let acknowledged = !collision && (failed < sending.packets);
            if !sending.void {
                let settled = window.settle(limit, acknowledged, to, end, stations);
                station.stats.delivered_packets += settled.delivered;
                station.stats.delivered_bytes += settled.bytes;
                station.stats.dropped_packets += settled.dropped;
            }
            let on_air = station.on_air(to.receiver);
            if collision {
                on_air.collided_airtime += sending.air;
                station.stats.collided += 1;
            } else {
                on_air.airtime += sending.air;
                station.stats.garbled_packets += u64::from(failed);
                // Those that did not understand the frame know from its start
                // how long its reply would take.
                quiet = sending.reply + self.phy.difs;
                if acknowledged {
                    self.busy += sending.reply;
                }
            }
            station.adapt(acknowledged, limit, self.phy.cw);
            station.backoff = self.rng.random_range(0..=u64::from(station.cw));
            station.spare = self.rng.random_range(0..=u64::from(self.phy.cw.0));
            station.rested = false;
        }
        self.sending.clear();
        self.state = State::Contention { base: end + quiet };
    }
}

impl Station {
    fn window(&mut self, receiver: u32) -> &mut Window {
        let index = receiver as usize;
        if index >= self.windows.len() {
            self.windows.resize_with(index + 1, Window::default);
        }
        &mut self.windows[index]
    }

    /// Counters of what is sent to `receiver`.
    fn on_air(&mut self, receiver: u32) -> &mut ReceiverStats {
        let (index, all) = (receiver as usize, &mut self.stats.receivers);
        if index >= all.len() {
            all.resize_with(index + 1, ReceiverStats::default);
        }
        &mut all[index]
    }

    /// Slots to wait from `base` on, given the station's oldest packet.
    fn wait(&self, head: &Head, base: Time) -> u64 {
        if self.rested && head.arrival < base {
            self.spare
        } else {
            self.backoff
        }
    }

    /// Another station starts at `at`, after `counted` slots.
    fn freeze(&mut self, head: Option<&Head>, counted: u64, base: Time, at: Time) {
        if let Some(head) = head
            && head.arrival < base
        {
            self.backoff = self.wait(head, base);
            self.rested = false;
        }
        self.backoff = self.backoff.saturating_sub(counted);
        let empty = head.is_none_or(|head| head.arrival >= at);
        self.rested = empty && self.backoff == 0;
    }

    /// The contention window after an exchange (10.3.3, 10.23.2.2).
    fn adapt(&mut self, acknowledged: bool, limit: u32, (low, high): (u32, u32)) {
        self.failures = if acknowledged { 0 } else { self.failures + 1 };
        if self.failures >= limit {
            self.failures = 0;
        }
        self.cw = if self.failures == 0 {
            low
        } else {
            (2 * self.cw + 1).min(high)
        };
    }
}

/// Slots as a factor of a duration; 2^32 slots are half a day.
fn clamp(slots: u64) -> u32 {
    u32::try_from(slots).unwrap_or(u32::MAX)
}

impl Medium for Dcf {
    fn next_event(&self, stations: &dyn Stations) -> Option<Time> {
        match self.state {
            State::Air { end } => Some(end),
            State::Contention { base } => self.next_start(base, stations),
        }
    }

    fn advance(&mut self, now: Time, stations: &mut dyn Stations) {
        loop {
            match self.state {
                State::Air { end } if end <= now => self.finish(end, stations),
                State::Contention { base } => match self.next_start(base, stations) {
                    Some(at) if at <= now => self.start(at, base, stations),
                    _ => return,
                },
                State::Air { .. } => return,
            }
        }
    }

    fn forget(&mut self, s: usize, receiver: u32) {
        if let Some(station) = self.stations.get_mut(s) {
            station.window(receiver).clear();
        }
        for sending in &mut self.sending {
            sending.void |= sending.to.station == s && sending.to.receiver == receiver;
        }
    }

    fn stats(&self) -> MediumStats {
        MediumStats {
            busy: self.busy,
            rounds: self.rounds,
            collisions: self.collisions,
            stations: self.stations.iter().map(|s| s.stats.clone()).collect(),
        }
    }
}
