//! Transmitting entity (TS 38.323 5.2.1, 5.3, 5.5).
//!
//! A packet gets its number when the link below has taken it, not before: a number that is spent
//! on a packet which a full queue then drops makes the receiver wait for t-Reordering. So a
//! caller asks what comes next ([`Transmitter::prepare`]), offers it to a link, and only then
//! says that it left ([`Transmitter::commit`]).

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use braid_core::Time;

use super::keys::{KeyError, Keys};
use super::settings::{PushError, TransmitterConfig, TransmitterStats};
use crate::cipher::Eea2;
use crate::link::Link;
use crate::wire::SnSize;
use crate::wire::control::{Control, LwaStatus, StatusReport};
use crate::wire::data::{DataHeader, MAX_SDU_BYTES};

/// A packet that comes next, not yet numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prepared {
    count: u32,
    again: bool,
    /// Link that it must use, where a copy is meant for one.
    pub only: Option<Link>,
    /// Link that it used before, where it is a retransmission.
    pub before: Option<Link>,
    /// Bytes of the packet without headers.
    pub sdu_bytes: usize,
}

impl Prepared {
    /// COUNT that the packet has, or gets when it is committed.
    pub fn count(&self) -> u32 {
        self.count
    }
}

#[derive(Debug)]
struct Sent {
    sdu: Vec<u8>,
    arrived: Time,
    link: Link,
}

/// Transmitting side of a bearer.
#[derive(Debug)]
pub struct Transmitter {
    size: SnSize,
    discard_after: Option<Duration>,
    queue_packets: usize,
    kept_bytes_max: usize,
    keys: Keys,
    /// COUNT of the next new packet (TX_NEXT).
    next: u32,
    exhausted: bool,
    /// All below are delivered or given up, as the receiver said.
    floor: u32,
    waiting: VecDeque<(Vec<u8>, Time)>,
    waiting_bytes: usize,
    sent: BTreeMap<u32, Sent>,
    kept_bytes: usize,
    /// Numbers to be sent again, and the link where only one will do.
    again: BTreeMap<u32, Option<Link>>,
    stats: TransmitterStats,
}

impl Transmitter {
    /// An entity that has sent nothing.
    pub fn new(config: TransmitterConfig) -> Self {
        Transmitter {
            size: config.size,
            discard_after: config.discard_after,
            queue_packets: config.queue_packets,
            kept_bytes_max: config.kept_bytes,
            keys: Keys::new(config.key),
            next: config.first_count,
            exhausted: false,
            floor: config.first_count,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            sent: BTreeMap::new(),
            kept_bytes: 0,
            again: BTreeMap::new(),
            stats: TransmitterStats::default(),
        }
    }

    /// Queues a packet.
    pub fn push(&mut self, now: Time, sdu: Vec<u8>) -> Result<(), PushError> {
        if sdu.len() > MAX_SDU_BYTES {
            return Err(PushError::Large(sdu.len()));
        }
        if self.exhausted {
            return Err(PushError::Exhausted);
        }
        if self.waiting.len() >= self.queue_packets {
            return Err(PushError::Full(self.waiting.len()));
        }
        self.waiting_bytes += sdu.len();
        self.waiting.push_back((sdu, now));
        Ok(())
    }

    /// Bytes that wait for their first transmission.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Packets that wait for their first transmission.
    pub fn waiting_packets(&self) -> usize {
        self.waiting.len()
    }

    /// COUNT that the next new packet gets (TX_NEXT).
    pub fn next_count(&self) -> u32 {
        self.next
    }

    /// COUNT below which the receiver has delivered everything, or given it up.
    pub fn confirmed_below(&self) -> u32 {
        self.floor
    }

    /// Drops the copy of a packet that was to be sent again, without the packet.
    pub fn drop_copy(&mut self, prepared: &Prepared) {
        if prepared.again {
            self.again.remove(&prepared.count);
        }
    }

    /// Counters.
    pub fn stats(&self) -> TransmitterStats {
        self.stats
    }

    /// Whether half of the sequence numbers are in use without a word from the receiver. More
    /// would let it mistake one round of numbers for the next (TS 38.323 5.2.1, note).
    pub fn stalled(&self) -> bool {
        self.next - self.floor >= self.size.window()
    }

    /// Packet that comes next: a retransmission, ascending by COUNT, or else a new one.
    pub fn prepare(&self) -> Option<Prepared> {
        if let Some((&count, &only)) = self.again.first_key_value() {
            let sent = self.sent.get(&count)?;
            return Some(Prepared {
                count,
                again: true,
                only,
                before: Some(sent.link),
                sdu_bytes: sent.sdu.len(),
            });
        }
        let (sdu, _) = self.waiting.front()?;
        (!self.stalled() && !self.exhausted).then_some(Prepared {
            count: self.next,
            again: false,
            only: None,
            before: None,
            sdu_bytes: sdu.len(),
        })
    }

    /// Appends the PDU of what [`prepare`](Self::prepare) returned to `out`. `poll` asks for a
    /// status report, where the numbers have 18 bits.
    pub fn encode(&self, prepared: &Prepared, poll: bool, out: &mut Vec<u8>) {
        let sdu = if prepared.again {
            self.sent.get(&prepared.count).map(|s| &s.sdu)
        } else {
            self.waiting.front().map(|w| &w.0)
        };
        let Some(sdu) = sdu else { return };
        let sn = self.size.sn(prepared.count);
        DataHeader { sn, poll }.encode(self.size, out);
        let start = out.len();
        out.extend_from_slice(sdu);
        self.keys.apply(prepared.count, &mut out[start..]);
    }

