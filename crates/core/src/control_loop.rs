//! The loop itself: observations in, decisions out.
//!
//! ```text
//! observe(...)*  all observations of one moment
//! decide(now)    once after them
//! ```
//!
//! The same observations in the same order give the same decisions, so a recorded loop can be
//! replayed ([`crate::replay`]). Probes are ordered beside it, by [`ControlLoop::next_probe`].

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::AccessState;
use crate::Time;
use crate::control::{
    AccessRole, AccessSettings, AccessSnapshot, Activity, Carried, Decision, Direction,
    DirectionSnapshot, Observation, PerDirection, PolicySettings, Request, Settings, Snapshot,
    What,
};
use crate::estimate::{self, DeliveryMeter, ESTIMATORS, Estimator, ProbeOrder, ProbePlan};
use crate::policy::{self, Policy, UnknownPolicy};

/// Error: an observation that the loop cannot take in. It changed nothing.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ControlError {
    /// A configuration names a policy that does not exist.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// A configuration names an estimator that does not exist.
    #[error(
        "access {access}: no estimator is called \"{name}\": expected some of {all}",
        all = ESTIMATORS.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    )]
    Estimator {
        /// Name of the access.
        access: String,
        /// Name that was given.
        name: String,
    },
    /// A weight is below 0, or no number.
    #[error("access {access}: weight {weight} is not 0 or more")]
    Weight {
        /// Name of the access.
        access: String,
        /// Weight that was given.
        weight: f64,
    },
}

/// Control loop of one end.
#[derive(Debug)]
pub struct ControlLoop {
    seed: u64,
    /// Policy that takes the place of the configured one.
    instead: Option<String>,
    policy: Option<(PolicySettings, Box<dyn Policy>)>,
    snapshot: Snapshot,
    accesses: BTreeMap<String, Tracked>,
}

/// Probes of one access at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probes {
    /// Whether the access can carry data.
    pub usable: bool,
    /// Whether the last decision took it out.
    pub off: bool,
    /// Moment of the next probe, budget permitting; absent while none is planned.
    pub due: Option<Time>,
    /// Bytes that probes may still move now, as the budgets of hour, day and month have it.
    pub remaining_bytes: u64,
}

/// Estimators, meters and probes of one access.
#[derive(Debug)]
struct Tracked {
    settings: AccessSettings,
    estimators: Vec<Box<dyn Estimator>>,
    meters: PerDirection<DeliveryMeter>,
    /// Plan of its probes. It stays without the estimator `probe` too: it knows what was spent.
    plan: ProbePlan,
    usable: bool,
    /// Whether the last decision took it out.
    off: bool,
}

