//! Losses on streams of QUIC, which the library alone can send again.
//!
//! It waits for what was overtaken as long as reordering may ever take ([`PATIENCE`]), as it
//! cannot learn how long that is. Where less is known to do ([`crate::reordering`]), it is told
//! the time at which it would take such a packet for lost, somewhat before. Its other timers are
//! that early then, too: what it sends for them, such as an acknowledgement or a probe, does no
//! harm.

use std::time::{Duration, Instant};

use noq_proto::Connection as Quic;

use super::path_set::{Path, PathSet};
use crate::congestion::{CongestionSet, Overtaken};
use crate::transport::PATIENCE;

/// The library counts in fractions that are not exact.
const TICK: Duration = Duration::from_micros(10);

/// Returns when the next packet that was overtaken is to be retransmitted.
pub(super) fn due(paths: &PathSet, congestion: &CongestionSet) -> Option<Instant> {
    let slots = congestion.lock();
    let all = paths.iter().filter_map(|p| slots[p.slot].overtaken);
    all.map(|o| o.sent + o.limit).min()
}

/// Returns the time after which the library takes it for lost.
fn patience(path: &Path, o: &Overtaken, quic: &Quic) -> Duration {
    let smoothed = quic.rtt(path.id).unwrap_or_default();
    smoothed.max(o.latest).mul_f32(PATIENCE) + TICK
}

/// Makes the library retransmit what is lost by now.
pub(super) fn retransmit(
    paths: &PathSet,
    congestion: &CongestionSet,
    quic: &mut Quic,
    now: Instant,
) {
    if due(paths, congestion).is_none_or(|t| t > now) {
        return;
    }
    let overtaken = |p: &Path| congestion.lock()[p.slot].overtaken;
    let all = paths.iter().filter_map(|p| {
        let o = overtaken(p)?;
        Some((p.slot, o, patience(p, &o, quic)))
    });
    let all: Vec<(usize, Overtaken, Duration)> = all.collect();
    for (slot, o, patience) in all.iter().filter(|(_, o, _)| o.sent + o.limit <= now) {
        let Some(until) = now.checked_sub(o.limit) else {
            continue;
        };
        let at = until + *patience;
        congestion.lock()[*slot].overtaken = None;
        // What may yet arrive on another path would be lost with it: it is tried again
        // with the next acknowledgement.
        let early = |o: &Overtaken, patience| o.sent + patience <= at && o.sent + o.limit > now;
        if all.iter().any(|(s, o, p)| s != slot && early(o, *p)) {
            continue;
        }
        congestion.lock()[*slot].asked = Some(until);
        quic.handle_timeout(at.max(now));
    }
}
