//! Credit of the streams (RFC 9000 4.1): a window for each, which grows with what is read of
//! it, and one for all together.
//!
//! A reader may rest with all that its window holds. If each window were as large as a fast
//! path with a long round trip needs, a few such readers would hold all that the session may,
//! and every other stream would wait for them. So what a stream may have depends on what the
//! others leave (Choudhury and Hahne, Dynamic Queue Length Thresholds): before its first credit
//! the sender keeps to a twelfth of it ([`initial_window`]), and after that the receiver grants
//! what is read of it in two seconds (RFC 9000 4.2; as receive buffers of TCP grow), and at most a
//! quarter of it ([`Windows`]).

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// Maximum window of a stream before its first credit, bytes: that is not negotiated.
pub(super) const INITIAL_WINDOW: u64 = 4 << 20;
/// Bytes that a sender may send before the first credit in any case: what the first credit takes.
const MIN_INITIAL_WINDOW: u64 = MIN_WINDOW / 4;
/// Minimum window of a stream that is granted, bytes.
const MIN_WINDOW: u64 = 256 << 10;
/// Maximum window of a stream, bytes.
const MAX_WINDOW: u64 = 16 << 20;
/// Bytes of all streams that may wait to be read.
pub(super) const SESSION_WINDOW: u64 = 64 << 20;
/// Credit of all streams is told anew when so much of it has been used, or as much as is left.
const STEP: u64 = 2 << 20;

/// Time within which a quarter of a window is read that is to double: windows hold up to two
/// seconds of what is read, and so more than is under way on any path while another is
/// silent.
const QUARTER: Duration = Duration::from_millis(500);
/// Time after its latest credit for which a stream counts as being read.
const RECENT: Duration = Duration::from_secs(2);
/// Share of what the others leave that a stream may be granted.
const SHARE: u64 = 4;
/// Share of the credit that is left that a stream may send before its first credit, and what is left
/// if it is to grow again.
const INITIAL_SHARE: u64 = 12;
const REGROW_SHARE: u64 = 16;

/// Returns the window of streams before their first credit, in bytes, where it was `before` and
/// `left` bytes may be sent on all streams: a power of two, so that it seldom changes.
pub(super) fn initial_window(before: u64, left: u64) -> u64 {
    let share = |n: u64| {
        let bytes = (left / n).clamp(MIN_INITIAL_WINDOW, INITIAL_WINDOW);
        1 << bytes.ilog2()
    };
    before.clamp(share(REGROW_SHARE), share(INITIAL_SHARE))
}

/// Window of a stream that arrives.
#[derive(Debug)]
pub(super) struct Window {
    size: u64,
    /// The peer may send up to this, as far as it was told.
    granted: u64,
    /// Time of the latest credit, or of the first data, and how far the stream reached.
    since: Option<Instant>,
    reach: u64,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            size: MIN_WINDOW,
            granted: MIN_WINDOW,
            since: None,
            reach: 0,
        }
    }
}

impl Window {
    /// Notes that data has come.
    pub(super) fn arrived(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    /// Whether credit is to be told, where all before `next` has been read.
    pub(super) fn is_due(&self, next: u64) -> bool {
        self.granted.saturating_sub(next) <= self.size - self.size / 4
    }

    /// Returns the size that what was read since the latest credit asks for.
    fn wanted(&self, reach: u64, now: Instant) -> u64 {
        let took = self.since.map_or(Duration::MAX, |s| now.duration_since(s));
        // What waited for a reader that rested says nothing of its rate.
        let came = reach - self.reach >= self.size / 8;
        if took <= QUARTER && came {
            // The first credit also ends the initial window, of which as much may be under way.
            let factor = if self.reach == 0 { 4 } else { 2 };
            factor * self.size
        } else if took > 4 * QUARTER {
            self.size / 2
        } else {
            self.size
        }
    }
}

/// State of a stream as far as its window depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Bytes that have been read.
    pub(super) next: u64,
    /// Bytes up to the last that has arrived.
    pub(super) reach: u64,
    /// Bytes of all other streams that wait to be read.
    pub(super) held_by_others: u64,
}

