//! Times for which data waited for the paths, and for which each path had no room for it: by
//! these an observer tells a path that is full from one that the scheduler holds back.

use std::time::{Duration, Instant};

/// Times of one path, from its begin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    /// Time for which the connection had data to send.
    pub(super) waited: Duration,
    /// Part of it in which this path had no room: its window was full, its pacer or its socket
    /// held it.
    pub(super) full: Duration,
    /// Moment since which data waits, and whether the path has no room.
    since: Option<(Instant, bool)>,
}

impl Load {
    /// Adds up the time since nothing more could be sent.
    pub(super) fn count(&mut self, now: Instant) {
        if let Some((since, full)) = self.since.take() {
            let elapsed = now.saturating_duration_since(since);
            self.waited += elapsed;
            if full {
                self.full += elapsed;
            }
        }
    }

    /// Notes that data waits from now on, and whether the path has no room for it.
    pub(super) fn wait(&mut self, full: bool, now: Instant) {
        self.since = Some((now, full));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_since_nothing_could_be_sent() {
        let (begin, ms) = (Instant::now(), Duration::from_millis);
        let mut load = Load::default();
        load.count(begin);
        load.wait(true, begin);
        load.count(begin + ms(30));
        load.count(begin + ms(50));
        load.wait(false, begin + ms(50));
        load.count(begin + ms(60));
        assert_eq!((load.waited, load.full), (ms(40), ms(30)));
    }
}
