//! Obstacles of paths: what kept a path from delivering more between two samples, from the
//! counters of a socket or of a path of Multipath QUIC.

use std::time::Duration;

use braid_core::control::LimitedBy;
use braid_mptcp::diag::TcpSocket;

/// Growth of the rate in slow start; less means that the path is full, as BBR has it
/// (draft-cardwell-ccwg-bbr, "Startup").
const GROWTH: f64 = 1.25;
/// Round trips with less growth after which the path counts as full.
const ROUNDS: u8 = 2;
/// Time without data after which a path begins anew: congestion control forgets its window.
const RESTART: Duration = Duration::from_secs(1);

/// Counters of one path that tell what limits it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Evidence {
    /// Subflow of Multipath TCP.
    Tcp(Tcp),
    /// Path of Multipath QUIC.
    Quic {
        /// Time for which its connection had data to send.
        waited: Duration,
        /// Part of it in which the path had no room.
        full: Duration,
    },
}

/// Counters of a subflow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tcp {
    /// Time for which it had data, microseconds.
    pub(crate) busy_us: u64,
    /// Part of it in which the peer's window was full, microseconds.
    pub(crate) peer_us: u64,
    /// Whether data waits in its queue, and the last measurement was not short of data.
    pub(crate) waits: bool,
    /// Whether its last measurement was short of data.
    pub(crate) short: bool,
    /// Whether data waits on another subflow of its connection.
    pub(crate) others_wait: bool,
    /// Whether its rate follows from its weight, so that only a queue shows that it is full.
    pub(crate) strict: bool,
    /// Whether a queue stands in front of it.
    pub(crate) queue: bool,
    /// Segments sent again since it began.
    pub(crate) again: u32,
}

impl Tcp {
    /// Reads a subflow; `strict`: its pacing rate keeps the ratio of the weights
    /// (`docs/mptcp.md`, weights).
    pub(crate) fn of(s: &TcpSocket, strict: bool, others_wait: bool) -> Self {
        let t = &s.tcp;
        // Half of the queue for which weights are searched (`wrr_path.h`): on the average it is
        // drained for half of the time.
        let queue = t.min_rtt_us / 16 + 2_000;
        Self {
            busy_us: t.busy_us,
            peer_us: t.rwnd_limited_us,
            waits: waits(s),
            short: t.delivery_app_limited,
            others_wait,
            strict,
            queue: t.min_rtt_us != u32::MAX && t.rtt_us > t.min_rtt_us.saturating_add(queue),
            again: t.total_retrans,
        }
    }

    fn limited_by(&self, before: &Self, elapsed: Duration) -> LimitedBy {
        let half = u64::try_from(elapsed.as_micros() / 2).unwrap_or(u64::MAX);
        if self.peer_us.saturating_sub(before.peer_us) > half {
            return LimitedBy::PeerWindow;
        }
        let idle = self.busy_us.saturating_sub(before.busy_us) < half;
        if !self.waits && (idle || self.short) {
            return match self.others_wait {
                true => LimitedBy::Scheduler,
                false => LimitedBy::Application,
            };
        }
        match self.strict && !self.queue && self.again == before.again {
            true => LimitedBy::Scheduler,
            false => LimitedBy::Nothing,
        }
    }
}

/// Whether data waits on a subflow.
pub(crate) fn waits(s: &TcpSocket) -> bool {
    s.tcp.notsent_bytes > 0 && !s.tcp.delivery_app_limited
}

/// Returns what limited a path for `elapsed` between two readings, slow start apart.
pub(crate) fn limited_by(before: &Evidence, now: &Evidence, elapsed: Duration) -> LimitedBy {
    match (before, now) {
        (Evidence::Tcp(before), Evidence::Tcp(now)) => now.limited_by(before, elapsed),
        (
            Evidence::Quic {
                waited: w0,
                full: f0,
            },
            Evidence::Quic {
                waited: w1,
                full: f1,
            },
        ) => {
            let (waited, full) = (w1.saturating_sub(*w0), f1.saturating_sub(*f0));
            match () {
                () if waited < elapsed / 2 => LimitedBy::Application,
                () if full < waited / 2 => LimitedBy::Scheduler,
                () => LimitedBy::Nothing,
            }
        }
        // A path does not change its engine.
        _ => LimitedBy::Application,
    }
}

/// Slow start of one path, as its delivery rate tells it for any congestion control.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowStart {
    best: f64,
    stalls: u8,
    over: bool,
    /// Bytes and time of the round trip under way.
    bytes: u64,
    elapsed: Duration,
    /// Time without data.
    idle: Duration,
}

