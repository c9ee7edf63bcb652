//! The keys of a case with `engine = "mpquic"`.

use std::time::Duration;

use braid_core::api::{Acks, Lane, WrrMode};
use braid_mpquic::{Error, Options, Steering, congestion};
use serde_spanned::Spanned;

use super::build::unknown;
use super::case::{minrtt_keys, wrr_mode};
use super::diagnostic::Problem;
use super::raw::RawCase;
use super::{Engine, Expect, Traffic};

/// A modem has a new measurement some ten times a second at most.
const LEAST_LOOK: Duration = Duration::from_millis(100);

/// The engine, after all that a case says about it has been checked.
pub(super) fn engine(raw: &RawCase) -> Result<Engine, Problem> {
    if let Some(a) = &raw.access {
        return Err(Problem::at(
            a.span(),
            "Multipath QUIC uses all accesses: to restrict it, list `accesses = [...]`",
        ));
    }
    if let Some(n) = &raw.num_segments {
        return Err(Problem::at(
            n.span(),
            "Multipath QUIC's round robin takes turns of one packet",
        ));
    }
    minrtt_keys(raw, "only the kernel's \"minrtt\" has this")?;
    let lane = word(&raw.lane, "lane", Lane::ALL, Lane::as_str)?;
    if let Some(cc) = &raw.cc
        && !congestion::names().any(|n| n == cc.get_ref())
    {
        return Err(unknown(cc, "congestion control", congestion::names()));
    }
    let name = raw.scheduler.as_ref().map_or("minrtt", |s| s.get_ref());
    if !matches!(name, "rr" | "wrr")
        && let Some(mode) = &raw.wrr_mode
    {
        let refusal = "only the schedulers \"rr\" and \"wrr\" have this";
        return Err(Problem::at(mode.span(), refusal));
    }
    if name != "wrr"
        && let Some(w) = &raw.weights
    {
        return Err(Problem::at(
            w.span(),
            "only the scheduler \"wrr\" has weights: add scheduler = \"wrr\"",
        ));
    }
    let mode = raw.wrr_mode.as_ref().map(wrr_mode).transpose()?;
    let steering = Steering {
        scheduler: name.to_owned(),
        wrr_mode: mode.unwrap_or(WrrMode::WorkConserving),
        reinject: true,
    };
    if let (Err(e), Some(given)) = (steering.make(lane), &raw.scheduler) {
        return Err(match e {
            Error::UnknownScheduler { .. } => {
                let known = braid_core::sched::SCHEDULERS.iter().map(|(n, _)| *n);
                unknown(given, "scheduler", known)
            }
            other => Problem::at(given.span(), other.to_string()),
        });
    }
    if let Some(given) = raw.expect.as_ref().filter(|_| lane == Lane::Stream) {
        return Err(Problem::at(
            given.span(),
            "only on the datagram lane the proxy is told what the device expects",
        ));
    }
    let acks = raw.acks.as_ref().map(Spanned::span);
    let window = raw.send_window.as_ref().map(Spanned::span);
    if let Some(span) = acks.or(window).filter(|_| lane == Lane::Stream) {
        return Err(Problem::at(span, "only the datagram lane has this"));
    }
    let reinject = raw.reinject.as_ref();
    if let Some(given) = reinject.filter(|r| *r.get_ref() && lane == Lane::Stream) {
        return Err(Problem::at(
            given.span(),
            "only the datagram lane sends again what blocks the receiver",
        ));
    }
    Ok(Engine::Mpquic {
        lane,
        reinject: reinject.map_or(lane == Lane::Datagram, |r| *r.get_ref()),
        resume: raw.resume.as_ref().is_none_or(|r| *r.get_ref()),
        acks: word(
            &raw.acks,
            "way of acknowledgements",
            Acks::ALL,
            Acks::as_str,
        )?,
        send_window: send_window(raw)?,
    })
}

/// One of the words that there are.
fn word<T: Copy + Default, const N: usize>(
    given: &Option<Spanned<String>>,
    what: &str,
    all: [T; N],
    as_str: impl Fn(T) -> &'static str,
) -> Result<T, Problem> {
    let Some(given) = given else {
        return Ok(T::default());
    };
    let found = all.into_iter().find(|t| as_str(*t) == given.get_ref());
    found.ok_or_else(|| unknown(given, what, all.map(as_str)))
}

fn send_window(raw: &RawCase) -> Result<Option<u64>, Problem> {
    match &raw.send_window {
        Some(given) if given.get_ref().0.0 < Options::LEAST_SEND_WINDOW => {
            let what = format!("expected {} B or more", Options::LEAST_SEND_WINDOW);
            Err(Problem::at(given.span(), what))
        }
        given => Ok(given.as_ref().map(|w| w.get_ref().0.0)),
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

/// Other engines have no lanes.
pub(super) fn none(raw: &RawCase) -> Result<(), Problem> {
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

/// Rejects traffic that Multipath QUIC cannot carry before there is a tunnel.
pub(super) fn traffic(engine: &Engine, traffic: &Traffic, raw: &RawCase) -> Result<(), Problem> {
    if !matches!(engine, Engine::Mpquic { .. }) {
        return Ok(());
    }
    let why = match traffic {
        Traffic::Command(_) => {
            "a command of yours would have to run in a tunnel over Multipath QUIC, which there is \
             not yet: use engine = \"mptcp\", or one of Braid's own kinds of traffic"
        }
        t if t.is_udp() => {
            "UDP would have to run in a tunnel over Multipath QUIC, which there is not yet: use \
             transport = \"stream\", or engine = \"tcp\" with the access that the datagrams take"
        }
        _ => return Ok(()),
    };
    Err(Problem::at(raw.traffic.span(), why))
}
