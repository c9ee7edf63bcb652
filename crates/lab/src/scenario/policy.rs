//! Policies of cases, which decide weights, and the estimators that they go by.

use std::time::Duration;

use braid_api::Role;
use braid_api::config::{Estimator, Policy, Transfers, WEIGHTED};
use braid_core::Rate;
use braid_radio::model::rate_at;
use serde_spanned::Spanned;

use super::build::{Builder, unknown};
use super::diagnostic::Problem;
use super::raw::{RawCase, RawProbes};
use super::text::Either;
use super::{AccessSetup, Case, Direction, Traffic};
use crate::engine::{self, keys};

/// Bytes that probes may move over an access in an hour, a day or a month: no run ends by them.
const NO_BUDGET: u64 = 1 << 50;

/// Reads the estimator of an access.
///
/// # Errors
/// No such estimator.
pub(super) fn estimator(given: Option<&Spanned<String>>) -> Result<Estimator, Problem> {
    let Some(given) = given else {
        return Ok(Estimator::default());
    };
    let mut all = Estimator::ALL.into_iter();
    let found = all.find(|e| e.as_str() == given.get_ref());
    found.ok_or_else(|| unknown(given, "estimator", Estimator::ALL.map(Estimator::as_str)))
}

impl Builder<'_> {
    /// Returns a case with what its policy implies, and the policy: that of the scenario where
    /// the case names none, and the scheduler that follows its weights.
    ///
    /// # Errors
    /// No such policy, or something that no policy's weights reach.
    pub(super) fn governed(&self, raw: &RawCase) -> Result<(RawCase, Policy), Problem> {
        let mut raw = raw.clone();
        let steered = engine::has_weights(raw.engine.get_ref());
        if raw.policy.is_none() && steered {
            raw.policy.clone_from(&self.raw.policy);
        }
        let policy = keys::policy_of(&raw)?;
        let Some(given) = raw.policy.as_ref().filter(|_| policy.decides() && steered) else {
            return Ok((raw, policy));
        };
        let name = policy.as_str();
        match &raw.scheduler {
            None => raw.scheduler = Some(Spanned::new(given.span(), WEIGHTED.to_owned())),
            Some(other) if other.get_ref() != WEIGHTED => {
                let m = format!(
                    "policy \"{name}\" sets weights, which scheduler \"{}\" does not follow: \
                     write scheduler = \"{WEIGHTED}\" or leave it out, or policy = \"static\" \
                     in this case",
                    other.get_ref()
                );
                return Err(Problem::at(other.span(), m));
            }
            Some(_) => {}
        }
        if let Some(plan) = &raw.weights
            && let Either::Short(_) = plan.get_ref()
        {
            let m = format!(
                "policy \"{name}\" decides the weights: expected a table, for accesses of which \
                 nothing is known, or policy = \"static\" in this case"
            );
            return Err(Problem::at(plan.span(), m));
        }
        Ok((raw, policy))
    }

    /// Sets the estimator of a case at its accesses, and checks that there is something to
    /// estimate by.
    pub(super) fn estimators(
        &self,
        raw: &RawCase,
        policy: Policy,
        traffic: &Traffic,
        accesses: &mut [AccessSetup],
    ) -> Result<(), Problem> {
        if let Some(given) = &raw.estimator {
            let estimator = estimator(Some(given))?;
            if !policy.decides() {
                let m = "a policy goes by estimates, and this case has none that decides: add \
                         policy = \"capacity\"";
                return Err(Problem::at(given.span(), m));
            }
            accesses.iter_mut().for_each(|a| a.estimator = estimator);
        }
        if !policy.decides() {
            // Those of the accesses are for other cases.
            let none = Estimator::default();
            accesses.iter_mut().for_each(|a| a.estimator = none);
        }
        if policy.rests() && accesses.iter().all(|a| a.power.is_none()) {
            let m = format!(
                "policy \"{}\" goes by the power models of radios: give accesses that may rest power = \
                 \"SET\" (braid trace energy --list)",
                policy.as_str()
            );
            let case = raw.policy.as_ref().map_or(raw.name.span(), Spanned::span);
            return Err(Problem::at(case, m));
        }
        for access in accesses.iter().filter(|_| policy.decides()) {
            if access.estimator != Estimator::Expected {
                continue;
            }
            let at_access = self.raw.accesses().get(&access.name);
            let at_access = at_access.and_then(|a| a.estimator.as_ref());
            let Some(given) = raw.estimator.as_ref().or(at_access) else {
                continue;
            };
            let at = |m: String| Err(Problem::at(given.span(), m));
            if traffic.direction() == Direction::Down {
                return at(format!(
                    "case \"{}\" is a download, about which the proxy decides, and it goes by \
                     the traffic: expected estimator = \"passive\", or traffic with direction = \
                     \"up\" or \"both\"",
                    raw.name.get_ref()
                ));
            }
            if raw.expect.is_none() {
                return at(format!(
                    "case \"{}\" does not say what the device expects of its accesses: add \
                     `expect`",
                    raw.name.get_ref()
                ));
            }
            let first = rate_at(&access.up.rate, Duration::ZERO);
            if first.is_none_or(|r| r == Rate::ZERO) {
                return at(format!(
                    "access \"{}\": the uplink has no rate at the start that the device could \
                     expect: expected estimator = \"passive\"",
                    access.name
                ));
            }
        }
        Ok(())
    }

    /// Refuses an estimator of an access where no policy decides in any of `cases`.
    pub(super) fn estimators_count(&self, cases: &[Case]) -> Result<(), Problem> {
        let mut given = self.raw.accesses().values();
        let given = given.find_map(|a| a.estimator.as_ref());
        match given {
            Some(given) if !cases.iter().any(|c| c.policy.decides()) => {
                let m = "a policy goes by estimates, and no case has one that decides: add \
                         policy = \"capacity\" to a case, or at the top";
                Err(Problem::at(given.span(), m))
            }
            _ => Ok(()),
        }
    }
}

