//! Media that several links share, so that what one sends delays the others.
//!
//! A *station* is what contends for the medium: a device's uplink, or an access
//! point with the downlinks of all its devices. Each of these links is a
//! *receiver* of its station, numbered from 0.
//!
//! A packet waits in its receiver's queue until the medium takes it (as a
//! driver hands it to the hardware). Taken packets stay with the owner, in
//! order, until the medium settles them: oldest first, received or given up.
//! Packets that are queued or taken may not be counted twice: [`Stations::waiting`]
//! offers only those not taken yet.

use std::time::Duration;

use braid_core::Time;
use serde::{Deserialize, Serialize};

/// Receiver whose turn it is at a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Head {
    /// When the receiver's oldest packet, taken or not, became the station's to send.
    pub arrival: Time,
    /// The receiver; 0 for a station with only one.
    pub receiver: u32,
    /// Physical-layer data rate towards that receiver, Mbit/s; `None`: the
    /// medium's default.
    pub phy_mbps: Option<f64>,
}

/// Interface of the queues behind a medium's stations.
///
/// In every call, `at` and `by` are in the medium's time, which may be before
/// the time it was last told.
pub trait Stations {
    /// The receiver that station `s` would send to next, among those with
    /// packets waiting or taken and not settled. The choice stays with a
    /// receiver until [`Stations::sent`] or [`Stations::gave_up`] ends its turn.
    fn head(&self, s: usize) -> Option<Head>;
    /// Calls `f` with the IP bytes of the packets that wait for `receiver` (not
    /// taken) and arrived at or before `by`, oldest first, until `f` returns false.
    fn waiting(&self, s: usize, receiver: u32, by: Time, f: &mut dyn FnMut(u32) -> bool);
    /// The oldest `packets` that wait for `receiver` go on the air at `at`. They
    /// leave the queue (an active queue manager decides here whether the next
    /// ones live) and are kept until they are settled.
    fn take(&mut self, s: usize, receiver: u32, packets: u32, at: Time);
    /// Whether the radio channel garbles the next packet of the frame that
    /// station `s` sends to `receiver` until `at` (the link's own loss model). Asked once
    /// per packet and transmission, in sending order.
    fn garbled(&mut self, s: usize, receiver: u32, at: Time) -> bool;
    /// A frame of station `s` was acknowledged: the oldest `packets` taken for
    /// `receiver` reach it at `at`, in order. 0 when all that came through wait
    /// behind one that must be sent again. Ends the receiver's turn.
    fn sent(&mut self, s: usize, receiver: u32, packets: u32, at: Time);
    /// The oldest `packets` taken for `receiver` are given up. Ends its turn.
    fn gave_up(&mut self, s: usize, receiver: u32, packets: u32, at: Time);
}

/// A shared medium. Like every model it is told the time and never looks at a
/// clock, and what happens does not depend on how often it is told.
pub trait Medium: Send {
    /// When something happens next if no packet arrives before; `None` when idle.
    fn next_event(&self, stations: &dyn Stations) -> Option<Time>;
    /// Brings the medium up to `now`. All packets that arrived before `now`
    /// must be with the stations. An owner tells the time before it queues a
    /// packet that arrives, drops one, or changes a link, so that the choices
    /// before that moment are made without it.
    fn advance(&mut self, now: Time, stations: &mut dyn Stations);
    /// The owner threw away what was taken for `receiver` of station `s` and
    /// not settled (its link went down): none of it will be settled any more.
    /// A frame on the air stays there, to no effect.
    fn forget(&mut self, s: usize, receiver: u32);
    /// Counters since the start.
    fn stats(&self) -> MediumStats;
}

/// Counters of a medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MediumStats {
    /// Time during which the channel was occupied by a transmission, its
    /// acknowledgement and the gap between them.
    pub busy: Duration,
    /// Transmission attempts, a collision counted once.
    pub rounds: u64,
    /// Rounds in which more than one station sent.
    pub collisions: u64,
    /// Per station.
    pub stations: Vec<StationStats>,
}

/// Counters of one station of a medium.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StationStats {
    /// Packets received by their receiver.
    pub delivered_packets: u64,
    /// Their IP bytes.
    pub delivered_bytes: u64,
    /// Frames sent, of one packet or an aggregate of several, repetitions included.
    pub attempts: u64,
    /// Frames that ended in a collision.
    pub collided: u64,
    /// Packets garbled by the radio channel, collisions not counted.
    pub garbled_packets: u64,
    /// Packets given up at the retry limit.
    pub dropped_packets: u64,
    /// Time this station occupied the channel, acknowledgements excluded.
    pub airtime: Duration,
    /// Per receiver.
    #[serde(default)]
    pub receivers: Vec<ReceiverStats>,
}

/// Counters of what a station sends to one receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverStats {
    /// Time on the air with frames that did not collide, acknowledgements excluded.
    pub airtime: Duration,
    /// Time on the air with frames that collided.
    pub collided_airtime: Duration,
}
