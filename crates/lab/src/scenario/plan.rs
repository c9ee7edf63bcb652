//! `[plan]`: accesses that follow a path plan, which cell is on which interface
//! when (`braid trace plan`).

use std::time::Duration;

use braid_api::config::Estimator;
use braid_core::{AccessKind, Rate};
use braid_radio::model::{DelaySpec, LinkSpec, RateSpec};
use braid_traces::signal::plan::{Attached, Plan, Row, State};
use serde_spanned::Spanned;

use super::build::Builder;
use super::diagnostic::Problem;
use super::raw::{RawLink, RawPlan, RawVariant};
use super::{AccessSetup, Action, Event, link, power};

/// Result of a plan in one variant.
#[derive(Clone, Debug, Default)]
pub(super) struct Planned {
    /// Accesses of the plan. The ones on a cell at the start come first: a connection begins on
    /// the first access.
    pub(super) accesses: Vec<AccessSetup>,
    pub(super) events: Vec<Event>,
    /// Weights by what each interface can carry, Mbit/s, and from when on.
    pub(super) weights: Vec<(Duration, String, f64)>,
    /// How much of the plan is left after the start.
    pub(super) left: Option<Duration>,
    /// Capacity of an ideal single path.
    pub(super) ideal: Option<RateSpec>,
}

impl Builder<'_> {
    /// The plan of a variant, cut at its start.
    pub(super) fn plan(&self, variant: Option<&RawVariant>) -> Result<Planned, Problem> {
        let of_variant = variant.and_then(|v| v.plan.as_ref());
        let Some(raw) = &self.raw.plan else {
            return match of_variant {
                Some(file) => Err(Problem::at(
                    file.span(),
                    "this scenario has no [plan] that a variant could replace",
                )),
                None => Ok(Planned::default()),
            };
        };
        let Some(file) = of_variant.or(raw.file.as_ref()) else {
            return Err(Problem::whole(
                "[plan] names no `file`, and neither does every variant with `plan`",
            ));
        };
        let start = raw.start.as_ref().map_or(Duration::ZERO, |s| s.get_ref().0);
        let until = start + self.longest(variant);
        let plan = self.read(file)?;
        if start >= plan.length {
            let span = raw.start.as_ref().map_or(file.span(), Spanned::span);
            let m = format!("the plan {} ends at {:?}", file.get_ref(), plan.length);
            return Err(Problem::at(span, m));
        }
        let ideal = raw.ideal.as_ref().map(|f| {
            let ideal = self.read(f)?;
            if ideal.interfaces != 1 {
                let m = "an ideal single path is a plan with one interface";
                return Err(Problem::at(f.span(), m));
            }
            let rows = rows_of(&ideal, 1, start, until);
            Ok(self.scaled(RateSpec::Steps {
                points: rates(&rows),
                period: None,
            }))
        });
        let mut out = Planned {
            left: Some(plan.length - start),
            ideal: ideal.transpose()?,
            ..Planned::default()
        };
        let mut later = Vec::new();
        for interface in 1..=plan.interfaces {
            let rows = rows_of(&plan, interface, start, until);
            if !rows.iter().any(|r| matches!(r.state, State::Up(_))) {
                continue;
            }
            let setup = self.interface(raw, interface, &rows)?;
            out.events.extend(changes(&setup.name, &rows));
            out.weights.extend(weights(&setup.name, &rows));
            match rows[0].state {
                State::Up(_) => out.accesses.push(setup),
                _ => later.push(setup),
            }
        }
        out.accesses.extend(later);
        if out.accesses.is_empty() {
            let m = "no interface has a cell in the time of the run";
            return Err(Problem::at(file.span(), m));
        }
        Ok(out)
    }

    /// How long a case of a variant may take.
    fn longest(&self, variant: Option<&RawVariant>) -> Duration {
        if let Some(all) = self.overrides.duration {
            return all;
        }
        let cases = self.raw.case.get_ref().iter();
        let own = cases.filter_map(|c| c.duration.as_ref());
        let own = own.chain(variant.and_then(|v| v.duration.as_ref()));
        let all = own.chain([&self.raw.duration]);
        all.map(|d| d.get_ref().0).max().unwrap_or_default()
    }

    fn read(&self, file: &Spanned<String>) -> Result<Plan, Problem> {
        let read = self.files.plan(file.get_ref());
        read.map_err(|m| Problem::at(file.span(), m))
    }

    fn scaled(&self, mut rate: RateSpec) -> RateSpec {
        if let Some(f) = self.overrides.scale {
            link::scale_rate(&mut rate, f);
        }
        rate
    }

    /// The access of an interface: rate and delay as planned, all else as
    /// `[plan]` says.
    fn interface(
        &self,
        raw: &RawPlan,
        interface: usize,
        rows: &[Row],
    ) -> Result<AccessSetup, Problem> {
        let planned = RateSpec::Steps {
            points: rates(rows),
            period: None,
        };
        let delay = DelaySpec::Steps {
            points: delays(rows),
            period: None,
        };
        let build = |given: &RawLink, rate: Option<RateSpec>| -> Result<LinkSpec, Problem> {
            let mut spec = link::link_spec(given, self.files, false)?;
            if let Some(rate) = rate {
                spec.rate = rate;
            }
            spec.delay = delay.clone();
            if let Some(f) = self.overrides.scale {
                link::scale(&mut spec, f);
            }
            Ok(spec)
        };
        let down = raw.down.get_ref();
        if let Some(key) = not_its_own(down).or(down.rate.as_ref().map(|_| "rate")) {
            let m = format!("the plan sets `{key}` of downlinks: remove it");
            return Err(Problem::at(raw.down.span(), m));
        }
        if let Some(key) = not_its_own(raw.up.get_ref()) {
            let m = format!("the plan sets `{key}` of uplinks: remove it");
            return Err(Problem::at(raw.up.span(), m));
        }
        let up = down.merged(raw.up.get_ref());
        let up_rate = up.rate.is_none().then(|| planned.clone());
        Ok(AccessSetup {
            name: format!("if{interface}"),
            kind: raw.kind.unwrap_or(AccessKind::Lte),
            medium: None,
            phy_rate: None,
            backhaul: None,
            backup: false,
            estimator: Estimator::default(),
            power: power::power(raw.power.as_ref(), self.files)?,
            down: build(down, Some(planned))?,
            up: build(&up, up_rate)?,
        })
    }
}

