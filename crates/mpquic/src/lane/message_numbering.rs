//! Numbers of messages within their flows. A flow that was idle for long is another one: the peer may
//! have forgotten it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::message_order::{Place, STRICT};
use super::outgoing_messages::{COMMON, QUEUES};

/// Flows whose numbers are remembered, and for how long after the last message.
const MAX_NUMBERED: usize = QUEUES as usize + 1;
const REMEMBERED: Duration = Duration::from_secs(2);

/// Numbers of messages, and of those of each queue.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// Number of the next message.
    message: u64,
    /// Flow of each key, with the next number and when the last one was given.
    flows: HashMap<u64, (u64, u64, Instant)>,
    last: u64,
}

impl Numbering {
    /// Returns the number of the next message.
    pub(super) fn message(&mut self) -> u64 {
        let number = self.message;
        self.message += 1;
        number
    }

    /// Returns the place of the next message of a queue.
    pub(super) fn next(&mut self, key: u64, now: Instant) -> Place {
        let is_live = |at: Instant| key == COMMON || now.duration_since(at) < REMEMBERED;
        if let Some((flow, next, at)) = self.flows.get_mut(&key)
            && is_live(*at)
        {
            let place = Place {
                flow: *flow,
                sequence: *next,
            };
            (*next, *at) = (*next + 1, now);
            return place;
        }
        if self.flows.len() >= MAX_NUMBERED {
            self.flows
                .retain(|key, (.., at)| *key == COMMON || now.duration_since(*at) < REMEMBERED);
            if self.flows.len() >= MAX_NUMBERED {
                self.flows.retain(|key, _| *key == COMMON);
            }
        }
        let flow = match key {
            COMMON => STRICT,
            _ => {
                self.last += 1;
                self.last
            }
        };
        self.flows.insert(key, (flow, 1, now));
        Place { flow, sequence: 0 }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        self.flows.capacity() * 48
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_flow_has_its_own_numbers_and_a_new_one_after_a_rest() {
        let (mut numbering, begin) = (Numbering::default(), Instant::now());
        let mut next = |key, ms| numbering.next(key, begin + Duration::from_millis(ms));
        let place = |flow, sequence| Place { flow, sequence };
        assert_eq!(next(7, 0), place(1, 0));
        assert_eq!(next(9, 0), place(2, 0));
        assert_eq!(next(7, 1000), place(1, 1));
        assert_eq!(next(7, 2000), place(1, 2));
        assert_eq!(next(9, 2100), place(3, 0));
        assert_eq!(next(COMMON, 0), place(STRICT, 0));
        assert_eq!(
            next(COMMON, 99_000),
            place(STRICT, 1),
            "it is never another"
        );
    }
}
