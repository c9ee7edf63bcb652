//! State of the loop in the words of the control API.

use std::collections::BTreeMap;

use braid_api::{AccessControl, ControlStatus};
use braid_core::Time;
use braid_core::control::{AccessSnapshot, LimitedBy};

use super::Inner;

impl Inner {
    pub(super) fn report(&mut self, at: Time) -> ControlStatus {
        let names: Vec<String> = self.control.snapshot().accesses.keys().cloned().collect();
        let probes = names.into_iter().map(|n| (self.probes(&n, at), n));
        let mut probes: BTreeMap<_, _> = probes.map(|(p, n)| (n, p)).collect();
        let snapshot = self.control.snapshot();
        let decided = self.decided();
        let access = |(name, a): (&String, &AccessSnapshot)| {
            let d = a.directions.get(self.direction);
            let estimate = d.estimate.as_ref();
            AccessControl {
                name: name.clone(),
                weight: decided.as_ref().and_then(|d| d.weights.get(name).copied()),
                rests: decided.as_ref().is_some_and(|d| d.resting.contains(name)),
                capacity_mbps: estimate.map(|e| e.capacity.as_mbps()),
                estimator: estimate.map(|e| e.source.clone()),
                age_ms: estimate.map(|e| millis(at, e.at)),
                at_least: estimate.is_some_and(|e| e.at_least),
                rate_mbps: d.activity.map(|a| a.rate.as_mbps()),
                limited_by: d.activity.map(|a| word(a.limited_by).to_owned()),
                probe: probes.remove(name).flatten(),
            }
        };
        let decision = self.decision.as_ref().filter(|_| self.decides);
        ControlStatus {
            t_ns: at.as_nanos(),
            policy: self.settings.policy.name.clone(),
            direction: self.direction.to_string(),
            accesses: snapshot.accesses.iter().map(access).collect(),
            decided_ms: decision.map(|d| millis(at, d.at)),
            why: decision.map(|d| d.steering.why.clone()),
        }
    }
}

fn millis(now: Time, then: Time) -> u64 {
    u64::try_from(now.since(then).as_millis()).unwrap_or(u64::MAX)
}

/// Returns the word that journals have for an obstacle.
const fn word(limited_by: LimitedBy) -> &'static str {
    match limited_by {
        LimitedBy::Nothing => "nothing",
        LimitedBy::Scheduler => "scheduler",
        LimitedBy::PeerWindow => "peer-window",
        LimitedBy::SlowStart => "slow-start",
        LimitedBy::Application => "application",
    }
}
