//! Frames that an end wants to send, offered to the links.

use braid_core::Time;

use super::config::Framing;
use super::end::End;
use crate::link::Link;
use crate::pdcp::Prepared;
use crate::steer::{Demand, LinkView};
use crate::wire::gtp::USER_DATA_BYTES;
use crate::wire::lwaap::{self, HEADER_BYTES};
use crate::wire::xw::XwFrame;

/// Bytes that a packet gets below PDCP and above UDP or Ethernet, for steering.
const FRAME_BYTES: usize = USER_DATA_BYTES + HEADER_BYTES + 3;
/// Every so many packets of a bearer with 18-bit numbers ask for a status report.
const POLL_PACKETS: u32 = 64;

/// A frame that comes next. It counts as sent, and a packet in it gets its number, only by
/// [`Offer::accept`]; an offer that is dropped changes nothing.
#[derive(Debug)]
pub struct Offer<'a> {
    end: &'a mut End,
    kind: Kind,
    /// Link that it is for.
    pub link: Link,
    /// Bytes to send.
    pub frame: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    Control(usize),
    Data { bearer: usize, prepared: Prepared },
}

impl End {
    /// Next frame to send, among links that have `room` (LTE first). Call it again after each
    /// accepted frame, and when a link gets room.
    pub fn offer(&mut self, room: [bool; 2], now: Time) -> Option<Offer<'_>> {
        let control = self.control.iter().position(|c| room[c.0.index()]);
        if let Some(at) = control {
            let (link, frame) = self.control[at].clone();
            let kind = Kind::Control(at);
            return Some(Offer {
                end: self,
                kind,
                link,
                frame,
            });
        }
        let views = self.views(room);
        for n in 0..self.bearers.len() {
            let index = (self.turn + n) % self.bearers.len();
            if let Some((prepared, link)) = self.next_of(index, now, &views) {
                let frame = self.frame(index, &prepared, link);
                let kind = Kind::Data {
                    bearer: index,
                    prepared,
                };
                return Some(Offer {
                    end: self,
                    kind,
                    link,
                    frame,
                });
            }
        }
        None
    }

    /// Next packet of a bearer, and the link it is steered to.
    fn next_of(
        &mut self,
        index: usize,
        now: Time,
        views: &[LinkView; 2],
    ) -> Option<(Prepared, Link)> {
        let bearer = &mut self.bearers[index];
        loop {
            let prepared = bearer.tx.prepare()?;
            let packet_bytes = (prepared.sdu_bytes + FRAME_BYTES) as u64;
            let demand = Demand {
                packet_bytes,
                waiting_bytes: packet_bytes.max(bearer.tx.waiting_bytes() as u64),
            };
            match prepared.only {
                Some(link) => {
                    let view = &views[link.index()];
                    if view.usable && view.room {
                        return Some((prepared, link));
                    }
                    // A copy that its link does not take at once is not worth waiting for.
                    bearer.tx.drop_copy(&prepared);
                }
                None => {
                    let link = bearer.steering.choose(now, views, demand)?;
                    return Some((prepared, link));
                }
            }
        }
    }

    fn frame(&self, index: usize, prepared: &Prepared, link: Link) -> Vec<u8> {
        let bearer = &self.bearers[index];
        let mut payload = Vec::with_capacity(prepared.sdu_bytes + FRAME_BYTES);
        lwaap::encode(bearer.drb, &mut payload);
        let poll = prepared.count() % POLL_PACKETS == POLL_PACKETS - 1;
        bearer.tx.encode(prepared, poll, &mut payload);
        match self.config.framing[link.index()] {
            Framing::Ethernet => payload,
            Framing::Gtp => {
                let sn = self.outgoing[link.index()].next_sn();
                self.tunnelled(link, Some(XwFrame::UserData { sn }), &payload)
            }
        }
    }
}

impl Offer<'_> {
    /// The link took the frame.
    pub fn accept(self, now: Time) {
        let Offer {
            end,
            kind,
            link,
            frame,
        } = self;
        end.stats.sent_bytes[link.index()] += frame.len() as u64;
        match kind {
            Kind::Control(at) => {
                end.control.remove(at);
            }
            Kind::Data {
                bearer: index,
                prepared,
            } => {
                let views = end.views([true; 2]);
                let other = link.other();
                let other_usable = views[other.index()].usable && end.is_up(other);
                let bearer = &mut end.bearers[index];
                bearer.tx.commit(&prepared, link);
                if prepared.before.is_none() {
                    bearer.steering.sent(now, &views, link);
                    if bearer.steering.duplicates() && other_usable {
                        bearer.tx.resend(prepared.count(), Some(other));
                    }
                }
                let drb = bearer.drb.get();
                end.outgoing[link.index()].sent(now, drb, prepared.count(), frame.len());
                end.turn = (index + 1) % end.bearers.len();
            }
        }
    }
}