    /// Notes that `link` took the packet: a new one now has its number.
    pub fn commit(&mut self, prepared: &Prepared, link: Link) {
        if prepared.again {
            self.again.remove(&prepared.count);
            if let Some(sent) = self.sent.get_mut(&prepared.count) {
                sent.link = link;
                self.stats.retransmitted += 1;
            }
            return;
        }
        let Some((sdu, arrived)) = self.waiting.pop_front() else {
            return;
        };
        self.waiting_bytes -= sdu.len();
        self.kept_bytes += sdu.len();
        self.sent
            .insert(prepared.count, Sent { sdu, arrived, link });
        self.stats.sent += 1;
        self.next += 1;
        // The last number of all is never used: behind it there is none.
        self.exhausted = self.next == u32::MAX;
        while self.kept_bytes > self.kept_bytes_max && self.let_oldest_go() {}
    }

    /// Sends a kept packet again: over `only`, or over any link. False where it is not kept.
    pub fn resend(&mut self, count: u32, only: Option<Link>) -> bool {
        let kept = self.sent.contains_key(&count);
        if kept {
            self.again.insert(count, only);
        }
        kept
    }

    /// Sends the newest packet again, which tells the receiver how far the sender is: the way out
    /// where all of the window was lost.
    pub fn resend_last(&mut self) -> bool {
        match self.sent.last_key_value() {
            Some((&count, _)) => self.resend(count, None),
            None => false,
        }
    }

    /// Sends again what went over `link` and is not confirmed (data recovery, TS 38.323 5.5).
    /// Returns how many packets that is.
    pub fn recover(&mut self, link: Link) -> usize {
        let lost: Vec<u32> = (self.sent.iter())
            .filter(|(_, s)| s.link == link)
            .map(|(&count, _)| count)
            .collect();
        for &count in &lost {
            self.again.insert(count, None);
        }
        lost.len()
    }

    /// Sends all again that is not confirmed, and ciphers from now on by `key`
    /// (re-establishment, TS 38.323 5.1.2). Numbers go on.
    pub fn reestablish(&mut self, key: Option<Eea2>) {
        self.keys = Keys::new(key);
        self.again = self.sent.keys().map(|&count| (count, None)).collect();
    }

    /// Ciphers by `key` from the next new packet on, and returns the end marker that says so
    /// (LWA end-marker, TS 36.323). Send it before that packet, on every link. A receiver must
    /// have staged the key before.
    pub fn change_key(&mut self, key: Option<Eea2>) -> Result<Control, KeyError> {
        if self.next <= self.keys.newest() {
            return Err(KeyError::Unused);
        }
        self.keys.add(self.next, key);
        let last = self.next - 1;
        Ok(Control::EndMarker {
            lsn: self.size.sn(last),
        })
    }

    /// Takes a PDCP status report: lets go what was received. Reports that are older than one
    /// before, or speak of numbers never sent, are ignored.
    pub fn status(&mut self, report: &StatusReport) {
        let Some(fms) = self.resolve(report.fms) else {
            return;
        };
        self.confirm_below(fms);
        let kept: Vec<u32> = (self.sent.range(fms..).map(|(&count, _)| count))
            .filter(|&count| report.received((count - fms) as usize))
            .collect();
        for count in kept {
            self.confirm(count);
        }
    }

    /// Takes an LWA status report, and returns the highest COUNT that came over WLAN.
    pub fn lwa_status(&mut self, status: &LwaStatus) -> Option<u32> {
        let fms = self.resolve(status.fms)?;
        self.confirm_below(fms);
        self.resolve_any(status.hrw)
    }

    /// When the discard timer of a packet ends next.
    pub fn timeout(&self) -> Option<Time> {
        let after = self.discard_after?;
        let waiting = self.waiting.front().map(|w| w.1);
        // The newest sent packet stays: see `handle_timeout`.
        let sent = (self.sent.len() > 1)
            .then(|| self.sent.first_key_value().map(|(_, s)| s.arrived))
            .flatten();
        let oldest = match (waiting, sent) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        oldest.map(|t| t + after)
    }

    /// Discards what has waited too long. The newest packet that was sent stays, so that there
    /// is something to tell the receiver by how far the numbers are.
    pub fn handle_timeout(&mut self, now: Time) {
        let Some(after) = self.discard_after else {
            return;
        };
        while self.waiting.front().is_some_and(|w| w.1 + after <= now) {
            if let Some((sdu, _)) = self.waiting.pop_front() {
                self.waiting_bytes -= sdu.len();
                self.stats.discarded += 1;
            }
        }
        while self
            .sent
            .first_key_value()
            .is_some_and(|(_, s)| s.arrived + after <= now)
            && self.let_oldest_go()
        {}
    }

    fn let_oldest_go(&mut self) -> bool {
        if self.sent.len() < 2 {
            return false;
        }
        if let Some((&count, _)) = self.sent.first_key_value() {
            self.confirm(count);
        }
        true
    }

    fn confirm(&mut self, count: u32) {
        self.again.remove(&count);
        if let Some(sent) = self.sent.remove(&count) {
            self.kept_bytes -= sent.sdu.len();
        }
    }

    fn confirm_below(&mut self, fms: u32) {
        self.floor = self.floor.max(fms);
        while let Some((&count, _)) = self.sent.first_key_value() {
            if count >= fms {
                break;
            }
            self.confirm(count);
        }
        self.keys.prune(fms);
    }

    /// COUNT of a reported first missing number: the latest that is not beyond the next one.
    fn resolve(&self, sn: u32) -> Option<u32> {
        self.resolve_any(sn).filter(|&count| count >= self.floor)
    }

    fn resolve_any(&self, sn: u32) -> Option<u32> {
        let back = self.size.sn(self.next.wrapping_sub(sn));
        self.next.checked_sub(back)
    }
}
