//! Messages that wait to leave. They are sent once: what is lost of them is not sent again.
//!
//! Each flow has a queue of its own, and all have the same share (RFC 8290): a flow that sends
//! little does not wait for one that sends much. Packets that wait for too long are marked where
//! their sender understands that, else dropped ([`Codel`]).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::codel::Codel;
use super::message_numbering::Numbering;
use super::message_order::Place;
use super::piece::MIN_PIECE;
use super::wire::{Frame, message_header};

/// Bytes of messages that may wait to leave.
const MAX_BYTES: usize = 1 << 20;
/// Bytes of packets that may wait to leave: then the longest queue loses its oldest.
pub(super) const MAX_PACKET_BYTES: usize = 4 << 20;
/// Bytes of a flow in each turn: a packet.
const QUANTUM: i64 = 1514;
/// Queues of packets: flows of the same remainder share one, so that hosts cannot make ever more.
pub(super) const QUEUES: u32 = 4096;
/// Bits of a queue's key below the number of its class.
const CLASS_SHIFT: u32 = 32;

/// Packet of a flow, sent as a message.
#[derive(Clone, Debug)]
pub struct Packet {
    /// Number of its class, below [`MAX_CLASSES`](braid_core::class::MAX_CLASSES); a greater one is the default.
    pub class: u8,
    /// Flow that it belongs to: those of one number share a queue.
    pub flow: u32,
    /// Whether it is to be given in the order of its flow.
    pub ordered: bool,
    /// Its bytes, 1 to 65536.
    pub data: Bytes,
    /// Marks it for having waited (ECN, RFC 3168 5); `None` where its sender does not understand that.
    pub mark: fn(&Bytes) -> Option<Bytes>,
}

/// Waiting message.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    ordered: bool,
    data: Bytes,
    /// Absent: it is not dropped.
    mark: Option<fn(&Bytes) -> Option<Bytes>>,
}

/// Message of which parts have left.
#[derive(Debug)]
struct Leaving {
    number: u64,
    place: Option<Place>,
    data: Bytes,
    sent: usize,
}

#[derive(Debug, Default)]
struct Flow {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    codel: Codel,
}

/// Key of the flow of messages that belong to no packet's.
pub(super) const COMMON: u64 = u64::MAX;

/// Messages that wait to leave.
#[derive(Debug, Default)]
pub(super) struct OutgoingMessages {
    flows: HashMap<u64, Flow>,
    /// Flows that have just begun to wait, and those that have had a turn.
    new: VecDeque<u64>,
    old: VecDeque<u64>,
    leaving: Option<Leaving>,
    /// Bytes of the waiting messages that have not left.
    bytes: usize,
    /// Time until which the packets that wait do not leave on the path that had room last.
    held: Option<Instant>,
}

impl OutgoingMessages {
    /// Takes a message; false if it is empty or there is no room for it now.
    pub(super) fn push(&mut self, data: Bytes, ordered: bool, now: Instant) -> bool {
        if data.is_empty() || self.bytes + data.len() > MAX_BYTES {
            return false;
        }
        let message = Waiting {
            since: now,
            ordered,
            data,
            mark: None,
        };
        self.queue(COMMON, message);
        true
    }

    /// Takes a packet; false if it is empty.
    pub(super) fn push_packet(&mut self, packet: Packet, now: Instant) -> bool {
        if packet.data.is_empty() {
            return false;
        }
        let message = Waiting {
            since: now,
            ordered: packet.ordered,
            data: packet.data,
            mark: Some(packet.mark),
        };
        let class = u64::from(packet.class) << CLASS_SHIFT;
        self.queue(class | u64::from(packet.flow % QUEUES), message);
        while self.bytes > MAX_PACKET_BYTES && self.drop_of_longest() {}
        true
    }

    fn queue(&mut self, key: u64, message: Waiting) {
        self.bytes += message.data.len();
        let flow = self.flows.entry(key).or_insert_with(|| {
            self.new.push_back(key);
            Flow {
                deficit: QUANTUM,
                ..Flow::default()
            }
        });
        flow.bytes += message.data.len();
        flow.waiting.push_back(message);
    }

    /// Drops the oldest packets of the longest queue, up to half of it and 64 at once (RFC 8290
    /// 4.1.3); false where there are none.
    pub(super) fn drop_of_longest(&mut self) -> bool {
        let packets = self.flows.iter_mut().filter(|(key, _)| **key != COMMON);
        let Some((_, flow)) = packets.max_by_key(|(_, f)| f.bytes) else {
            return false;
        };
        let (before, most) = (flow.bytes, flow.bytes / 2);
        for _ in 0..64 {
            let Some(dropped) = flow.waiting.pop_front() else {
                break;
            };
            flow.bytes -= dropped.data.len();
            if flow.bytes < most {
                break;
            }
        }
        self.bytes -= before - flow.bytes;
        before > flow.bytes
    }