impl ControlLoop {
    /// Begins without a configuration; `seed` is that of the device, for the times of probes.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            instead: None,
            policy: None,
            snapshot: Snapshot::default(),
            accesses: BTreeMap::new(),
        }
    }

    /// Runs the policy called `name` whatever the configuration says.
    ///
    /// # Errors
    /// No policy has that name.
    pub fn with_policy(mut self, name: &str) -> Result<Self, UnknownPolicy> {
        policy::by_name(name, &PolicySettings::default())?;
        self.instead = Some(name.to_owned());
        Ok(self)
    }

    /// Returns what is known after the last decision.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Takes in an observation. One about an access that is not configured is ignored: it may
    /// have been on its way when the configuration changed.
    ///
    /// # Errors
    /// A configuration or request that cannot be followed.
    pub fn observe(&mut self, observation: &Observation) -> Result<(), ControlError> {
        let at = observation.at;
        match &observation.what {
            What::Configuration(settings) => self.configure(at, settings)?,
            What::AccessState(change) => {
                if let Some(access) = self.snapshot.accesses.get_mut(&change.access) {
                    access.state = change.state;
                    self.update_usable(at, &change.access);
                }
            }
            What::PathSample(path) => {
                if let Some(tracked) = self.accesses.get_mut(&path.access) {
                    tracked.meters.get_mut(path.direction).on_sample(at, path);
                }
            }
            What::PathGone(path) => {
                if let Some(tracked) = self.accesses.get_mut(&path.access) {
                    tracked.meters.get_mut(path.direction).on_gone(at, path);
                }
            }
            What::ProbeResult(result) => {
                if let Some(tracked) = self.accesses.get_mut(&result.access) {
                    tracked.plan.on_result(at, result);
                    // The access may have been lost while the probe ran.
                    if tracked.usable {
                        let estimators = tracked.estimators.iter_mut();
                        estimators.for_each(|e| e.on_probe(at, result));
                    }
                }
            }
            What::ProbeSpending(spending) => {
                if let Some(tracked) = self.accesses.get_mut(&spending.access) {
                    tracked.plan.on_spending(at, spending);
                }
            }
            What::Request(request) => self.request(at, request)?,
            // For the journal: policies go by the models of the radios.
            What::Power(_) => {}
            What::Carried(carried) => {
                if let Some(access) = self.snapshot.accesses.get_mut(&carried.access) {
                    let rate = carried.rate;
                    access.carried = Some(Carried { at, rate });
                }
            }
        }
        self.snapshot.at = self.snapshot.at.max(at);
        Ok(())
    }

    /// Decides, after all observations of the moment `now`; `None` where the last decision still
    /// holds. A replay calls it once for each moment that has observations, so a recorded loop
    /// must do the same.
    pub fn decide(&mut self, now: Time) -> Option<Decision> {
        self.snapshot.at = self.snapshot.at.max(now);
        for (name, tracked) in &mut self.accesses {
            if let Some(access) = self.snapshot.accesses.get_mut(name) {
                for d in Direction::ALL {
                    tracked.update(d, access.directions.get_mut(d));
                }
            }
        }
        let (_, policy) = self.policy.as_mut()?;
        let steering = policy.decide(now, &self.snapshot)?;
        let decision = Decision {
            at: now,
            policy: policy.name().to_owned(),
            steering,
        };
        for (name, access) in &decision.steering.accesses {
            if let Some(tracked) = self.accesses.get_mut(name) {
                tracked.off = access.role == AccessRole::Off;
                tracked.update_plan(now);
            }
        }
        Some(decision)
    }

    /// Returns the probe to run now, if one is due. One access is probed at a time, because
    /// accesses may share a way further on, and none that traffic fills.
    pub fn next_probe(&mut self, now: Time) -> Option<ProbeOrder> {
        let snapshot = &self.snapshot;
        let plans = self.accesses.iter_mut();
        let plans = plans.map(|(name, t)| (&mut t.plan, snapshot.is_full(name)));
        let mut plans: Vec<(&mut ProbePlan, _)> = plans.collect();
        if plans.iter().any(|(plan, _)| plan.is_running(now)) {
            return None;
        }
        plans.sort_by_key(|(plan, _)| plan.due().unwrap_or(Time::MAX));
        plans
            .into_iter()
            .find_map(|(plan, full)| plan.next(now, full))
    }

    /// Returns when an access is probed next and what that may cost; `None` where it is not
    /// configured or has not the estimator `probe`.
    pub fn probes(&mut self, access: &str, now: Time) -> Option<Probes> {
        let tracked = self.accesses.get_mut(access)?;
        tracked.is_probed().then(|| Probes {
            usable: tracked.usable,
            off: tracked.off,
            due: tracked.plan.due(),
            remaining_bytes: tracked.plan.remaining(now),
        })
    }

    fn configure(&mut self, at: Time, settings: &Settings) -> Result<(), ControlError> {
        let mut policy_settings = settings.policy.clone();
        if let Some(instead) = &self.instead {
            policy_settings.name.clone_from(instead);
        }
        let policy = policy::by_name(&policy_settings.name, &policy_settings)?;
        for (name, access) in &settings.accesses {
            check_weight(name, access.weight)?;
            make_estimators(name, access)?;
        }
        if self
            .policy
            .as_ref()
            .is_none_or(|(s, _)| *s != policy_settings)
        {
            self.policy = Some((policy_settings, policy));
        }
        self.accesses
            .retain(|name, _| settings.accesses.contains_key(name));
        self.snapshot
            .accesses
            .retain(|name, _| settings.accesses.contains_key(name));
        for (name, access) in &settings.accesses {
            self.configure_access(at, name, access)?;
        }
        Ok(())
    }

    /// Takes over the settings of an access. It keeps its state and what was measured.
    fn configure_access(
        &mut self,
        at: Time,
        name: &str,
        settings: &AccessSettings,
    ) -> Result<(), ControlError> {
        let before = self.snapshot.accesses.remove(name);
        let (state, directions, carried) = match before {
            Some(before) => (before.state, before.directions, before.carried),
            // Until its state is observed.
            None => (AccessState::Down, PerDirection::default(), None),
        };
        let access = AccessSnapshot {
            kind: settings.kind,
            state,
            enabled: true,
            backup: settings.backup,
            configured_weight: settings.weight,
            requested_weight: None,
            expected: settings.expected,
            directions,
            power: settings.power,
            carried,
        };
        self.snapshot.accesses.insert(name.to_owned(), access);
        let mut tracked = match self.accesses.remove(name) {
            Some(tracked) => tracked,
            None => Tracked {
                settings: settings.clone(),
                estimators: make_estimators(name, settings)?,
                meters: PerDirection::from_fn(|_| DeliveryMeter::new(at)),
                plan: ProbePlan::new(self.seed, name, settings.probe),
                usable: false,
                off: false,
            },
        };
        if tracked.settings.estimators != settings.estimators {
            tracked.estimators = make_estimators(name, settings)?;
        }
        let expected = settings.expected;
        tracked
            .estimators
            .iter_mut()
            .for_each(|e| e.on_expected(at, expected));
        tracked.plan.set_settings(settings.probe);
        tracked.settings = settings.clone();
        tracked.update_plan(at);
        self.accesses.insert(name.to_owned(), tracked);
        self.update_usable(at, name);
        Ok(())
    }

    fn request(&mut self, at: Time, request: &Request) -> Result<(), ControlError> {
        let accesses = &mut self.snapshot.accesses;
        match request {
            Request::Weights(weights) => {
                for (name, weight) in weights {
                    check_weight(name, *weight)?;
                }
                for (name, weight) in weights {
                    if let Some(access) = accesses.get_mut(name) {
                        access.requested_weight = Some(*weight);
                    }
                }
            }
            Request::Backup { access, backup } => {
                if let Some(access) = accesses.get_mut(access) {
                    access.backup = *backup;
                }
            }
            Request::Enabled { access, enabled } => {
                if let Some(snapshot) = accesses.get_mut(access) {
                    snapshot.enabled = *enabled;
                    self.update_usable(at, access);
                }
            }
            Request::Expected { access, expected } => {
                if let Some(snapshot) = accesses.get_mut(access)
                    && let Some(tracked) = self.accesses.get_mut(access)
                {
                    snapshot.expected = *expected;
                    tracked
                        .estimators
                        .iter_mut()
                        .for_each(|e| e.on_expected(at, *expected));
                }
            }
        }
        Ok(())
    }

    /// Follows a change of whether an access can carry data.
    fn update_usable(&mut self, at: Time, name: &str) {
        let Some(access) = self.snapshot.accesses.get(name) else {
            return;
        };
        let Some(tracked) = self.accesses.get_mut(name) else {
            return;
        };
        let usable = access.is_usable();
        if tracked.usable && !usable {
            tracked.estimators.iter_mut().for_each(|e| e.on_lost());
        }
        tracked.usable = usable;
        tracked.update_plan(at);
    }
}