/// Returns the transfers that accesses of a case are probed by; `None` where none is.
///
/// # Errors
/// A value out of range, or no access that is probed.
pub(super) fn probes(
    raw: &RawCase,
    accesses: &[AccessSetup],
) -> Result<Option<Transfers>, Problem> {
    let probed = accesses.iter().any(|a| a.estimator == Estimator::Probe);
    let mut transfers = Transfers {
        hour_bytes: NO_BUDGET,
        day_bytes: NO_BUDGET,
        month_bytes: NO_BUDGET,
        ..Transfers::default()
    };
    let Some(given) = &raw.probes else {
        return Ok(probed.then_some(transfers));
    };
    let at = |m: String| Problem::at(given.span(), m);
    if !probed {
        let m = "no access of this case has the estimator \"probe\": add it, or remove `probes`";
        return Err(at(m.to_owned()));
    }
    let RawProbes {
        flows,
        duration,
        interval,
    } = given.get_ref();
    transfers.flows = flows.unwrap_or(transfers.flows);
    transfers.duration = duration.as_ref().map_or(transfers.duration, |d| d.0);
    transfers.interval = interval.as_ref().map_or(transfers.interval, |d| d.0);
    let checked = transfers.check(Role::Device);
    checked.map_err(|e| at(format!("`probes`: {}", e.message)))?;
    Ok(Some(transfers))
}

/// Refuses an expectation that nobody goes by.
pub(super) fn check_expectation(
    raw: &RawCase,
    told: bool,
    traffic: &Traffic,
) -> Result<(), Problem> {
    match &raw.expect {
        Some(given) if !told && traffic.direction() == Direction::Down => {
            let m = "the device of Multipath TCP does not tell the proxy, which decides about \
                     downloads, what it expects: expected traffic with direction = \"up\" or \
                     \"both\"";
            Err(Problem::at(given.span(), m))
        }
        _ => Ok(()),
    }
}
