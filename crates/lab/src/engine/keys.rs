//! Keys of a case that several engines read or refuse.

use std::time::Duration;

use braid_api::config::Policy;
use braid_core::sched::WrrMode;
use serde_spanned::Spanned;

use crate::scenario::raw::RawCase;
use crate::scenario::{Expect, Problem, unknown};

/// Refusal of what other engines lack.
pub(super) const ONLY_MPQUIC: &str = "only engine = \"mpquic\" has this";

/// A modem has a new measurement some ten times a second at most.
const LEAST_LOOK: Duration = Duration::from_millis(100);

/// Refuses the keys of round robin.
pub(super) fn round_robin(raw: &RawCase, refusal: &str) -> Result<(), Problem> {
    let mode = raw.wrr_mode.as_ref().map(Spanned::span);
    match mode.or(raw.num_segments.as_ref().map(Spanned::span)) {
        Some(span) => Err(Problem::at(span, refusal)),
        None => Ok(()),
    }
}

/// Refuses the keys of `minrtt`.
pub(super) fn minrtt(raw: &RawCase, refusal: &str) -> Result<(), Problem> {
    match raw.opportunistic.as_ref().or(raw.penalise.as_ref()) {
        Some(given) => Err(Problem::at(given.span(), refusal)),
        None => Ok(()),
    }
}

/// Reads the mode of round robin.
pub(crate) fn wrr_mode(given: &Spanned<String>) -> Result<WrrMode, Problem> {
    let all = [WrrMode::Strict, WrrMode::WorkConserving];
    let found = all.into_iter().find(|m| m.as_str() == given.get_ref());
    found.ok_or_else(|| unknown(given, "mode", all.map(WrrMode::as_str)))
}

/// Reads a policy.
///
/// # Errors
/// No such policy.
pub(crate) fn policy(given: &Spanned<String>) -> Result<Policy, Problem> {
    let found = Policy::ALL
        .into_iter()
        .find(|p| p.as_str() == given.get_ref());
    found.ok_or_else(|| unknown(given, "policy", Policy::ALL.map(Policy::as_str)))
}

/// Reads the policy of a case.
///
/// # Errors
/// No such policy.
pub(crate) fn policy_of(raw: &RawCase) -> Result<Policy, Problem> {
    let given = raw.policy.as_ref().map(policy).transpose();
    given.map(Option::unwrap_or_default)
}

/// Refuses what a device expects, where nobody goes by it.
pub(super) fn nothing_expected(raw: &RawCase, refusal: &str) -> Result<(), Problem> {
    let expect = raw.expect.as_ref().or(raw.expect_error_db.as_ref());
    let every = raw.expect_every.as_ref().map(Spanned::span);
    match expect.map(Spanned::span).or(every) {
        Some(span) => Err(Problem::at(span, refusal)),
        None => Ok(()),
    }
}

/// Refuses the keys of Multipath QUIC: other engines have no lanes.
pub(super) fn mpquic(raw: &RawCase) -> Result<(), Problem> {
    let lane = raw.lane.as_ref().map(Spanned::span);
    let own = [&raw.reinject, &raw.resume].map(|key| key.as_ref().map(Spanned::span));
    let acks = raw.acks.as_ref().map(Spanned::span);
    let window = raw.send_window.as_ref().map(Spanned::span);
    let own = own.into_iter().chain([acks, window]).flatten();
    match lane.into_iter().chain(own).next() {
        Some(span) => Err(Problem::at(span, ONLY_MPQUIC)),
        None => Ok(()),
    }
}

/// Reads the expectation that the device has of its accesses.
pub(super) fn expect(raw: &RawCase, seed: u64) -> Result<Option<Expect>, Problem> {
    let Some(given) = &raw.expect else {
        let error = raw.expect_error_db.as_ref().map(Spanned::span);
        let every = raw.expect_every.as_ref().map(Spanned::span);
        return match error.or(every) {
            Some(span) => Err(Problem::at(
                span,
                "this says how the device looks at what it expects: it needs `expect`",
            )),
            None => Ok(None),
        };
    };
    let factor = *given.get_ref();
    if !(factor > 0.0 && factor <= 100.0) {
        let what = "expected a factor above 0, and of at most 100";
        return Err(Problem::at(given.span(), what));
    }
    let error_db = raw.expect_error_db.as_ref().map_or(0.0, |e| *e.get_ref());
    let every = raw.expect_every.as_ref();
    if let Some(given) = every.filter(|e| e.get_ref().0 < LEAST_LOOK) {
        let what = format!("expected {LEAST_LOOK:?} or more");
        return Err(Problem::at(given.span(), what));
    }
    match &raw.expect_error_db {
        Some(error) if !(0.0..=20.0).contains(&error_db) => {
            Err(Problem::at(error.span(), "expected 0 to 20 dB"))
        }
        _ => Ok(Some(Expect {
            factor,
            error_db,
            seed,
            every: every.map(|e| e.get_ref().0),
        })),
    }
}
