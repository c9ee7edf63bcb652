//! Order of messages within their flows: of two paths the slower one's come later.
//!
//! A message waits for those before it in its flow, as long as what is overtaken has lately come
//! late. What comes later still is given at once, or thrown away where the flow is strict.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Place of a message: its flow, and its number there, from 0 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) flow: u64,
    pub(super) sequence: u64,
}

/// Flow whose messages are never given out of order.
pub(super) const STRICT: u64 = 0;

/// Flows that are remembered.
const MAX_FLOWS: usize = 4096;
/// Time after which an idle flow may be forgotten.
const IDLE: Duration = Duration::from_secs(2);

/// How long messages wait for those before them.
#[derive(Debug)]
struct Patience {
    /// Greatest lateness of this window and of the one before.
    late: [Duration; 2],
    /// Begin of this window; none before the first message.
    begin: Option<Instant>,
    /// Whether lateness has been watched for a whole window.
    knows: bool,
}

impl Patience {
    /// Length of a window.
    const WINDOW: Duration = Duration::from_secs(1);
    /// Before lateness is known: more than the delays of most accesses differ by.
    const INITIAL: Duration = Duration::from_millis(100);
    const MIN: Duration = Duration::from_millis(10);
    const MAX: Duration = Duration::from_millis(150);

    fn new() -> Self {
        Self {
            late: [Duration::ZERO; 2],
            begin: None,
            knows: false,
        }
    }

    fn pass(&mut self, now: Instant) {
        let begin = *self.begin.get_or_insert(now);
        let windows = now.duration_since(begin).as_micros() / Self::WINDOW.as_micros();
        if windows > 0 {
            self.late = match windows {
                1 => [Duration::ZERO, self.late[0]],
                _ => [Duration::ZERO; 2],
            };
            self.begin = Some(now);
            self.knows = true;
        }
    }

    fn learn(&mut self, late: Duration) {
        self.late[0] = self.late[0].max(late);
    }

    /// A quarter more than what has come late, and time for what two paths send in bursts.
    fn now(&self) -> Duration {
        let late = self.late[0].max(self.late[1]);
        let wanted = late * 5 / 4 + Duration::from_millis(2);
        let least = if self.knows { Self::MIN } else { Self::INITIAL };
        wanted.clamp(least, Self::MAX)
    }
}

#[derive(Debug)]
struct Flow {
    /// Number of the next message.
    next: u64,
    /// Messages that wait, by number, with the time of their arrival.
    waiting: BTreeMap<u64, (Instant, Bytes)>,
    /// Time since which one before these is missing.
    gap: Option<Instant>,
    /// Messages before this were given up, and missing since then.
    given_up: Option<(u64, Instant)>,
    used: Instant,
}

/// Flows with the messages that wait.
#[derive(Debug)]
pub(super) struct Orders {
    flows: HashMap<u64, Flow>,
    /// Messages that had to wait, in the order of their arrival; some do no longer.
    due: VecDeque<(Instant, Place)>,
    patience: Patience,
}

impl Default for Orders {
    fn default() -> Self {
        Self {
            flows: HashMap::new(),
            due: VecDeque::new(),
            patience: Patience::new(),
        }
    }
}

