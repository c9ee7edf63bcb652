//! Round-trip times and losses of paths, for the thresholds of classes: also of those paths that carry
//! nothing, which are asked for that.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use braid_core::Time;
use braid_core::sched::{LossShare, Measured, PathView};
use noq_proto::Connection as Quic;

use super::path_set::PathSet;
use crate::congestion::CongestionSet;
use crate::lane::Lane;

/// Interval at which paths are looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// Age at which a round-trip time of the lane says nothing of the path any more.
const STALE: Duration = Duration::from_secs(1);
/// Interval of pings on a path that is asked.
const ASK: Duration = Duration::from_millis(200);

/// One path.
#[derive(Debug)]
struct Watched {
    loss: LossShare,
    /// Round-trip time of the lane, and when that was another.
    lane: Duration,
    changed: Instant,
    /// Round-trip time by which thresholds go.
    rtt: Duration,
    asked: Option<Instant>,
}

/// Paths by their numbers, while classes have thresholds.
#[derive(Debug, Default)]
pub(super) struct PathWatch {
    paths: BTreeMap<u32, Watched>,
    at: Option<Instant>,
}

impl PathWatch {
    /// Looks at the paths, if it is time. Has those pinged whose round-trip time keeps them from
    /// returning, as `lets_return` says, and is not known any more.
    pub(super) fn look(
        &mut self,
        paths: &mut PathSet,
        congestion: &CongestionSet,
        (quic, lane): (&mut Quic, &Lane),
        lets_return: impl Fn(Duration) -> bool,
        (time, now): (Time, Instant),
    ) {
        if self.at.is_some_and(|t| now < t + INTERVAL) {
            return;
        }
        self.at = Some(now);
        self.paths
            .retain(|n, _| paths.iter().any(|p| p.number == *n));
        // The library asks the controllers for what it tells of a path, and they take the lock.
        let all: Vec<Duration> = {
            let slots = congestion.lock();
            paths.iter().map(|p| slots[p.slot].srtt).collect()
        };
        for (p, of_quic) in paths.iter_mut().zip(all) {
            let Some(stats) = quic.path_stats(p.id) else {
                continue;
            };
            let (sent, lost) = (stats.sent_packets, stats.lost_packets);
            let of_lane = lane.paths().rtt(p.number).map_or(of_quic, |(rtt, _)| rtt);
            let watched = self.paths.entry(p.number).or_insert_with(|| Watched {
                loss: LossShare::new(sent, lost, time),
                lane: of_lane,
                changed: now,
                rtt: of_lane,
                asked: None,
            });
            watched.loss.update(sent, lost, time);
            if watched.lane != of_lane {
                (watched.lane, watched.changed) = (of_lane, now);
            }
            let is_stale = now > watched.changed + STALE;
            watched.rtt = if is_stale { of_quic } else { of_lane };
            let is_due = watched.asked.is_none_or(|t| now >= t + ASK);
            if is_stale && is_due && p.established && !p.held && !lets_return(watched.rtt) {
                watched.asked = Some(now);
                p.ping.ping_now(now);
            }
        }
    }

    /// Returns what thresholds go by of a path.
    pub(super) fn measured(&self, path: &PathView) -> Measured {
        let watched = self.paths.get(&path.id);
        watched.map_or((path.srtt, 0.0), |w| (w.rtt, w.loss.share()))
    }
}
