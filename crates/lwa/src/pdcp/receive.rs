//! Receiving entity (TS 38.323 5.2.2.1, 5.2.2.2, 5.4): reordering and duplicate discard.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use braid_core::Time;

use super::keys::{KeyError, Keys};
use super::missing::Missing;
use crate::cipher::Eea2;
use crate::link::Link;
use crate::wire::SnSize;
use crate::wire::control::{Control, LwaStatus, StatusReport};
use crate::wire::data::DataHeader;

/// Longest bitmap of a status report in bytes, so that it fits into a packet of any link.
const BITMAP_BYTES: usize = 1024;

/// Settings of a receiving entity.
#[derive(Clone, Debug)]
pub struct ReceiverConfig {
    /// Length of sequence numbers.
    pub size: SnSize,
    /// t-Reordering at the start. None waits for ever.
    pub t_reordering: Option<Duration>,
    /// Bytes that may wait for a gap; beyond, the gap is given up as if the timer had ended.
    pub stored_bytes: usize,
    /// Key of the direction, or none for EEA0.
    pub key: Option<Eea2>,
    /// First COUNT: zero, except in tests of the end of the numbers.
    pub first_count: u32,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        ReceiverConfig {
            size: SnSize::Bits18,
            t_reordering: Some(Duration::from_millis(100)),
            stored_bytes: 16 << 20,
            key: None,
            first_count: 0,
        }
    }
}

/// Counters of a receiving entity, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceiverStats {
    /// Delivered to the layer above.
    pub delivered: u64,
    /// Received a second time.
    pub duplicates: u64,
    /// Came when their gap had been given up (or a second time after their delivery).
    pub too_late: u64,
    /// Numbers that were given up.
    pub given_up: u64,
    /// Discarded as nothing more could be stored.
    pub no_room: u64,
}

/// Result of one data PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// Stored or delivered; late where it filled a gap.
    Taken(Option<Late>),
    /// Below the window: late, or a second time.
    TooLate(Option<Late>),
    /// Received already and still waiting for a gap, or beyond all numbers, or no room.
    Discarded,
}

/// Lateness of a packet behind a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late(pub Duration);

#[derive(Debug)]
struct Stored {
    data: Vec<u8>,
    /// Deciphered already, as the key was about to change.
    plain: bool,
}

/// Receiving side of a bearer.
#[derive(Debug)]
pub struct Receiver {
    size: SnSize,
    t_reordering: Option<Duration>,
    stored_max: usize,
    keys: Keys,
    /// Key that takes over at the end marker, while that has not come.
    staged: Option<Option<Eea2>>,
    /// COUNT behind the highest received (RX_NEXT).
    next: u32,
    /// First COUNT not delivered (RX_DELIV).
    deliv: u32,
    /// COUNT behind the one that started t-Reordering (RX_REORD), and when the timer started.
    reord: Option<(u32, Time)>,
    stored: BTreeMap<u32, Stored>,
    stored_bytes: usize,
    missing: Missing,
    highest_on_wlan: Option<u32>,
    out: VecDeque<Vec<u8>>,
    stats: ReceiverStats,
}

impl Receiver {
    /// An entity that has received nothing.
    pub fn new(config: ReceiverConfig) -> Self {
        Receiver {
            size: config.size,
            t_reordering: config.t_reordering,
            stored_max: config.stored_bytes,
            keys: Keys::new(config.key),
            staged: None,
            next: config.first_count,
            deliv: config.first_count,
            reord: None,
            stored: BTreeMap::new(),
            stored_bytes: 0,
            missing: Missing::default(),
            highest_on_wlan: None,
            out: VecDeque::new(),
            stats: ReceiverStats::default(),
        }
    }

    /// Counters.
    pub fn stats(&self) -> ReceiverStats {
        self.stats
    }

    /// First COUNT that is not delivered (RX_DELIV).
    pub fn first_missing(&self) -> u32 {
        self.deliv
    }