impl Orders {
    /// Takes a message that has arrived; what need not wait (any longer) is handed to `give`.
    /// Returns one that is thrown away.
    pub(super) fn take(
        &mut self,
        place: Place,
        data: Bytes,
        now: Instant,
        mut give: impl FnMut(Bytes),
    ) -> Option<Bytes> {
        self.patience.pass(now);
        if !self.flows.contains_key(&place.flow) && !self.has_room(now) {
            give(data);
            return None;
        }
        let flow = self.flows.entry(place.flow).or_insert_with(|| Flow {
            next: 0,
            waiting: BTreeMap::new(),
            gap: None,
            given_up: None,
            used: now,
        });
        flow.used = now;
        if place.sequence < flow.next {
            if let Some((below, since)) = flow.given_up
                && place.sequence < below
            {
                self.patience.learn(now.duration_since(since));
            }
            if place.flow == STRICT {
                return Some(data);
            }
            give(data);
            return None;
        }
        if place.sequence > flow.next {
            flow.gap.get_or_insert(now);
            let twice = flow.waiting.insert(place.sequence, (now, data));
            self.due.push_back((now, place));
            return twice.map(|(_, data)| data);
        }
        if let Some(since) = flow.gap {
            self.patience.learn(now.duration_since(since));
        }
        flow.next += 1;
        give(data);
        flow.give_next(&mut give);
        None
    }

    /// Gives those that need not wait any longer.
    pub(super) fn release(&mut self, now: Instant, mut give: impl FnMut(Bytes)) {
        self.patience.pass(now);
        let patience = self.patience.now();
        while let Some((since, place)) = self.due.front().copied() {
            let flow = self.flows.get_mut(&place.flow);
            let waits = flow.filter(|f| f.waiting.contains_key(&place.sequence));
            match waits {
                Some(_) if now < since + patience => return,
                Some(flow) => {
                    flow.given_up = Some((place.sequence, flow.gap.unwrap_or(since)));
                    // Those that came later and stand before it wait for the same.
                    while let Some(entry) = flow.waiting.first_entry()
                        && *entry.key() <= place.sequence
                    {
                        flow.next = *entry.key() + 1;
                        give(entry.remove().1);
                    }
                    flow.give_next(&mut give);
                }
                None => {}
            }
            self.due.pop_front();
        }
    }

    /// Returns when [`Orders::release`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        let (since, _) = self.due.front()?;
        Some(*since + self.patience.now())
    }

    /// Takes one that waits out, for want of room.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        while let Some((_, place)) = self.due.pop_front() {
            let flow = self.flows.get_mut(&place.flow);
            let waiting = flow.and_then(|f| f.waiting.remove(&place.sequence));
            if let Some((_, data)) = waiting {
                return Some(data);
            }
        }
        None
    }

    /// Whether one more flow can be remembered; forgets those that are idle where there are many.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.flows.len() >= MAX_FLOWS {
            let is_idle = |f: &Flow| f.waiting.is_empty() && now.duration_since(f.used) > IDLE;
            self.flows.retain(|_, f| !is_idle(f));
        }
        self.flows.len() < MAX_FLOWS
    }

    /// Returns the messages that wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> impl Iterator<Item = &Bytes> {
        let flows = self.flows.values();
        flows.flat_map(|f| f.waiting.values().map(|(_, data)| data))
    }

    /// Returns the bytes of memory that it holds beside the messages, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.flows.capacity() * size_of::<(u64, Flow)>()
            + self.due.capacity() * size_of::<(Instant, Place)>()
    }
}