/// Windows of the streams that are being read.
#[derive(Debug, Default)]
pub(super) struct Windows {
    /// Time of the latest credit and size, by channel.
    recent: BTreeMap<u64, (Instant, u64)>,
    /// Times of all credits, those that were replaced too, in order.
    order: VecDeque<(Instant, u64)>,
    /// Bytes of these windows.
    granted: u64,
}

impl Windows {
    /// Renews the window of a stream of which a quarter has been read, and returns what
    /// the peer may send.
    pub(super) fn renew(
        &mut self,
        channel: u64,
        window: &mut Window,
        progress: Progress,
        now: Instant,
    ) -> u64 {
        self.forget_old(now);
        self.forget(channel);
        let left = SESSION_WINDOW.saturating_sub(self.granted + progress.held_by_others);
        let most = (left / SHARE).clamp(MIN_WINDOW, MAX_WINDOW);
        window.size = window.wanted(progress.reach, now).clamp(MIN_WINDOW, most);
        // A smaller window grants nothing for a while: credit is not taken back (RFC 9000 4.1).
        window.granted = window.granted.max(progress.next + window.size);
        (window.since, window.reach) = (Some(now), progress.reach);
        self.granted += window.size;
        self.recent.insert(channel, (now, window.size));
        self.order.push_back((now, channel));
        window.granted
    }

    /// Forgets a stream, which has ended.
    pub(super) fn forget(&mut self, channel: u64) {
        if let Some((_, size)) = self.recent.remove(&channel) {
            self.granted -= size;
        }
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some(&(at, channel)) = self.order.front()
            && now.duration_since(at) > RECENT
        {
            self.order.pop_front();
            if self.recent.get(&channel).is_some_and(|r| r.0 == at) {
                self.forget(channel);
            }
        }
    }

    /// Bytes of memory that it holds, at most.
    #[cfg(test)]
    pub(super) fn cost(&self) -> usize {
        64 * self.recent.len() + 16 * self.order.capacity()
    }
}