fn not_its_own(link: &RawLink) -> Option<&'static str> {
    let given = [
        ("trace", link.trace.is_some()),
        ("delay", link.delay.is_some()),
        ("delay_trace", link.delay_trace.is_some()),
        ("period", link.period.is_some()),
    ];
    given.into_iter().find(|(_, is)| *is).map(|(key, _)| key)
}

/// The rows of an interface from `start` until `until`, as if the plan began there:
/// times and addresses count from it.
fn rows_of(plan: &Plan, interface: usize, start: Duration, until: Duration) -> Vec<Row> {
    let mine: Vec<&Row> = plan
        .rows
        .iter()
        .filter(|r| r.interface == interface && r.at < until)
        .collect();
    let first = mine.iter().rposition(|r| r.at <= start).unwrap_or(0);
    let address = |s: &State| attached(s).map(|a| a.address);
    let base = mine[first..].iter().find_map(|r| address(&r.state));
    let base = base.unwrap_or(1);
    let rows = mine[first..].iter().map(|r| {
        let mut row = (*r).clone();
        row.at = row.at.saturating_sub(start);
        if let State::Up(a) | State::Handover(a) = &mut row.state {
            a.address = a.address.wrapping_sub(base).wrapping_add(1);
        }
        row
    });
    rows.collect()
}

fn attached(state: &State) -> Option<&Attached> {
    match state {
        State::Up(a) | State::Handover(a) => Some(a),
        State::Down => None,
    }
}

/// Nothing passes unless the interface is up: so capacities are right too.
fn rates(rows: &[Row]) -> Vec<(Duration, Rate)> {
    let rate = |r: &Row| match &r.state {
        State::Up(a) => a.rate,
        State::Handover(_) | State::Down => Rate::ZERO,
    };
    steps(rows.iter().map(|r| (r.at, rate(r))))
}

/// An interface without a cell keeps its weight: nothing goes there, and 0 would have
/// the peer told.
fn weights(access: &str, rows: &[Row]) -> impl Iterator<Item = (Duration, String, f64)> {
    let carry = rates(rows).into_iter().filter(|(_, r)| *r > Rate::ZERO);
    carry.map(move |(at, rate)| (at, access.to_owned(), rate.as_mbps()))
}

fn delays(rows: &[Row]) -> Vec<(Duration, Duration)> {
    let first = rows.iter().find_map(|r| attached(&r.state));
    let mut last = first.map_or(Duration::ZERO, |a| a.delay);
    steps(rows.iter().map(|r| {
        last = attached(&r.state).map_or(last, |a| a.delay);
        (r.at, last)
    }))
}

/// Without what changes nothing; of several at one time, the last.
fn steps<T: PartialEq>(all: impl Iterator<Item = (Duration, T)>) -> Vec<(Duration, T)> {
    let mut out: Vec<(Duration, T)> = Vec::new();
    for (at, value) in all {
        if out.last().is_some_and(|l| l.0 == at) {
            out.pop();
        }
        if out.last().is_none_or(|l| l.1 != value) {
            out.push((at, value));
        }
    }
    out
}

/// Returns the events of an interface. With a new address its link goes down and comes up, as
/// that of a modem does; with the old one nothing passes for a while.
fn changes(access: &str, rows: &[Row]) -> Vec<Event> {
    let mut out = Vec::new();
    let mut event = |at: Duration, action: Action, label: String| {
        out.push(Event {
            at,
            access: access.to_owned(),
            action,
            label,
        });
    };
    let mut address = 1;
    let mut connected = true;
    for (n, row) in rows.iter().enumerate() {
        match &row.state {
            State::Down if connected => {
                event(row.at, Action::Down, "no cell".to_owned());
                connected = false;
            }
            State::Handover(to) if connected => {
                // What it was on before the start nobody knows.
                let action = match to.address == address && n > 0 {
                    true => Action::Blackhole,
                    false => Action::Down,
                };
                event(row.at, action, format!("handover to {}", name(to)));
                connected = false;
            }
            State::Up(to) => {
                let moves = to.address != address;
                if connected && moves {
                    let label = format!("handover to {}", name(to));
                    event(row.at, Action::Down, label);
                    connected = false;
                }
                if moves {
                    let label = format!("address {}", to.address);
                    event(row.at, Action::Address(to.address), label);
                    address = to.address;
                }
                if !connected {
                    event(row.at, Action::Up, format!("on {}", name(to)));
                    connected = true;
                }
            }
            State::Down | State::Handover(_) => {}
        }
    }
    out
}

fn name(a: &Attached) -> String {
    format!("{} {} {}", a.operator, a.carrier, a.cell)
}