    /// Bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a flow waits for its first turn, on a path that takes `behind` longer than the
    /// fastest: it has sent less than its share.
    pub(super) fn has_new(&self, now: Instant, behind: Duration) -> bool {
        self.new
            .front()
            .is_some_and(|key| self.waits_for(*key, behind).is_none_or(|t| t <= now))
    }

    /// Time until which the first packet of a flow rather waits for the fastest path; none without
    /// one.
    fn waits_for(&self, key: u64, behind: Duration) -> Option<Instant> {
        let first = self.flows.get(&key)?.waiting.front()?;
        first.mark.map(|_| first.since + behind)
    }

    /// Notes that time has passed: what was kept until now waits for room alone.
    pub(super) fn pass(&mut self, now: Instant) {
        self.held = self.held.filter(|t| *t > now);
    }

    /// Time at which a packet may leave that was kept for a faster path.
    pub(super) fn due(&self) -> Option<Instant> {
        self.held.filter(|_| self.bytes > 0)
    }

    /// Returns how many flows wait.
    pub(super) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The next part of the message whose turn it is, on a path that takes `behind` longer than the
    /// fastest: there a flow that sends little has its packets wait, in case that one has room.
    pub(super) fn part(
        &mut self,
        room: usize,
        now: Instant,
        behind: Duration,
        numbering: &mut Numbering,
    ) -> Option<Frame> {
        if self.leaving.is_none() {
            self.held = None;
            self.leaving = self.dequeue(now, behind, numbering);
        }
        let m = self.leaving.as_mut()?;
        let (total, offset) = (m.data.len() as u32, m.sent as u32);
        let fits = room.checked_sub(message_header(m.number, m.place, total, offset, room))?;
        let left = m.data.len() - m.sent;
        if left > fits && fits < MIN_PIECE {
            return None;
        }
        let n = left.min(fits);
        let frame = Frame::Message {
            number: m.number,
            place: m.place,
            total,
            offset,
            data: m.data.slice(m.sent..m.sent + n),
        };
        m.sent += n;
        self.bytes -= n;
        if m.sent == m.data.len() {
            self.leaving = None;
        }
        Some(frame)
    }

    /// Takes the next message out of its queue: flows take turns of [`QUANTUM`] bytes.
    fn dequeue(
        &mut self,
        now: Instant,
        behind: Duration,
        numbering: &mut Numbering,
    ) -> Option<Leaving> {
        loop {
            let new = self.new.front().copied();
            let has_sent = |key: &u64| self.flows.get(key).is_none_or(|f| f.deficit <= 0);
            let sparse = new.filter(|key| !has_sent(key));
            let until = sparse.and_then(|key| self.waits_for(key, behind));
            let until = until.filter(|t| *t > now);
            self.held = until;
            let (key, is_new) = match (new.filter(|_| until.is_none()), self.old.front()) {
                (Some(key), _) => (key, true),
                (None, Some(key)) => (*key, false),
                (None, None) => return None,
            };
            let turn = if is_new { &mut self.new } else { &mut self.old };
            let Some(flow) = self.flows.get_mut(&key) else {
                turn.pop_front();
                continue;
            };
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                turn.pop_front();
                self.old.push_back(key);
                continue;
            }
            let Some(message) = flow.next(&mut self.bytes, now) else {
                turn.pop_front();
                // Once more behind the others: one that always comes anew would always be first.
                match is_new && !self.old.is_empty() {
                    true => self.old.push_back(key),
                    false => drop(self.flows.remove(&key)),
                }
                continue;
            };
            flow.deficit -= message.data.len() as i64;
            let place = message.ordered.then(|| numbering.next(key, now));
            return Some(Leaving {
                number: numbering.message(),
                place,
                data: message.data,
                sent: 0,
            });
        }
    }

    /// Bytes of memory that they hold, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        let waiting = |f: &Flow| f.waiting.capacity() * size_of::<Waiting>() + size_of::<Flow>();
        let flows: usize = self.flows.values().map(waiting).sum();
        let turns = (self.new.len() + self.old.len()) * 8;
        flows + turns + self.bytes
    }
}