    /// Bytes that wait for a gap to be filled.
    pub fn stored_bytes(&self) -> usize {
        self.stored_bytes
    }

    /// Sets t-Reordering; a timer that runs ends accordingly earlier or later.
    pub fn set_t_reordering(&mut self, t: Option<Duration>) {
        self.t_reordering = t;
    }

    /// Next packet for the layer above, in order.
    pub fn pop(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// Takes the data PDU with this header that came over `link`.
    pub fn data(&mut self, now: Time, link: Link, header: DataHeader, payload: &[u8]) -> Received {
        let Some(count) = self.count_of(header.sn) else {
            return Received::Discarded;
        };
        if link == Link::Wlan {
            self.highest_on_wlan = self.highest_on_wlan.max(Some(count));
        }
        let late = (count < self.next)
            .then(|| self.missing.age(count, now).map(Late))
            .flatten();
        if count < self.deliv {
            self.stats.too_late += 1;
            return Received::TooLate(late);
        }
        if self.stored.contains_key(&count) {
            self.stats.duplicates += 1;
            return Received::Discarded;
        }
        if self.staged.is_some() && self.stored_bytes + payload.len() > self.stored_max {
            self.stats.no_room += 1;
            return Received::Discarded;
        }
        self.stored_bytes += payload.len();
        let data = payload.to_vec();
        self.stored.insert(count, Stored { data, plain: false });
        if count >= self.next {
            if count > self.next {
                self.missing.open(self.next, count, now);
            }
            self.next = count + 1;
        }
        self.advance(now);
        while self.staged.is_none() && self.stored_bytes > self.stored_max {
            self.give_up_below(self.next);
            self.advance(now);
        }
        Received::Taken(late)
    }

    /// Takes an end marker: the staged key deciphers from the number behind `lsn` on.
    pub fn end_marker(&mut self, now: Time, lsn: u32) {
        let Some(first) = self
            .signed_count_of(lsn)
            .and_then(|last| u32::try_from(last + 1).ok())
        else {
            return;
        };
        // A marker of an earlier change, delayed or repeated.
        if first <= self.keys.newest() {
            return;
        }
        if let Some(key) = self.staged.take() {
            self.keys.add(first, key);
            self.advance(now);
        }
    }

    /// Holds `key` ready for the end marker. Until that comes, packets are kept undelivered: by
    /// which key they are to be deciphered is not known.
    pub fn stage_key(&mut self, key: Option<Eea2>) -> Result<(), KeyError> {
        if self.staged.is_some() {
            return Err(KeyError::Staged);
        }
        self.decipher_stored();
        self.staged = Some(key);
        Ok(())
    }

    /// Whether a staged key waits for its end marker.
    pub fn awaits_marker(&self) -> bool {
        self.staged.is_some()
    }

    /// Deciphers by `key` from now on (re-establishment, TS 38.323 5.1.2). What is stored stays,
    /// deciphered by the key it came under; where a staged key made that uncertain, it goes, and
    /// the sender sends it again.
    pub fn reestablish(&mut self, now: Time, key: Option<Eea2>) {
        if self.staged.take().is_none() {
            self.decipher_stored();
        }
        let stored_bytes = &mut self.stored_bytes;
        self.stored.retain(|_, s| {
            if !s.plain {
                *stored_bytes -= s.data.len();
            }
            s.plain
        });
        self.keys = Keys::new(key);
        self.advance(now);
    }

    fn decipher_stored(&mut self) {
        for (&count, stored) in self.stored.iter_mut().filter(|(_, s)| !s.plain) {
            self.keys.apply(count, &mut stored.data);
            stored.plain = true;
        }
    }

    /// PDCP status report (TS 36.323 5.3.1): what is missing, and what waits behind it.
    pub fn status_report(&self) -> Control {
        let behind = self.next.saturating_sub(self.deliv).saturating_sub(1) as usize;
        let mut bitmap = vec![0; behind.div_ceil(8).min(BITMAP_BYTES)];
        // While it is open which key deciphers a packet, it is not reported: it may have to be
        // sent again.
        let certain = |s: &Stored| s.plain || self.staged.is_none();
        for (&count, _) in self.stored.iter().filter(|(_, s)| certain(s)) {
            let bit = (count - self.deliv) as usize;
            let Some(bit) = bit.checked_sub(1) else {
                continue;
            };
            if let Some(byte) = bitmap.get_mut(bit / 8) {
                *byte |= 0x80 >> (bit % 8);
            }
        }
        Control::Status(StatusReport {
            fms: self.size.sn(self.deliv),
            bitmap,
        })
    }

    /// LWA status report (TS 36.323 5.10); none before anything came over WLAN.
    pub fn lwa_status_report(&self) -> Option<Control> {
        let highest = self.highest_on_wlan?;
        let missing = if highest > self.deliv {
            let received = self.stored.range(self.deliv..highest).count() as u32;
            highest - self.deliv - received
        } else {
            0
        };
        Some(Control::LwaStatus(LwaStatus {
            fms: self.size.sn(self.deliv),
            hrw: self.size.sn(highest),
            nmp: missing.min(self.size.modulus() - 1),
        }))
    }

    /// When t-Reordering ends.
    pub fn timeout(&self) -> Option<Time> {
        let (_, started) = self.reord?;
        Some(started + self.t_reordering?)
    }

    /// Gives up the gap for which t-Reordering has ended (5.2.2.2).
    pub fn handle_timeout(&mut self, now: Time) {
        if self.timeout().is_none_or(|t| t > now) {
            return;
        }
        if let Some((reord, _)) = self.reord.take()
            && self.staged.is_none()
        {
            self.give_up_below(reord);
        }
        self.advance(now);
    }

    /// Delivers what is stored below `count`, with gaps.
    fn give_up_below(&mut self, count: u32) {
        while self.deliv < count {
            match self.stored.remove(&self.deliv) {
                Some(stored) => self.deliver(self.deliv, stored),
                None => self.stats.given_up += 1,
            }
            self.deliv += 1;
        }
    }

    /// Delivers what is in order, then starts or stops t-Reordering.
    fn advance(&mut self, now: Time) {
        while self.staged.is_none()
            && let Some(stored) = self.stored.remove(&self.deliv)
        {
            self.deliver(self.deliv, stored);
            self.deliv += 1;
        }
        self.keys.prune(self.deliv);
        if self.reord.is_some_and(|(reord, _)| self.deliv >= reord) {
            self.reord = None;
        }
        if self.reord.is_none() && self.deliv < self.next {
            self.reord = Some((self.next, now));
        }
    }

    fn deliver(&mut self, count: u32, stored: Stored) {
        let Stored { mut data, plain } = stored;
        self.stored_bytes -= data.len();
        if !plain {
            self.keys.apply(count, &mut data);
        }
        self.stats.delivered += 1;
        self.out.push_back(data);
    }

    fn count_of(&self, sn: u32) -> Option<u32> {
        u32::try_from(self.signed_count_of(sn)?).ok()
    }

    /// COUNT of a received number (5.2.2.1): the one nearest to RX_DELIV. It may lie below zero
    /// in a marker that no packet preceded; none where it is beyond all numbers, the last of
    /// which is never used.
    fn signed_count_of(&self, sn: u32) -> Option<i64> {
        let (window, modulus) = (self.size.window(), i64::from(self.size.modulus()));
        let expected = self.size.sn(self.deliv);
        let round = i64::from(self.deliv) - i64::from(expected);
        let shift = if i64::from(sn) < i64::from(expected) - i64::from(window) {
            modulus
        } else if sn >= expected + window {
            -modulus
        } else {
            0
        };
        let count = round + shift + i64::from(sn);
        (count < i64::from(u32::MAX)).then_some(count)
    }
}
