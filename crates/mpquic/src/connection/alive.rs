//! Liveness of the session: whether the peer still knows it.
//!
//! The library's idle timer does not tell (noq-proto 1.4): the first packet on each new path
//! restarts it, so that a device that opens paths in vain never finds out, and a stateless
//! reset is recognised by the token of the first path alone. So the session's own clock counts
//! from the newest packet that the peer has acknowledged; nobody but the peer can do that.
//!
//! A session that is silent is asked on all of its paths, and [`Dial`](crate::Dial) connects
//! anew beside it. It ends after [`IDLE`], when the peer has forgotten it, too; time in which
//! the machine was suspended counts.

use std::time::{Duration, Instant};

use noq_proto::{ConnectionError, VarInt};

use super::{Connection, Event};
use crate::transport::IDLE;

/// Beside two round trips: more than the 2 s between two pings.
const SILENT: Duration = Duration::from_millis(2500);
/// Beside two round trips, where all paths are held or the device was stopped.
const HELD: Duration = Duration::from_secs(1);
/// Silence counts after this, however long a round trip takes.
const MOST: Duration = Duration::from_secs(10);
/// Between two looks while it is silent, or at what has arrived.
const LOOK: Duration = Duration::from_millis(100);
const LOOK_AT_STREAMS: Duration = Duration::from_millis(500);
/// The application's error code of a session whose peer was silent.
const NOTHING_HEARD: VarInt = VarInt::from_u32(0x11);

/// Clock of one session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alive {
    /// When the newest packet was sent that the peer has acknowledged.
    proof: Instant,
    /// When the peer was heard last.
    heard: Instant,
    /// When the device went on after it was stopped; none once the peer has acknowledged
    /// something that was sent since.
    woke: Option<Instant>,
    /// Time since `proof` in which the machine was suspended, which `Instant` does not count.
    slept: Duration,
    /// The paths are asked.
    asking: bool,
    /// When to look again.
    due: Instant,
    /// Frames that had arrived at the last look, on the stream lane.
    frames: u64,
}

impl Alive {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            proof: now,
            heard: now,
            woke: None,
            slept: Duration::ZERO,
            asking: false,
            due: now + HELD,
            frames: 0,
        }
    }

    /// A packet that was sent at `sent` was acknowledged at `heard`.
    fn acknowledged(&mut self, sent: Instant, heard: Instant) {
        if sent <= self.proof {
            return;
        }
        self.proof = sent;
        // What had waited in a socket while the device was stopped says nothing of now.
        if self.woke.is_none_or(|w| sent >= w) {
            (self.woke, self.slept) = (None, Duration::ZERO);
            self.heard = self.heard.max(heard);
        }
    }

    /// For how long the peer has proved nothing.
    fn unproved(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.proof) + self.slept
    }

    /// When the session ends unless something is proved.
    fn end(&self) -> Instant {
        self.proof + IDLE.saturating_sub(self.slept)
    }

    fn silent_at(&self, patience: Duration) -> Instant {
        self.woke.unwrap_or(self.heard) + patience
    }
}

impl Connection {
    /// When time for it passes next.
    pub(super) fn alive_due(&self) -> Option<Instant> {
        self.alive.map(|a| a.due)
    }

    /// Time has passed, or a path is not what it was.
    pub(super) fn look_alive(&mut self, now: Instant) {
        let Some(mut alive) = self.alive else {
            return;
        };
        self.hear(&mut alive, now);
        let ended = alive.unproved(now) >= IDLE;
        let silent_at = alive.silent_at(self.patience(&alive));
        let silent = silent_at <= now;
        let ask = silent && self.is_client();
        if ask != alive.asking {
            alive.asking = ask;
            for p in self.paths.iter_mut().filter(|p| p.established && !p.held) {
                p.ask.set(ask, now);
            }
        }
        alive.due = match (silent, &self.lane) {
            (true, _) => now + LOOK,
            (false, None) => silent_at.min(now + LOOK_AT_STREAMS),
            (false, Some(_)) => silent_at,
        }
        .min(alive.end().max(now + LOOK));
        self.alive = Some(alive);
        if ended {
            self.give_up(ConnectionError::TimedOut, now);
        }
    }