impl SlowStart {
    /// Takes in a sample; returns what limited it, slow start included.
    pub(crate) fn apply(
        &mut self,
        limited: LimitedBy,
        bytes: u64,
        elapsed: Duration,
        rtt: Duration,
    ) -> LimitedBy {
        if limited == LimitedBy::Application {
            self.idle += elapsed;
            if self.idle >= RESTART {
                *self = Self {
                    idle: self.idle,
                    ..Self::default()
                };
            }
            return limited;
        }
        self.idle = Duration::ZERO;
        if limited != LimitedBy::Nothing || self.over {
            return limited;
        }
        self.bytes += bytes;
        self.elapsed += elapsed;
        if self.elapsed >= rtt {
            let rate = self.bytes as f64 / self.elapsed.as_secs_f64();
            match rate > GROWTH * self.best {
                true => (self.best, self.stalls) = (rate, 0),
                false => self.stalls += 1,
            }
            (self.bytes, self.elapsed) = (0, Duration::ZERO);
            self.over = self.stalls >= ROUNDS;
        }
        match self.over {
            true => LimitedBy::Nothing,
            false => LimitedBy::SlowStart,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_mptcp::socket::TcpInfo;

    const ROUND: Duration = Duration::from_millis(100);

    /// A subflow with data in its queue all the time, and the same one a round later.
    fn socket(later: bool) -> TcpSocket {
        TcpSocket {
            local: "10.77.1.2:1".parse().unwrap(),
            remote: "10.77.0.1:80".parse().unwrap(),
            state: 1,
            inode: 0,
            cookie: 0,
            tcp: TcpInfo {
                busy_us: if later { 100_000 } else { 0 },
                notsent_bytes: 20_000,
                rtt_us: 40_000,
                min_rtt_us: 20_000,
                ..TcpInfo::default()
            },
            congestion_control: "cubic".into(),
            queued_bytes: 0,
            send_buffer_bytes: 0,
            receive_buffer_bytes: 0,
            ulp: None,
        }
    }

    fn limited(change: impl Fn(&mut TcpInfo), strict: bool, others_wait: bool) -> LimitedBy {
        let mut now = socket(true);
        change(&mut now.tcp);
        let of = |s: &TcpSocket| Evidence::Tcp(Tcp::of(s, strict, others_wait));
        limited_by(&of(&socket(false)), &of(&now), ROUND)
    }

    #[test]
    fn a_subflow_tells_what_limits_it() {
        use LimitedBy::{Application, Nothing, PeerWindow, Scheduler};
        assert_eq!(limited(|_| {}, false, false), Nothing);
        assert_eq!(
            limited(|t| t.rwnd_limited_us = 70_000, false, false),
            PeerWindow
        );
        let idle = |t: &mut TcpInfo| (t.notsent_bytes, t.busy_us) = (0, 30_000);
        assert_eq!(limited(idle, false, false), Application);
        assert_eq!(limited(idle, false, true), Scheduler);
        // Paced out all the time, and short of data all the same.
        let short = |t: &mut TcpInfo| t.delivery_app_limited = true;
        assert_eq!(limited(short, false, false), Application);
        // By weights: the one in front of which a queue stands limits the others.
        assert_eq!(limited(|_| {}, true, true), Nothing);
        assert_eq!(limited(|t| t.rtt_us = 22_000, true, true), Scheduler);
        let lost = |t: &mut TcpInfo| (t.rtt_us, t.total_retrans) = (22_000, 3);
        assert_eq!(limited(lost, true, true), Nothing);
        // A rate that each path searches for itself is the path's own.
        assert_eq!(limited(|t| t.rtt_us = 22_000, false, true), Nothing);
    }

    #[test]
    fn a_path_of_quic_tells_what_limits_it() {
        let of = |waited, full| Evidence::Quic {
            waited: Duration::from_millis(waited),
            full: Duration::from_millis(full),
        };
        let limited =
            |waited: u64, full: u64| limited_by(&of(7, 5), &of(7 + waited, 5 + full), ROUND);
        assert_eq!(limited(40, 40), LimitedBy::Application);
        assert_eq!(limited(95, 20), LimitedBy::Scheduler);
        assert_eq!(limited(95, 80), LimitedBy::Nothing);
    }

    #[test]
    fn slow_start_ends_when_the_rate_stops_growing() {
        let mut start = SlowStart::default();
        let rtt = Duration::from_millis(30);
        let mut seen = |limited, bytes| start.apply(limited, bytes, ROUND, rtt);
        for bytes in [10_000, 20_000, 40_000, 41_000] {
            assert_eq!(seen(LimitedBy::Nothing, bytes), LimitedBy::SlowStart);
        }
        assert_eq!(seen(LimitedBy::Nothing, 39_000), LimitedBy::Nothing);
        assert_eq!(seen(LimitedBy::Scheduler, 10_000), LimitedBy::Scheduler);
        for _ in 0..9 {
            assert_eq!(seen(LimitedBy::Application, 0), LimitedBy::Application);
        }
        assert_eq!(seen(LimitedBy::Nothing, 39_000), LimitedBy::Nothing);
        // After a second without data it begins anew.
        for _ in 0..10 {
            seen(LimitedBy::Application, 0);
        }
        assert_eq!(seen(LimitedBy::Nothing, 39_000), LimitedBy::SlowStart);
    }

    #[test]
    fn rounds_of_a_long_path_are_round_trips() {
        let mut start = SlowStart::default();
        let rtt = Duration::from_millis(300);
        let mut over = 0;
        while start.apply(LimitedBy::Nothing, 10_000, ROUND, rtt) == LimitedBy::SlowStart {
            over += 1;
        }
        assert_eq!(over, 8, "three round trips of three samples");
    }
}