impl Tracked {
    fn is_probed(&self) -> bool {
        self.settings.estimators.iter().any(|e| e == "probe")
    }

    fn update_plan(&mut self, at: Time) {
        let usable = self.is_probed() && self.usable && !self.off;
        self.plan.set_usable(at, usable);
    }

    fn update(&mut self, d: Direction, snapshot: &mut DirectionSnapshot) {
        let meter = self.meters.get_mut(d);
        if let Some(round) = meter.take_round() {
            if self.usable {
                self.estimators
                    .iter_mut()
                    .for_each(|e| e.on_round(d, &round));
            }
            snapshot.activity = Some(Activity {
                rate: round.rate(),
                limited_by: round.limited_by,
            });
        }
        if !self.usable || !meter.has_paths() {
            snapshot.activity = None;
        }
        let estimates = self.estimators.iter();
        let estimates = estimates.filter_map(|e| Some((e.measures(), e.estimate(d)?)));
        snapshot.estimate = estimate::choose(estimates);
    }
}

fn check_weight(access: &str, weight: f64) -> Result<(), ControlError> {
    if weight.is_finite() && weight >= 0.0 {
        return Ok(());
    }
    Err(ControlError::Weight {
        access: access.to_owned(),
        weight,
    })
}

fn make_estimators(
    access: &str,
    settings: &AccessSettings,
) -> Result<Vec<Box<dyn Estimator>>, ControlError> {
    let names = settings.estimators.iter();
    let made = names.map(|name| {
        estimate::by_name(name, settings).ok_or_else(|| ControlError::Estimator {
            access: access.to_owned(),
            name: name.clone(),
        })
    });
    made.collect()
}