/// Whether the credit of all streams is to be told anew, of which `used` bytes would be new and
/// `left` may still come: at the latest when half of what the peer could send has been read.
pub(super) fn is_session_due(used: u64, left: u64) -> bool {
    used >= STEP || used > 0 && used >= left
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Streams that are read at a rate, in bytes per second, for some time.
    struct Readers {
        windows: Windows,
        now: Instant,
        streams: Vec<(Window, u64)>,
    }

    impl Readers {
        fn new(streams: usize) -> Self {
            Self {
                windows: Windows::default(),
                now: Instant::now(),
                streams: (0..streams).map(|_| (Window::default(), 0)).collect(),
            }
        }

        /// Each stream is read as fast as its window or `rate` lets it, with a round trip of
        /// 100 ms; `held` bytes of others wait.
        fn read(&mut self, rate: u64, held: u64, time: Duration) {
            let end = self.now + time;
            while self.now < end {
                for (channel, (window, read)) in (0..).zip(&mut self.streams) {
                    window.arrived(self.now);
                    *read += (rate / 10).min(window.size);
                    while *read - window.reach >= window.size / 4 {
                        let progress = Progress {
                            next: *read,
                            reach: *read,
                            held_by_others: held,
                        };
                        self.windows.renew(channel, window, progress, self.now);
                    }
                }
                self.now += Duration::from_millis(100);
            }
        }

        fn sizes(&self) -> Vec<u64> {
            self.streams.iter().map(|s| s.0.size).collect()
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_window_grows_to_two_seconds_of_what_is_read() {
        for (rate, least, most) in [
            (10_000, MIN_WINDOW, MIN_WINDOW),
            (1 << 20, 2 << 20, 4 << 20),
            (100 << 20, MAX_WINDOW, MAX_WINDOW),
        ] {
            let mut readers = Readers::new(1);
            readers.read(rate, 0, 10 * SECOND);
            let size = readers.sizes()[0];
            assert!((least..=most).contains(&size), "{rate}: {size}");
        }
    }

    #[test]
    fn a_window_shrinks_with_what_is_read() {
        let mut readers = Readers::new(1);
        readers.read(100 << 20, 0, 3 * SECOND);
        assert_eq!(readers.sizes(), [MAX_WINDOW]);
        readers.read(500_000, 0, 300 * SECOND);
        assert!(readers.sizes()[0] <= 4 << 20, "{:?}", readers.sizes());
    }

    #[test]
    fn what_streams_are_read_may_hold_leaves_room_for_others() {
        for n in [1, 5, 20, 60] {
            let mut readers = Readers::new(n);
            readers.read(100 << 20, 0, 20 * SECOND);
            let sizes = readers.sizes();
            let all: u64 = sizes.iter().sum();
            let (least, most) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
            assert!(
                all < SESSION_WINDOW && most - least <= most / 8,
                "{sizes:?}"
            );
            // SESSION_WINDOW / (n + 3), as each has a quarter of what the others leave.
            let fair = SESSION_WINDOW / (n as u64 + 3);
            assert!(all * 10 >= fair * n as u64 * 9, "{sizes:?}");
        }
    }

    #[test]
    fn what_waits_unread_leaves_less_to_others() {
        let mut readers = Readers::new(1);
        readers.read(100 << 20, 40 << 20, 5 * SECOND);
        assert_eq!(readers.sizes(), [6 << 20]);
        readers.read(100 << 20, SESSION_WINDOW, 5 * SECOND);
        assert_eq!(readers.sizes(), [MIN_WINDOW]);
    }

    /// Reader that takes all that its window holds at once, and then nothing for a while.
    #[test]
    fn a_reader_that_rests_does_not_get_more() {
        let (mut windows, mut window) = (Windows::default(), Window::default());
        let (mut now, mut reach) = (Instant::now(), 0);
        window.arrived(now);
        for _ in 0..20 {
            reach += window.size;
            now += 10 * SECOND;
            for quarter in (0..4).rev() {
                let progress = Progress {
                    next: reach - quarter * window.size / 4,
                    reach,
                    held_by_others: 0,
                };
                windows.renew(7, &mut window, progress, now);
                assert_eq!(window.size, MIN_WINDOW);
            }
            assert_eq!(window.granted, reach + MIN_WINDOW);
        }
    }

    #[test]
    fn streams_that_are_not_read_any_more_are_forgotten() {
        let mut readers = Readers::new(5);
        readers.read(100 << 20, 0, 5 * SECOND);
        readers.streams.truncate(1);
        readers.read(100 << 20, 0, 5 * SECOND);
        assert_eq!(readers.sizes(), [MAX_WINDOW]);
        readers.windows.forget(0);
        assert_eq!(readers.windows.granted, 0);
        readers.windows.forget_old(readers.now + 3 * SECOND);
        assert!(readers.windows.order.is_empty());
    }

    /// As many as rest without a first credit, one after the other.
    #[test]
    fn streams_that_begin_leave_some_to_the_next() {
        let (mut left, mut window) = (SESSION_WINDOW, INITIAL_WINDOW);
        for n in 0..60 {
            window = initial_window(window, left);
            assert!(window <= left && (n > 3 || window == INITIAL_WINDOW), "{n}");
            left -= window;
        }
        assert!(left > 1 << 20, "{left}");
        assert_eq!(initial_window(window, 0), MIN_INITIAL_WINDOW);
        // It does not go up and down with every step of credit.
        let small = initial_window(INITIAL_WINDOW, 47 << 20);
        assert_eq!(small, 2 << 20);
        assert_eq!(initial_window(small, 49 << 20), small);
        assert_eq!(initial_window(small, SESSION_WINDOW), INITIAL_WINDOW);
    }

    #[test]
    fn little_credit_of_all_is_told_at_once() {
        assert!(!is_session_due(0, 0) && !is_session_due(STEP - 1, SESSION_WINDOW));
        assert!(is_session_due(STEP, SESSION_WINDOW));
        assert!(is_session_due(5, 5) && !is_session_due(5, 6));
    }
}
