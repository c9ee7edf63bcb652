//! The recent events of an end, numbered.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

use braid_api::{Event, EventKind, Events};

/// How many are remembered.
const KEPT: usize = 4096;

/// The recent events.
#[derive(Debug, Default)]
pub(crate) struct Log {
    events: VecDeque<Event>,
    /// The number of the newest, lost ones included.
    last: u64,
}

impl Log {
    /// Adds one that happened now, and logs it: what an operator follows as information, the
    /// rest for whoever looks for a fault.
    pub(crate) fn add(&mut self, t_ns: u64, access: Option<String>, what: EventKind) {
        self.last += 1;
        tell(access.as_deref(), &what);
        if self.events.len() == KEPT {
            self.events.pop_front();
        }
        self.events.push_back(Event {
            seq: self.last,
            t_ns,
            unix_ms: unix_ms(),
            access,
            what,
        });
    }

    /// Notes that the kernel lost some, how many it does not say: a number is
    /// left out.
    pub(crate) fn lost(&mut self) {
        self.last += 1;
    }

    /// Returns the events after number `after`.
    pub(crate) fn after(&self, after: u64) -> Events {
        let events: Vec<_> = self
            .events
            .iter()
            .filter(|e| e.seq > after)
            .cloned()
            .collect();
        Events {
            next: self.last,
            missed: self
                .last
                .saturating_sub(after)
                .saturating_sub(events.len() as u64),
            events,
        }
    }
}

fn tell(access: Option<&str>, what: &EventKind) {
    let access = access.map_or(String::new(), |a| format!("{a}: "));
    match what.is_about_accesses() {
        true => tracing::info!("{access}{what}"),
        false => tracing::debug!("{access}{what}"),
    }
}

/// The wall clock's milliseconds since 1970.
fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_missed_unnoticed(steps in prop::collection::vec(any::<bool>(), 0..300), after in 0u64..320) {
            let mut log = Log::default();
            for &add in &steps {
                if add {
                    log.add(0, None, EventKind::Created { token: 1 });
                } else {
                    log.lost();
                }
            }
            let told = log.after(after);
            prop_assert_eq!(told.next, steps.len() as u64);
            prop_assert_eq!(
                told.missed + told.events.len() as u64,
                (steps.len() as u64).saturating_sub(after)
            );
            prop_assert_eq!(log.after(told.next).events.len(), 0);
        }
    }

    #[test]
    fn old_ones_are_forgotten_and_counted() {
        let mut log = Log::default();
        for token in 0..KEPT as u32 + 10 {
            log.add(0, None, EventKind::Created { token });
        }
        let told = log.after(0);
        assert_eq!((told.missed, told.events.len()), (10, KEPT));
        assert_eq!(told.events[0].seq, 11);
    }
}
