//! Paces the connection identifiers that are issued for paths to come.
//!
//! QUIC fills packets up to the one size that it knows for all paths, and packets of identifiers
//! for all path ids are as long as that. On a path that carries less they are lost, each time they
//! are sent again, and with them whatever else QUIC has to say: that the handshake is done
//! (HANDSHAKE_DONE, RFC 9000 19.20). So a peer gets as many at a time as fit into a packet that
//! every path of QUIC carries, the lowest path ids first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Events whose identifiers fit into a packet of 1200 bytes: up to 5 (`active_connection_id_limit`
/// of the library) of 32 bytes each (PATH_NEW_CONNECTION_ID).
const AT_ONCE: u32 = 6;
/// Round trips until those that were lost have been sent again, and the next may follow.
const ROUND_TRIPS: u32 = 4;
const MIN_WAIT: Duration = Duration::from_millis(25);
const MAX_WAIT: Duration = Duration::from_secs(1);

/// Identifiers that wait, as the endpoint has made them.
#[derive(Debug)]
pub(super) struct Identifiers<E> {
    waiting: VecDeque<E>,
    /// When the latest began to be issued, and how many events that were.
    latest: Option<(Instant, u32)>,
}

impl<E> Default for Identifiers<E> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            latest: None,
        }
    }
}

impl<E> Identifiers<E> {
    /// Adds what the endpoint has made.
    pub(super) fn add(&mut self, event: E) {
        self.waiting.push_back(event);
    }

    /// Whether none waits.
    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns when [`Identifiers::next`] has some, on paths of this round trip.
    pub(super) fn due(&self, rtt: Duration) -> Option<Instant> {
        self.waiting.front()?;
        let (at, count) = self.latest?;
        Some(if count < AT_ONCE { at } else { at + wait(rtt) })
    }

    /// Takes the next that may be issued.
    pub(super) fn next(&mut self, rtt: Duration, now: Instant) -> Option<E> {
        if self.due(rtt).is_some_and(|t| t > now) {
            return None;
        }
        let event = self.waiting.pop_front()?;
        self.latest = match self.latest {
            Some((at, count)) if count < AT_ONCE && now < at + wait(rtt) => Some((at, count + 1)),
            _ => Some((now, 1)),
        };
        Some(event)
    }
}

/// Returns the time from the first of a packet's worth to the next packet's.
fn wait(rtt: Duration) -> Duration {
    (ROUND_TRIPS * rtt).clamp(MIN_WAIT, MAX_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Within any four round trips no more than two packets' worth, in order, and all of
        /// them in the end.
        #[test]
        fn as_many_as_a_packet_holds_at_a_time(
            added in prop::collection::vec(0u64..2_000, 1..80), rtt in 1u64..300,
        ) {
            let (start, rtt) = (Instant::now(), Duration::from_millis(rtt));
            let mut added = added;
            added.sort_unstable();
            let mut all = Identifiers::default();
            let mut issued: Vec<(Instant, usize)> = Vec::new();
            let mut next = 0;
            for ms in 0..60_000 {
                let now = start + Duration::from_millis(ms);
                while added.get(next).is_some_and(|t| *t <= ms) {
                    all.add(next);
                    next += 1;
                }
                while let Some(event) = all.next(rtt, now) {
                    issued.push((now, event));
                }
                prop_assert!(all.due(rtt).is_none_or(|t| t > now));
            }
            prop_assert!(issued.iter().map(|(_, e)| *e).eq(0..added.len()));
            let most = 2 * AT_ONCE as usize;
            for many in issued.windows(most + 1) {
                prop_assert!(many[most].0 >= many[0].0 + wait(rtt));
            }
        }
    }
}
