//! Keys of a case that several engines read or refuse.

use braid_core::sched::WrrMode;
use serde_spanned::Spanned;

use crate::scenario::raw::RawCase;
use crate::scenario::{Problem, unknown};

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

/// Refuses the keys of Multipath QUIC: other engines have no lanes.
pub(super) fn mpquic(raw: &RawCase) -> Result<(), Problem> {
    let lane = raw.lane.as_ref().map(Spanned::span);
    let expect = raw.expect.as_ref().or(raw.expect_error_db.as_ref());
    let every = raw.expect_every.as_ref().map(Spanned::span);
    let expect = expect.map(Spanned::span).or(every);
    let own = [&raw.reinject, &raw.resume].map(|key| key.as_ref().map(Spanned::span));
    let acks = raw.acks.as_ref().map(Spanned::span);
    let window = raw.send_window.as_ref().map(Spanned::span);
    let own = own.into_iter().chain([acks, window]).flatten();
    match lane.into_iter().chain(expect).chain(own).next() {
        Some(span) => Err(Problem::at(span, "only engine = \"mpquic\" has this")),
        None => Ok(()),
    }
}
