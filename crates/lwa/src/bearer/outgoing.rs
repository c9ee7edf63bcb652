//! Sending side of Xw-U flow control: packets in flight on a link, and which were lost.

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;

use super::flow::{Flow, Sample};
use crate::wire::xw::{DeliveryStatus, SN_MODULUS};

/// A packet of which nothing was heard for so long is no longer counted as in flight.
const FORGOTTEN: Duration = Duration::from_secs(2);
/// A link is silent when nothing was heard of it for so long while packets were in flight.
const SILENT: Duration = Duration::from_millis(300);
/// Packets that are counted; beyond, the oldest are forgotten.
const MOST: usize = 1 << 17;

#[derive(Debug)]
struct Item {
    sn: u64,
    drb: u8,
    count: u32,
    sample: Sample,
}

/// Packets in flight on one link.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    next: u64,
    items: VecDeque<Item>,
    bytes: u64,
    desired: Option<u32>,
    /// Last sign that the link carries packets.
    heard: Time,
    silent: bool,
    pub(super) flow: Flow,
}

impl Outgoing {
    /// Number that the next packet gets.
    pub(super) fn next_sn(&self) -> u32 {
        (self.next % u64::from(SN_MODULUS)) as u32
    }

    /// A packet of `bytes` left.
    pub(super) fn sent(&mut self, now: Time, drb: u8, count: u32, bytes: usize) {
        if self.items.is_empty() {
            self.heard = self.heard.max(now);
        }
        let sample = self.flow.sent(now, bytes as u64, self.items.is_empty());
        self.items.push_back(Item {
            sn: self.next,
            drb,
            count,
            sample,
        });
        self.bytes += bytes as u64;
        self.next += 1;
        if self.items.len() > MOST {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= item.sample.bytes;
        Some(item)
    }

    /// Bytes in flight.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Bytes that the far side wants in flight at most.
    pub(super) fn desired_bytes(&self) -> u64 {
        self.desired.map_or(u64::MAX / 2, |d| match d {
            u32::MAX => u64::MAX / 2,
            d => u64::from(d),
        })
    }

    /// Takes a delivery status, and returns what was lost as bearer and COUNT. A status that is
    /// older than one before, or names packets never sent, is ignored.
    pub(super) fn status(&mut self, now: Time, status: &DeliveryStatus) -> Vec<(u8, u32)> {
        let modulus = u64::from(SN_MODULUS);
        let back =
            (self.next + modulus - 1).wrapping_sub(u64::from(status.highest_delivered)) % modulus;
        if back > self.items.len() as u64 {
            return Vec::new();
        }
        self.desired = Some(status.desired_buffer_bytes);
        let is_lost = |sn: u64| {
            let sn = sn % modulus;
            let from = |a: u32| (sn + modulus - u64::from(a)) % modulus;
            let span = |(a, b): (u32, u32)| (u64::from(b) + modulus - u64::from(a)) % modulus;
            status.lost.iter().any(|&r| from(r.0) <= span(r))
        };
        let (mut lost, mut newest) = (Vec::new(), None);
        while self.items.front().is_some_and(|i| i.sn + back < self.next) {
            let Some(item) = self.pop() else { break };
            if is_lost(item.sn) {
                lost.push((item.drb, item.count));
            } else {
                self.flow.delivered(item.sample.bytes);
                newest = Some(item.sample);
            }
        }
        if let Some(sample) = newest {
            self.alive(now);
            self.flow.measure(now, &sample);
        }
        lost
    }

    /// Takes from an LWA status report that of bearer `drb` all up to `count` came or was lost.
    pub(super) fn through(&mut self, now: Time, drb: u8, count: u32) {
        let mut newest = None;
        while (self.items.front()).is_some_and(|i| i.drb == drb && i.count <= count) {
            let Some(item) = self.pop() else { break };
            self.flow.delivered(item.sample.bytes);
            newest = Some(item.sample);
        }
        if let Some(sample) = newest {
            self.alive(now);
            self.flow.measure(now, &sample);
        }
    }

    /// The link carried something.
    pub(super) fn alive(&mut self, now: Time) {
        self.heard = self.heard.max(now);
        self.silent = false;
    }

    /// Whether packets vanish on it.
    pub(super) fn is_silent(&self) -> bool {
        self.silent
    }

    fn silent_at(&self) -> Option<Time> {
        let oldest = self.items.front()?.sample.at;
        let delay = self.flow.smoothed_delay().unwrap_or_default();
        Some(self.heard.max(oldest) + SILENT + delay * 2)
    }

    /// When it must be looked at next.
    pub(super) fn timeout(&self) -> Option<Time> {
        let forgotten = self.items.front()?.sample.at + FORGOTTEN;
        Some(match self.silent_at() {
            Some(t) if !self.silent => t.min(forgotten),
            _ => forgotten,
        })
    }

    /// Forgets old packets. True where the link has just fallen silent. A silent link that is not
    /// probed is tried again once all on it is forgotten: nothing else would show that it works.
    pub(super) fn handle_timeout(&mut self, now: Time, probed: bool) -> bool {
        let fell = !self.silent && self.silent_at().is_some_and(|t| t <= now);
        self.silent |= fell;
        while (self.items.front()).is_some_and(|i| i.sample.at + FORGOTTEN <= now) {
            self.pop();
        }
        if self.silent && !probed && self.items.is_empty() {
            self.alive(now);
        }
        fell
    }
}