    fn hear(&mut self, alive: &mut Alive, now: Instant) {
        let newest = {
            let slots = self.shared.lock();
            let all = self.paths.iter().map(|p| &slots[p.slot]);
            all.filter_map(|s| s.newest.zip(s.heard)).max()
        };
        if let Some((sent, heard)) = newest {
            alive.acknowledged(sent, heard);
        }
        if self.lane.is_some() {
            return;
        }
        // The peer acknowledges on its first path, which may be dead while others live.
        let rx = self.quic.stats().frame_rx;
        let frames = rx.stream + rx.ping + rx.acks + rx.path_acks;
        if frames > alive.frames && alive.woke.is_none() {
            alive.heard = now;
        }
        alive.frames = frames;
    }

    fn patience(&self, alive: &Alive) -> Duration {
        let mut established = self.paths.iter().filter(|p| p.established);
        let held = alive.woke.is_some() || established.all(|p| p.held);
        let least = if held { HELD } else { SILENT };
        (least + 2 * self.round()).min(MOST)
    }

    /// How long it takes until the session is silent; zero once it is, none before the
    /// handshake is done.
    pub(crate) fn until_silent(&mut self, now: Instant) -> Option<Duration> {
        let mut alive = self.alive?;
        self.hear(&mut alive, now);
        self.alive = Some(alive);
        let at = alive.silent_at(self.patience(&alive));
        Some(at.saturating_duration_since(now))
    }

    /// For how long nothing has come back on any path, once that is too long.
    pub fn silent_for(&mut self, now: Instant) -> Option<Duration> {
        let silent = self.until_silent(now)?.is_zero();
        let since = self.alive?.heard;
        silent.then(|| now.saturating_duration_since(since))
    }

    /// The longest round trip of a path that was validated.
    pub(crate) fn round(&self) -> Duration {
        let slots = self.shared.lock();
        let established = self.paths.iter().filter(|p| p.established);
        established
            .map(|p| slots[p.slot].srtt)
            .max()
            .unwrap_or_default()
    }

    /// This end goes on after it was stopped, or suspended for `slept`: what it knows of the
    /// peer is old.
    pub(crate) fn woke(&mut self, now: Instant, slept: Duration) {
        let Some(mut alive) = self.alive else {
            return;
        };
        self.hear(&mut alive, now);
        alive.woke = Some(now);
        alive.slept += slept;
        alive.due = now;
        self.alive = Some(alive);
        if self.is_client() {
            for p in self.paths.iter_mut().filter(|p| p.established) {
                p.ask.at_once(now);
            }
        }
    }

    /// A stateless reset of the peer has arrived (RFC 9000 10.3), or another sign that it does
    /// not know the session: it ends.
    pub(crate) fn give_up(&mut self, why: ConnectionError, now: Instant) {
        if self.quic.is_closed() {
            return;
        }
        self.close(now, NOTHING_HEARD, b"nothing was heard of the peer");
        self.events.push_back(Event::Lost(why));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn what_was_sent_before_a_stop_proves_nothing_after_it() {
        let begin = Instant::now();
        let mut alive = Alive::new(begin);
        alive.acknowledged(begin + S, begin + 2 * S);
        assert_eq!((alive.proof, alive.heard), (begin + S, begin + 2 * S));
        let woke = begin + 20 * S;
        alive.woke = Some(woke);
        // It waited in the socket.
        alive.acknowledged(begin + 2 * S, woke + S);
        assert_eq!(alive.silent_at(HELD), woke + HELD);
        alive.acknowledged(woke + S, woke + 2 * S);
        assert_eq!(alive.silent_at(SILENT), woke + 2 * S + SILENT);
    }

    #[test]
    fn suspended_time_counts_until_something_is_proved() {
        let begin = Instant::now();
        let mut alive = Alive::new(begin);
        (alive.slept, alive.woke) = (29 * S, Some(begin + S / 2));
        assert_eq!(alive.end(), begin + S);
        assert_eq!(alive.unproved(begin + S), IDLE);
        // It left before.
        alive.acknowledged(begin + S / 4, begin + S);
        assert_eq!(alive.end(), begin + S / 4 + S);
        alive.acknowledged(begin + S / 2, begin + S);
        assert_eq!(alive.end(), begin + S / 2 + IDLE);
        alive.slept = 100 * S;
        assert_eq!(alive.end(), begin + S / 2);
    }
}
