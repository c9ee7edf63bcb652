//! Window of packets that a station has taken for one receiver and not settled.

use std::collections::VecDeque;
use std::time::Duration;

use braid_core::Time;

use super::modes::Mode;
use super::phy::{Phy, Psdu};
use crate::model::Stations;

/// Packets that one BlockAck can speak of (IEEE 802.11-2020 9.3.1.8.2).
const BLOCK_ACK_WINDOW: usize = 64;

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
struct Mpdu {
    bytes: u32,
    tries: u32,
    /// Came through; waits at the receiver for an older one (10.25.6).
    received: bool,
}

/// Packets for one receiver between take and settlement, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    mpdus: VecDeque<Mpdu>,
}

/// A frame about to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Number of packets in the frame: the oldest that are not received.
    pub(super) packets: u32,
    pub(super) air: Duration,
    pub(super) reply: Duration,
}

/// Outcome of the oldest packets of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settled {
    pub(super) delivered: u64,
    pub(super) bytes: u64,
    pub(super) dropped: u64,
}

/// A receiver of a station, as the owner of the queues knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Address {
    pub(super) station: usize,
    pub(super) receiver: u32,
}

impl Window {
    pub(super) fn clear(&mut self) {
        self.mpdus.clear();
    }

    /// Makes up the frame that starts at `at`: first what must be repeated, then
    /// packets that arrived before, as many as fit. `None` if there are none.
    pub(super) fn compose(
        &mut self,
        phy: &Phy,
        mode: &Mode,
        to: Address,
        at: Time,
        stations: &mut dyn Stations,
    ) -> Option<Frame> {
        let mut psdu = Psdu::default();
        let mut room = true;
        for mpdu in self.mpdus.iter().filter(|m| !m.received) {
            match phy.append(mode, psdu, mpdu.bytes) {
                Some(longer) => psdu = longer,
                None => {
                    room = false;
                    break;
                }
            }
        }
        let old = self.mpdus.len();
        if room && psdu.packets < phy.max_packets && old < BLOCK_ACK_WINDOW {
            let before = at - Duration::from_nanos(1);
            stations.waiting(to.station, to.receiver, before, &mut |bytes| {
                let Some(longer) = phy.append(mode, psdu, bytes) else {
                    return false;
                };
                psdu = longer;
                self.mpdus.push_back(Mpdu {
                    bytes,
                    tries: 0,
                    received: false,
                });
                psdu.packets < phy.max_packets && self.mpdus.len() < BLOCK_ACK_WINDOW
            });
            let taken = self.mpdus.len() - old;
            if taken > 0 {
                stations.take(to.station, to.receiver, taken as u32, at);
            }
        }
        (psdu.packets > 0).then(|| Frame {
            packets: psdu.packets,
            air: phy.air(mode, psdu),
            reply: phy.reply(mode, psdu.packets),
        })
    }

    /// The frame of `packets` is over: for each of them in order `garbled` says
    /// whether it failed. Returns how many did.
    pub(super) fn outcome(&mut self, packets: u32, mut garbled: impl FnMut() -> bool) -> u32 {
        let sent = self.mpdus.iter_mut().filter(|m| !m.received);
        let mut failed = 0;
        for mpdu in sent.take(packets as usize) {
            mpdu.tries += 1;
            mpdu.received = !garbled();
            failed += u32::from(!mpdu.received);
        }
        failed
    }

    /// Hands over what is in order at the receiver and gives up what was tried
    /// `limit` times. `acknowledged`: the frame just sent was, if only in part.
    pub(super) fn settle(
        &mut self,
        limit: u32,
        acknowledged: bool,
        to: Address,
        at: Time,
        stations: &mut dyn Stations,
    ) -> Settled {
        let mut settled = Settled::default();
        let mut report = acknowledged;
        loop {
            let received = self.mpdus.iter().take_while(|m| m.received).count();
            settled.delivered += received as u64;
            settled.bytes += self
                .mpdus
                .drain(..received)
                .map(|m| u64::from(m.bytes))
                .sum::<u64>();
            if received > 0 || report {
                stations.sent(to.station, to.receiver, received as u32, at);
            }
            // Every frame carries the oldest packets, so the most tried are in front.
            let spent = |m: &&Mpdu| !m.received && m.tries >= limit;
            let dropped = self.mpdus.iter().take_while(spent).count();
            if dropped == 0 {
                return settled;
            }
            self.mpdus.drain(..dropped);
            settled.dropped += dropped as u64;
            stations.gave_up(to.station, to.receiver, dropped as u32, at);
            report = false;
        }
    }
}
