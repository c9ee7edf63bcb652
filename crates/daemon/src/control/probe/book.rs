//! Probes of an end as they were: what they cost and found, and why there are none.

use std::collections::BTreeMap;

use braid_api::{ProbeControl, Role};
use braid_core::control::{AccessRole, Direction, PerDirection, ProbeResult, ProbeSpending, What};
use braid_core::control_loop::Probes;
use braid_core::estimate::{MIN_PROBE_BYTES, ProbeOrder};
use braid_core::{AccessState, Rate, Time};

use super::Plan;
use super::budget::{Ledger, hour};
use crate::control::{Control, Decided, Inner};
use crate::state::lock;

/// Probes of all accesses.
#[derive(Debug, Default)]
pub(in crate::control) struct Book {
    pages: BTreeMap<String, Page>,
    ledger: Option<Ledger>,
    /// Whether there was no traffic for so long that nothing is probed.
    rests: bool,
}

/// Probes of one access.
#[derive(Debug, Default)]
struct Page {
    bytes: u64,
    rates: PerDirection<Option<Rate>>,
    /// Reason why the last probe of a direction has failed.
    failed: PerDirection<Option<String>>,
}

impl Book {
    /// Opens the ledger that the configuration names, if accesses are probed.
    pub(in crate::control) fn follow(&mut self, plan: &Plan) {
        let path = &plan.transfers.ledger;
        match plan.probes() {
            true if self.ledger.as_ref().is_some_and(|l| l.is(path)) => {}
            true => self.ledger = Some(Ledger::open(path)),
            false => self.ledger = None,
        }
    }

    /// Returns what probes have cost so far, for a loop that begins.
    pub(in crate::control) fn spending(&self) -> impl Iterator<Item = What> {
        let all = self.ledger.as_ref().map(|l| l.spending(hour()));
        let all: Vec<ProbeSpending> = all.unwrap_or_default();
        all.into_iter().map(What::ProbeSpending)
    }

    /// Returns why the ledger is not kept.
    pub(in crate::control) fn trouble(&self) -> Option<&str> {
        self.ledger.as_ref().and_then(Ledger::trouble)
    }

    fn add(&mut self, result: &ProbeResult, failed: Option<String>) {
        let page = self.pages.entry(result.access.clone()).or_default();
        page.bytes = page.bytes.saturating_add(result.bytes);
        if result.rate.is_some() {
            *page.rates.get_mut(result.direction) = result.rate;
        }
        *page.failed.get_mut(result.direction) = failed;
        if let Some(ledger) = self.ledger.as_mut().filter(|_| result.bytes > 0) {
            ledger.add(&result.access, hour(), result.bytes);
        }
    }

    /// Returns the probes of an access for the API.
    fn report(
        &self,
        role: Role,
        access: &str,
        probes: Probes,
        off: bool,
        at: Time,
    ) -> ProbeControl {
        let page = self.pages.get(access);
        let mbps = |d| page.and_then(|p| p.rates.get(d).map(Rate::as_mbps));
        let device = role == Role::Device;
        let due = probes.due.filter(|_| device && !self.rests);
        ProbeControl {
            bytes: page.map_or(0, |p| p.bytes),
            left_bytes: device.then_some(probes.remaining_bytes),
            due_ms: due.map(|d| u64::try_from(d.since(at).as_millis()).unwrap_or(u64::MAX)),
            down_mbps: mbps(Direction::Down),
            up_mbps: mbps(Direction::Up),
            note: self.note(page, probes, off, device),
        }
    }

    fn note(&self, page: Option<&Page>, probes: Probes, off: bool, device: bool) -> Option<String> {
        if !device {
            return None;
        }
        let none = |why: &str| Some(format!("not probed: {why}"));
        match () {
            () if off || probes.off => none("the access is off"),
            () if !probes.usable => none("the access carries nothing now"),
            () if probes.remaining_bytes < MIN_PROBE_BYTES => {
                none("the budget is spent (hour_bytes, day_bytes, month_bytes in [control.probe])")
            }
            () if self.rests => none("there is no traffic (rest in [control.probe])"),
            () => {
                let failed = &page?.failed;
                let of = |d: Direction| {
                    let why = failed.get(d).as_ref()?;
                    Some(format!("{d}: {why}"))
                };
                Direction::ALL.into_iter().find_map(of)
            }
        }
    }
}

impl Inner {
    /// Returns the probes of an access for the API; `None` where it has not the estimator.
    pub(in crate::control) fn probes(&mut self, access: &str, at: Time) -> Option<ProbeControl> {
        let probes = self.control.probes(access, at)?;
        let decided = self.decision.as_ref();
        let steering = decided.and_then(|d| d.steering.accesses.get(access));
        let off = steering.is_some_and(|s| s.role == AccessRole::Off);
        Some(self.book.report(self.header.role, access, probes, off, at))
    }
}

impl Control {
    /// Notes whether probes stop for want of traffic.
    pub(super) fn rests(&self, rests: bool) {
        lock(&self.inner).book.rests = rests;
    }

    /// Takes in states of accesses, and returns what follows from them and the probe that is
    /// due.
    pub(super) fn order(
        &self,
        at: Time,
        states: Vec<(String, Option<AccessState>)>,
    ) -> (Option<Decided>, Option<ProbeOrder>) {
        let mut inner = lock(&self.inner);
        // One that nothing tells of is for the samples to judge.
        let told = states.into_iter().filter(|(_, s)| s.is_some()).collect();
        let what = inner.states(told);
        let decided = inner.step(at, what);
        let decided = inner.decided().filter(|_| decided);
        (decided, inner.control.next_probe(at))
    }

    /// Takes in the result of a probe. Returns what follows from it.
    pub(super) fn probed(
        &self,
        at: Time,
        result: ProbeResult,
        failed: Option<String>,
    ) -> Option<Decided> {
        let mut inner = lock(&self.inner);
        let anew = inner.rotate(at);
        inner.book.add(&result, failed);
        let decided = inner.step(at, vec![What::ProbeResult(result)]) || anew;
        inner.decided().filter(|_| decided)
    }
}