impl Flow {
    /// Takes its next message out; `bytes` is what all flows have waiting.
    fn next(&mut self, bytes: &mut usize, now: Instant) -> Option<Waiting> {
        loop {
            let mut message = self.waiting.pop_front()?;
            self.bytes -= message.data.len();
            let Some(mark) = message.mark else {
                return Some(message);
            };
            let short = self.bytes <= QUANTUM as usize;
            if !self.codel.drops(message.since, short, now) {
                return Some(message);
            }
            if let Some(marked) = mark(&message.data) {
                message.data = marked;
                return Some(message);
            }
            *bytes -= message.data.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn never(_: &Bytes) -> Option<Bytes> {
        None
    }

    fn always(data: &Bytes) -> Option<Bytes> {
        Some(vec![0xce; data.len()].into())
    }

    fn packet(flow: u32, len: usize) -> Packet {
        Packet {
            class: 0,
            flow,
            ordered: true,
            data: vec![flow as u8; len].into(),
            mark: never,
        }
    }

    /// Whole messages that leave next.
    fn leave(m: &mut OutgoingMessages, now: Instant) -> Option<(Option<Place>, Bytes)> {
        match m.part(70_000, now, Duration::ZERO, &mut Numbering::default())? {
            Frame::Message { place, data, .. } => Some((place, data)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn flows_have_the_same_share_and_one_that_begins_goes_first() {
        let (mut m, now) = (OutgoingMessages::default(), Instant::now());
        for _ in 0..100 {
            m.push_packet(packet(1, 1400), now);
            m.push_packet(packet(2, 350), now);
        }
        let mut sent = [0; 4];
        for n in 0..100 {
            if n == 50 {
                m.push_packet(packet(3, 100), now);
                assert!(m.has_new(now, Duration::ZERO));
            }
            let (_, data) = leave(&mut m, now).unwrap();
            assert!(n != 50 || data[0] == 3, "{n}: {data:?}");
            sent[usize::from(data[0])] += data.len();
        }
        let ratio = sent[1] as f64 / sent[2] as f64;
        assert!((0.9..1.15).contains(&ratio), "{sent:?}");
    }

    #[test]
    fn what_waits_for_long_is_marked_or_dropped() {
        for (mark, name) in [
            (never as fn(&Bytes) -> Option<Bytes>, "never"),
            (always, "always"),
        ] {
            let (mut m, begin) = (OutgoingMessages::default(), Instant::now());
            let (mut came, mut marked) = (0, 0);
            // Twice what leaves.
            for ms in 0..2000 {
                let now = begin + MS * ms;
                for _ in 0..2 {
                    m.push_packet(
                        Packet {
                            mark,
                            ..packet(1, 1000)
                        },
                        now,
                    );
                }
                let (_, data) = leave(&mut m, now).unwrap();
                came += 1;
                marked += usize::from(data[0] == 0xce);
            }
            assert_eq!(came, 2000);
            let waiting = m.bytes() / 1000;
            match name {
                "never" => assert!(waiting < 1950 && marked == 0, "{waiting} wait"),
                _ => assert!(waiting == 2000 && marked > 20, "{marked} are marked"),
            }
        }
    }

    #[test]
    fn a_small_flow_waits_for_the_fastest_path() {
        let (mut m, now) = (OutgoingMessages::default(), Instant::now());
        for _ in 0..10 {
            m.push_packet(packet(1, 1400), now);
        }
        // Two turns: it sends more than its share.
        for _ in 0..2 {
            leave(&mut m, now).unwrap();
        }
        m.push_packet(packet(2, 100), now);
        let on_slow = |m: &mut OutgoingMessages, ms| {
            let numbering = &mut Numbering::default();
            let frame = m.part(2000, now + MS * ms, MS * 20, numbering);
            frame.map(|f| match f {
                Frame::Message { data, .. } => data[0],
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(
            (on_slow(&mut m, 0), m.due()),
            (Some(1), Some(now + MS * 20))
        );
        while on_slow(&mut m, 19).is_some() {}
        assert_eq!(m.due(), Some(now + MS * 20));
        assert_eq!((on_slow(&mut m, 20), m.due()), (Some(2), None));
    }

    #[test]
    fn where_all_is_full_the_longest_queue_loses_its_oldest() {
        let (mut m, now) = (OutgoingMessages::default(), Instant::now());
        m.push_packet(packet(2, 1000), now);
        assert!(m.push(vec![9; 1000].into(), true, now));
        for _ in 0..10_000 {
            m.push_packet(packet(1, 1400), now);
            assert!(m.bytes() <= MAX_PACKET_BYTES);
        }
        assert!(m.bytes() > MAX_PACKET_BYTES - 100 * 1400);
        let mut seen = [0; 10];
        while let Some((_, data)) = leave(&mut m, now) {
            seen[usize::from(data[0])] += 1;
        }
        assert_eq!((seen[2], seen[9]), (1, 1));
        assert_eq!((m.bytes(), m.flows()), (0, 0));
    }
}
