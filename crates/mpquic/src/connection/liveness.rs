//! Liveness of the session: whether the peer still knows it.
//!
//! The library's idle timer does not tell (noq-proto 1.4): the first packet on each new path
//! restarts it, so that a device that opens paths in vain never finds out, and a stateless
//! reset is recognised by the token of the first path alone. So the session's own clock counts
//! from the newest packet that the peer has acknowledged; nobody but the peer can do that.
//!
//! A session that is silent is pinged on all of its paths, and [`Dial`](crate::Dial) connects
//! anew beside it. It ends after [`IDLE`], when the peer has forgotten it, too; time in which
//! the machine was suspended counts.

use std::time::{Duration, Instant};

use crate::transport::IDLE;

/// Beside two round trips and the interval of pings, which come with an answer each.
const SILENT: Duration = Duration::from_millis(500);
/// Beside two round trips, where all paths are held or the device was stopped.
const HELD: Duration = Duration::from_secs(1);
/// Silence counts after this, however long a round trip takes.
const MAX_DETECT_TIME: Duration = Duration::from_secs(10);
/// Interval of checks while it is silent; and of those of what has arrived.
const RECHECK: Duration = Duration::from_millis(100);
const RECHECK_STREAMS: Duration = Duration::from_millis(500);

/// Clock of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct SessionLiveness {
    /// Interval of pings.
    pings: Duration,
    /// Send time of the newest packet that the peer has acknowledged.
    proved_at: Instant,
    /// Time when something of the peer arrived last.
    heard_at: Instant,
    /// When the device went on after it was stopped; none once the peer has acknowledged
    /// something that was sent since.
    woke: Option<Instant>,
    /// Time since `proved_at` in which the machine was suspended, which `Instant` does not count.
    slept: Duration,
    /// Whether the paths are pinged.
    pinging: bool,
    /// Time of the next check.
    due: Instant,
    /// Frames that had arrived at the last check, on the stream lane.
    frames: u64,
}

impl SessionLiveness {
    /// Begins a clock now, of a session that pings every `pings`.
    pub(super) fn new(pings: Duration, now: Instant) -> Self {
        Self {
            pings,
            proved_at: now,
            heard_at: now,
            woke: None,
            slept: Duration::ZERO,
            pinging: false,
            due: now + HELD,
            frames: 0,
        }
    }

    /// Notes that a packet that was sent at `sent` was acknowledged at `acked`.
    pub(super) fn acknowledged(&mut self, sent: Instant, acked: Instant) {
        if sent <= self.proved_at {
            return;
        }
        self.proved_at = sent;
        // What had waited in a socket while the device was stopped says nothing of now.
        if self.woke.is_none_or(|w| sent >= w) {
            (self.woke, self.slept) = (None, Duration::ZERO);
            self.heard_at = self.heard_at.max(acked);
        }
    }

    /// Notes how many frames have arrived at all, on the stream lane.
    pub(super) fn count_frames(&mut self, frames: u64, now: Instant) {
        if frames > self.frames && self.woke.is_none() {
            self.heard_at = now;
        }
        self.frames = frames;
    }

    /// Returns for how long the peer has proved nothing.
    fn unproved(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.proved_at) + self.slept
    }

    /// Returns when the session ends unless something is proved.
    fn end(&self) -> Instant {
        self.proved_at + IDLE.saturating_sub(self.slept)
    }

    /// Returns the detect time at this longest round trip, where all paths are `held` or not.
    fn detect_time(&self, held: bool, max_rtt: Duration) -> Duration {
        let min = match self.woke.is_some() || held {
            true => HELD,
            false => self.pings + SILENT,
        };
        (min + 2 * max_rtt).min(MAX_DETECT_TIME)
    }

    /// Returns when the session is silent, at this longest round trip, where all paths are
    /// `held` or not.
    pub(super) fn silent_at(&self, held: bool, max_rtt: Duration) -> Instant {
        self.woke.unwrap_or(self.heard_at) + self.detect_time(held, max_rtt)
    }

    /// Returns when something of the peer arrived last.
    pub(super) fn heard_at(&self) -> Instant {
        self.heard_at
    }

    /// Returns the time of the next check.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Checks the session, which is silent from `silent_at` on: the device pings all paths then.
    pub(super) fn check(
        &mut self,
        silent_at: Instant,
        (client, datagrams): (bool, bool),
        now: Instant,
    ) -> Check {
        let ended = self.unproved(now) >= IDLE;
        let silent = silent_at <= now;
        let ping = silent && client;
        let changed = ping != self.pinging;
        self.pinging = ping;
        self.due = match (silent, datagrams) {
            (true, _) => now + RECHECK,
            (false, false) => silent_at.min(now + RECHECK_STREAMS),
            (false, true) => silent_at,
        }
        .min(self.end().max(now + RECHECK));
        Check {
            ping: changed.then_some(ping),
            ended,
        }
    }

    /// Notes that this end goes on after it was stopped, or suspended for `slept`: what it knows
    /// of the peer is old.
    pub(super) fn woke(&mut self, now: Instant, slept: Duration) {
        self.woke = Some(now);
        self.slept += slept;
        self.due = now;
    }
}

/// Outcome of a check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Check {
    /// Whether pinging of all paths begins, or ends.
    pub(super) ping: Option<bool>,
    /// Whether the session has ended.
    pub(super) ended: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn what_was_sent_before_a_stop_proves_nothing_after_it() {
        let begin = Instant::now();
        let mut liveness = SessionLiveness::new(2 * S, begin);
        liveness.acknowledged(begin + S, begin + 2 * S);
        assert_eq!(
            (liveness.proved_at, liveness.heard_at),
            (begin + S, begin + 2 * S)
        );
        let woke = begin + 20 * S;
        liveness.woke = Some(woke);
        // It waited in the socket.
        liveness.acknowledged(begin + 2 * S, woke + S);
        assert_eq!(liveness.silent_at(false, Duration::ZERO), woke + HELD);
        liveness.acknowledged(woke + S, woke + 2 * S);
        assert_eq!(
            liveness.silent_at(false, Duration::ZERO),
            woke + 4 * S + SILENT
        );
    }

    #[test]
    fn suspended_time_counts_until_something_is_proved() {
        let begin = Instant::now();
        let mut liveness = SessionLiveness::new(2 * S, begin);
        (liveness.slept, liveness.woke) = (29 * S, Some(begin + S / 2));
        assert_eq!(liveness.end(), begin + S);
        assert_eq!(liveness.unproved(begin + S), IDLE);
        // It left before.
        liveness.acknowledged(begin + S / 4, begin + S);
        assert_eq!(liveness.end(), begin + S / 4 + S);
        liveness.acknowledged(begin + S / 2, begin + S);
        assert_eq!(liveness.end(), begin + S / 2 + IDLE);
        liveness.slept = 100 * S;
        assert_eq!(liveness.end(), begin + S / 2);
    }
}
