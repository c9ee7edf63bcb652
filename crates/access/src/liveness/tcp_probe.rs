//! Asks the other end of a subflow by TCP (a SYN, RFC 9293 3.5) where nobody answers probes:
//! a download leaves nothing unacknowledged at this end, so its sockets alone never tell that
//! a path of it has died.
//!
//! A path is asked once it is quiet while another one is not, and its silence counts only if
//! the same host answers on that other path. The more often a path lived that was asked, the
//! more seldom it is asked again: servers see these connections.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_core::Time;

use super::{FAST_RECOVERY_FOR, TX_INTERVAL_ACTIVE};

/// First and longest wait after a path that was asked lived: one that is used, and one that
/// is not.
const WAIT: Duration = Duration::from_secs(1);
const WAIT_USED: Duration = Duration::from_secs(8);
const WAIT_IDLE: Duration = Duration::from_secs(30);
/// One that was not asked for this long is asked like the first time.
const CALM: Duration = Duration::from_secs(60);
/// How often a dead path is asked: at first, later, and after it answered once.
const SOON: Duration = Duration::from_secs(1);
const LATER: Duration = Duration::from_secs(10);
const AT_ONCE: Duration = Duration::from_millis(100);

/// After how long a silence a path is asked that is dead after `limit`.
pub(super) fn first_tcp_probe(limit: Duration) -> Duration {
    TX_INTERVAL_ACTIVE.max(limit / 3)
}

/// A question to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpProbe {
    pub(super) number: u32,
    pub(super) to: SocketAddr,
    /// The first since it fell quiet: another path is to ask as well.
    pub(super) first: bool,
}

/// Liveness probes of a path over TCP: their destination and their times.
#[derive(Debug)]
pub(super) struct TcpProbes {
    /// Where the last of its subflows led.
    to: Option<SocketAddr>,
    last: Option<Time>,
    not_before: Time,
    wait: Duration,
    /// The path that asks as well, and its number there.
    control: Option<(IpAddr, u32)>,
    /// When such a one was answered last.
    vouched: Option<Time>,
}

impl TcpProbes {
    pub(super) fn new() -> Self {
        Self {
            to: None,
            last: None,
            not_before: Time::ZERO,
            wait: WAIT,
            control: None,
            vouched: None,
        }
    }

    /// Takes where a subflow leads.
    pub(super) fn leads(&mut self, to: Option<SocketAddr>) {
        if to.is_some() && to != self.to {
            self.to = to;
            self.forget();
        }
    }

    /// Forgets the probe over another path, and that it was answered.
    pub(super) fn forget(&mut self) {
        self.control = None;
        self.vouched = None;
    }

    /// When the other end answered on another path, about this silence.
    pub(super) fn vouched(&self) -> Option<Time> {
        self.vouched
    }

    /// The path is used.
    pub(super) fn used(&mut self, now: Time) {
        self.not_before = self.not_before.min(now + WAIT_USED);
    }

    /// `by` asks as well.
    pub(super) fn controlled(&mut self, by: IpAddr, number: u32) {
        self.control = Some((by, number));
    }

    /// An answer came to `by`; says whether it is the one that was waited for.
    pub(super) fn heard(&mut self, by: IpAddr, number: u32, now: Time) -> bool {
        let is_it = self.control == Some((by, number));
        if is_it {
            self.vouched = Some(now);
        }
        is_it
    }

    /// The path that was asked lives.
    pub(super) fn lived(&mut self, at: Time, idle: bool) {
        self.forget();
        let most = if idle { WAIT_IDLE } else { WAIT_USED };
        self.not_before = at + self.wait.min(most);
        self.wait = (self.wait * 2).min(most);
    }

    /// The other path has no answer either: these questions tell nothing.
    pub(super) fn in_vain(&mut self, now: Time) {
        self.forget();
        self.not_before = now + CALM;
    }

    /// The path is used again after it was dead.
    pub(super) fn returned(&mut self) {
        self.forget();
        self.not_before = Time::ZERO;
        self.wait = WAIT;
    }

    /// Where to ask, now.
    pub(super) fn ask(&mut self, now: Time) -> Option<SocketAddr> {
        let to = self.to?;
        if self.last.is_none_or(|t| now.since(t) > CALM) {
            self.wait = WAIT;
        }
        self.last = Some(now);
        Some(to)
    }

    /// When to ask of a path without a sign of life since `life` that is dead after `limit`,
    /// three round trips and a margin; `asked` since then, or not yet. Two of the questions
    /// can be answered in time.
    pub(super) fn due(&self, life: Time, limit: Duration, asked: bool) -> Time {
        match (self.to, self.last) {
            (None, _) => Time::MAX,
            (_, Some(last)) if asked => last + limit / 6,
            _ => self.not_before.max(life + first_tcp_probe(limit)),
        }
    }

    /// When to ask of a path that is dead `since` then, and has answered or not.
    pub(super) fn due_back(&self, since: Time, answered: bool) -> Time {
        let (Some(_), Some(_), Some(last)) = (self.to, self.vouched, self.last) else {
            return Time::MAX;
        };
        last + match last.since(since) < FAST_RECOVERY_FOR {
            _ if answered => AT_ONCE,
            true => SOON,
            false => LATER,
        }
    }
}