impl Flow {
    /// Gives those that follow without a gap.
    fn give_next(&mut self, give: &mut impl FnMut(Bytes)) {
        while let Some((_, data)) = self.waiting.remove(&self.next) {
            self.next += 1;
            give(data);
        }
        let first = self.waiting.values().map(|(since, _)| *since).min();
        self.gap = first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: Duration = Duration::from_millis(1);

    struct World {
        orders: Orders,
        begin: Instant,
        given: Vec<(u64, u64)>,
    }

    impl World {
        fn new() -> Self {
            Self {
                orders: Orders::default(),
                begin: Instant::now(),
                given: vec![],
            }
        }

        fn at(&mut self, ms: u32, flow: u64, sequence: u64) {
            let mut data = flow.to_be_bytes().to_vec();
            data.extend(sequence.to_be_bytes());
            let (now, given) = (self.begin + MS * ms, &mut self.given);
            let mut give = |data: Bytes| given.push(read(&data));
            self.orders.release(now, &mut give);
            let place = Place { flow, sequence };
            self.orders.take(place, data.into(), now, &mut give);
        }

        fn pass(&mut self, ms: u32) {
            let given = &mut self.given;
            let now = self.begin + MS * ms;
            self.orders.release(now, |data| given.push(read(&data)));
        }
    }

    fn read(data: &Bytes) -> (u64, u64) {
        let number = |i: usize| u64::from_be_bytes(data[i..i + 8].try_into().unwrap());
        (number(0), number(8))
    }

    #[test]
    fn each_flow_waits_for_its_own_alone() {
        let mut w = World::new();
        w.at(0, 1, 1);
        w.at(0, 2, 0);
        w.at(1, 1, 2);
        assert_eq!(w.given, [(2, 0)]);
        w.at(2, 1, 0);
        assert_eq!(w.given, [(2, 0), (1, 0), (1, 1), (1, 2)]);
    }

    #[test]
    fn a_lost_one_is_waited_for_as_long_as_others_were_late() {
        let mut w = World::new();
        // Of each ten one comes 30 ms late.
        for n in 0..2000u64 {
            let ms = 2 * n as u32;
            match n % 10 {
                0 => {}
                _ => w.at(ms, 1, n),
            }
            if n % 10 == 5 {
                // As the slower path has it, 10 ms after those behind it.
                w.at(ms, 1, n - 5);
            }
        }
        let sorted = w.given.is_sorted();
        assert!(sorted && w.given.len() == 1999 + 1, "{}", w.given.len());
        // Sent and lost, after a while in which those were at most 10 ms late.
        let begin = 4000;
        w.at(begin, 1, 2001);
        let due = w.orders.due().unwrap().duration_since(w.begin);
        let waits = due - MS * begin;
        assert!(waits > MS * 10 && waits < MS * 16, "{waits:?}");
        w.pass(begin + 16);
        assert_eq!(w.given.last(), Some(&(1, 2001)));
        // Later than that it is given all the same.
        w.at(begin + 20, 1, 2000);
        assert_eq!(w.given.last(), Some(&(1, 2000)));
        // And it is waited for longer from then on.
        w.at(begin + 30, 1, 2003);
        let due = w.orders.due().unwrap().duration_since(w.begin);
        let waits = due - MS * (begin + 30);
        assert!(waits > MS * 20 && waits < MS * 30, "{waits:?}");
    }

    #[test]
    fn a_strict_flow_never_goes_back() {
        let mut w = World::new();
        w.at(0, STRICT, 1);
        w.pass(101);
        w.at(102, STRICT, 0);
        w.at(102, STRICT, 2);
        assert_eq!(w.given, [(0, 1), (0, 2)]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_given_twice(
            late in prop::collection::vec((0u32..300, 0u64..5), 1..200),
        ) {
            let mut next = HashMap::new();
            let mut all: Vec<_> = late.iter().enumerate().map(|(i, (late, flow))| {
                let sequence = next.entry(*flow + 1).or_insert(0);
                *sequence += 1;
                (i as u32 + late, *flow + 1, *sequence - 1)
            }).collect();
            all.sort_unstable();
            let mut w = World::new();
            for (ms, flow, sequence) in &all {
                w.at(*ms, *flow, *sequence);
            }
            w.pass(10_000);
            prop_assert_eq!(w.orders.due(), None);
            let mut given = w.given.clone();
            given.sort_unstable();
            let mut sent: Vec<_> = all.iter().map(|(_, f, s)| (*f, *s)).collect();
            sent.sort_unstable();
            prop_assert_eq!(given, sent);
            // What is late by less than the least that is waited is in order.
            if late.iter().all(|(late, _)| *late < 10) {
                for flow in 1..6 {
                    let of: Vec<_> = w.given.iter().filter(|(f, _)| *f == flow).collect();
                    prop_assert!(of.is_sorted());
                }
            }
        }
    }
}
