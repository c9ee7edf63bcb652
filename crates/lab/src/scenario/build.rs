//! Checks a scenario as a whole and expands its variants.

use std::collections::HashSet;
use std::path::Path;

use braid_radio::model::wifi::{Dcf, WifiSpec};
use indexmap::IndexMap;
use serde_spanned::Spanned;

use super::diagnostic::{Diagnostic, Problem, nearest};
use super::files::Files;
use super::plan::Planned;
use super::raw::{RawAccess, RawCase, RawChange, RawLink, RawScenario, RawTraffic, RawVariant};
use super::{
    AccessSetup, Bystander, Case, Network, Overrides, Scenario, Traffic, backhaul, link, network,
    only, place, policy, power, traffic,
};
use crate::engine;
use crate::summary::PaperFigure;

pub(super) fn parse(
    text: &str,
    origin: &Path,
    files: &Files<'_>,
    overrides: &Overrides,
) -> Result<Scenario, Diagnostic> {
    toml::from_str::<RawScenario>(text)
        .map_err(Problem::from)
        .and_then(|raw| {
            Builder {
                raw: &raw,
                files,
                overrides,
            }
            .scenario(text, origin)
        })
        .map_err(|p| p.in_file(origin.to_owned(), text))
}

/// Settings that the cases of one variant have in common.
pub(super) struct Setting<'a> {
    pub(super) accesses: Vec<AccessSetup>,
    pub(super) bystanders: Vec<Bystander>,
    pub(super) planned: Planned,
    pub(super) network: &'a Network,
}

pub(super) struct Builder<'a> {
    pub(super) raw: &'a RawScenario,
    pub(super) files: &'a Files<'a>,
    pub(super) overrides: &'a Overrides,
}

impl Builder<'_> {
    pub(super) fn seed(&self) -> u64 {
        self.overrides.seed.or(self.raw.seed).unwrap_or(1)
    }

    fn scenario(&self, text: &str, origin: &Path) -> Result<Scenario, Problem> {
        let raw = self.raw;
        let name = raw.name.get_ref();
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        {
            return Err(Problem::at(
                raw.name.span(),
                "a name is made of letters, digits, '-', '_' and '.': it names the output folder",
            ));
        }
        if raw.accesses().is_empty() && raw.plan.is_none() {
            let m = "expected at least one access: [access.NAME], or [plan]";
            return Err(match &raw.access {
                Some(given) => Problem::at(given.span(), m),
                None => Problem::whole(m),
            });
        }
        let media = self.media()?;
        for (name, b) in &raw.backhaul {
            backhaul::check(name, b)?;
        }
        let network = network::build(&raw.network)?;
        if let Some(policy) = &raw.policy {
            engine::keys::policy(policy)?;
        }
        let mut cases = Vec::new();
        if raw.variant.is_empty() {
            self.cases_of(None, &network, &mut cases)?;
        } else {
            let mut seen = HashSet::new();
            for v in &raw.variant {
                if !seen.insert(v.name.get_ref()) {
                    return Err(Problem::at(v.name.span(), "two variants have this name"));
                }
                self.cases_of(Some(v), &network, &mut cases)?;
            }
        }
        self.estimators_count(&cases)?;
        only::keep(&self.overrides.only, &mut cases)?;
        self.all_events_fit(&cases)?;
        Ok(Scenario {
            name: name.clone(),
            description: raw
                .description
                .clone()
                .unwrap_or_else(|| head_comment(text)),
            seed: self.seed(),
            network,
            media,
            paper: self.paper()?,
            cases,
            text: text.to_owned(),
            origin: origin.to_owned(),
        })
    }

    fn media(&self) -> Result<IndexMap<String, WifiSpec>, Problem> {
        let mut media = IndexMap::new();
        for (name, m) in &self.raw.medium {
            // A medium of one station takes every parameter apart.
            Dcf::new(m.get_ref(), 1, 0).map_err(|e| Problem::at(m.span(), e.to_string()))?;
            media.insert(name.clone(), m.get_ref().clone());
        }
        Ok(media)
    }

    fn cases_of(
        &self,
        variant: Option<&RawVariant>,
        network: &Network,
        out: &mut Vec<Case>,
    ) -> Result<(), Problem> {
        let mut planned = self.plan(variant)?;
        let mut accesses = self.accesses(variant)?;
        accesses.append(&mut planned.accesses);
        let mut names = HashSet::new();
        if let Some(twice) = accesses.iter().find(|a| !names.insert(&a.name)) {
            let m = format!("\"{}\" is the name of an interface of [plan]", twice.name);
            return Err(Problem::whole(m));
        }
        let setting = Setting {
            accesses,
            bystanders: self.bystanders(variant)?,
            planned,
            network,
        };
        let raw_cases = self.raw.case.get_ref();
        if raw_cases.is_empty() {
            return Err(Problem::at(
                self.raw.case.span(),
                "expected at least one [[case]]",
            ));
        }
        let mut names = HashSet::new();
        for c in raw_cases {
            if !names.insert(c.name.get_ref()) {
                return Err(Problem::at(c.name.span(), "two cases have this name"));
            }
            if self.concerns(c, variant)? {
                out.push(self.case(c, variant, &setting)?);
            }
        }
        Ok(())
    }

    /// Whether a case is run in a variant.
    fn concerns(&self, case: &RawCase, variant: Option<&RawVariant>) -> Result<bool, Problem> {
        let Some(named) = &case.variants else {
            return Ok(true);
        };
        let known = || self.raw.variant.iter().map(|v| v.name.get_ref().as_str());
        if let Some(bad) = named.iter().find(|n| !known().any(|k| k == n.get_ref())) {
            return Err(unknown(bad, "variant", known()));
        }
        Ok(variant.is_some_and(|v| named.iter().any(|n| n.get_ref() == v.name.get_ref())))
    }

    fn accesses(&self, variant: Option<&RawVariant>) -> Result<Vec<AccessSetup>, Problem> {
        let known = self.raw.accesses();
        let mut changes: IndexMap<&str, &RawChange> = IndexMap::new();
        if let Some(v) = variant {
            for (name, change) in &v.access {
                if !known.contains_key(name) {
                    return Err(Problem::at(change.span(), no_access(name, known.keys())));
                }
                changes.insert(name, change.get_ref());
            }
        }
        known
            .iter()
            .map(|(name, a)| self.access(name, a, changes.get(name.as_str()).copied()))
            .collect()
    }

    fn access(
        &self,
        name: &str,
        raw: &RawAccess,
        change: Option<&RawChange>,
    ) -> Result<AccessSetup, Problem> {
        if name.is_empty()
            || !name
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
        {
            return Err(Problem::whole(format!(
                "access \"{name}\": a name is made of letters, digits, '-' and '_'"
            )));
        }
        let none = RawChange::default();
        let change = change.unwrap_or(&none);
        if let Some(m) = &raw.medium
            && !self.raw.medium.contains_key(m.get_ref())
        {
            return Err(unknown(
                m,
                "medium",
                self.raw.medium.keys().map(String::as_str),
            ));
        }
        let own_rate = raw.medium.is_none();
        let down = raw.down.merged(&change.down);
        // An uplink that says nothing of its rate mirrors the downlink.
        let up = if raw.up.rate.is_none() && raw.up.trace.is_none() && change.up.rate.is_none() {
            down.merged(&raw.up).merged(&change.up)
        } else {
            raw.up.merged(&change.up)
        };
        if !own_rate && (down.rate.is_some() || down.trace.is_some() || up.rate.is_some()) {
            return Err(Problem::whole(format!(
                "access \"{name}\" shares a medium, which sets its rate: remove `rate` and `trace`"
            )));
        }
        let (down, up) = self.behind(name, raw, down, up)?;
        let build = |raw: &RawLink, way: &str| -> Result<_, Problem> {
            let mut spec = link::link_spec(raw, self.files, own_rate).map_err(|mut p| {
                p.message = format!("access \"{name}\", {way}: {}", p.message);
                p
            })?;
            if let Some(f) = self.overrides.scale {
                link::scale(&mut spec, f);
            }
            Ok(spec)
        };
        Ok(AccessSetup {
            name: name.to_owned(),
            kind: raw.kind,
            medium: raw.medium.as_ref().map(|m| m.get_ref().clone()),
            phy_rate: raw.phy_rate.as_ref().map(|r| r.get_ref().0),
            backhaul: raw.backhaul.as_ref().map(|b| b.get_ref().clone()),
            backup: raw.backup.unwrap_or(false),
            estimator: policy::estimator(raw.estimator.as_ref())?,
            power: power::power(raw.power.as_ref(), self.files)?,
            down: build(&down, "down")?,
            up: build(&up, "up")?,
        })
    }

    /// The links of access `name` with rate and queue of its backhaul, if it
    /// has one.
    fn behind(
        &self,
        name: &str,
        raw: &RawAccess,
        down: RawLink,
        up: RawLink,
    ) -> Result<(RawLink, RawLink), Problem> {
        let Some(b) = &raw.backhaul else {
            return Ok((down, up));
        };
        if let Some(m) = &raw.medium {
            return Err(Problem::at(
                b.span().start.max(m.span().start)..b.span().end.max(m.span().end),
                "both `medium` and `backhaul` are given: keep one",
            ));
        }
        let key = backhaul::not_its_own(&down).or(backhaul::not_its_own(&up));
        if let Some(key) = key {
            return Err(Problem::at(
                b.span(),
                format!("access \"{name}\" goes through a backhaul, which sets `{key}`: remove it"),
            ));
        }
        let line = self.backhaul(b)?;
        Ok((down.merged(&line.0), up.merged(&line.1)))
    }

    fn bystanders(&self, variant: Option<&RawVariant>) -> Result<Vec<Bystander>, Problem> {
        if let Some(v) = variant {
            for (name, c) in &v.device {
                if !self.raw.device.contains_key(name) {
                    return Err(Problem::at(
                        c.span(),
                        format!("no [device.{name}] in this scenario"),
                    ));
                }
            }
        }
        let mut out = Vec::new();
        for (name, d) in &self.raw.device {
            let (span, d) = (d.span(), d.get_ref());
            let count = variant
                .and_then(|v| v.device.get(name))
                .map_or(d.count.unwrap_or(1), |c| c.get_ref().count);
            if count > 64 {
                return Err(Problem::at(
                    span,
                    format!("{count} devices: expected at most 64"),
                ));
            }
            let traffic = d.traffic.as_ref().map(of_others).transpose()?;
            let mptcp = match &d.engine {
                None => false,
                Some(e) => match e.get_ref().as_str() {
                    "tcp" => false,
                    "mptcp" => true,
                    _ => return Err(unknown(e, "engine", ["tcp", "mptcp"])),
                },
            };
            if d.access.is_empty() {
                return Err(Problem::at(
                    span,
                    format!("device \"{name}\" has no access"),
                ));
            }
            let mut estimators = d.access.values().filter_map(|a| a.estimator.as_ref());
            if let Some(given) = estimators.next() {
                let m = "other devices have no policy that could go by an estimate: remove it";
                return Err(Problem::at(given.span(), m));
            }
            let accesses = d
                .access
                .iter()
                .map(|(n, a)| self.access(n, a, None))
                .collect::<Result<_, _>>()?;
            out.push(Bystander {
                name: name.clone(),
                count,
                accesses,
                traffic,
                mptcp,
                cc: d.cc.as_ref().map(|c| c.get_ref().clone()),
            });
        }
        Ok(out)
    }

    fn paper(&self) -> Result<Vec<PaperFigure>, Problem> {
        let mut out = Vec::new();
        for p in &self.raw.paper {
            let field = p.field.get_ref();
            let root = field.split('.').next().unwrap_or_default();
            const FIELDS: [&str; 9] = [
                "goodput_mbps",
                "latency_ms",
                "share",
                "packet_share",
                "gap_ms",
                "completion_s",
                "recoveries",
                "busy",
                "energy_joules",
            ];
            if !FIELDS.contains(&root) {
                return Err(unknown(&p.field, "field", FIELDS));
            }
            out.push(PaperFigure {
                case: p.case.get_ref().clone(),
                field: field.clone(),
                value: p.value,
                source: p.source.clone(),
            });
        }
        Ok(out)
    }
}

pub(super) fn no_access<'a>(name: &str, known: impl Iterator<Item = &'a String>) -> String {
    let known: Vec<&str> = known.map(String::as_str).collect();
    let mut m = format!("no access \"{name}\": there are {}", known.join(", "));
    if let Some(n) = nearest(name, known) {
        m.push_str(&format!("; did you mean \"{n}\"?"));
    }
    m
}

pub(crate) fn unknown<'a>(
    given: &Spanned<String>,
    what: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Problem {
    let known: Vec<&str> = known.into_iter().collect();
    let mut m = format!(
        "unknown {what} \"{}\": expected {}",
        given.get_ref(),
        known.join(", ")
    );
    if let Some(n) = nearest(given.get_ref(), known) {
        m.push_str(&format!("; did you mean \"{n}\"?"));
    }
    Problem::at(given.span(), m)
}

/// The comment lines at the head of the file, as the description.
fn head_comment(text: &str) -> String {
    text.lines()
        .take_while(|l| l.starts_with('#'))
        .map(|l| l.trim_start_matches('#').trim())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Reads the traffic of other devices.
fn of_others(raw: &Spanned<RawTraffic>) -> Result<Traffic, Problem> {
    place::none_named(raw)?;
    match traffic::traffic(raw)? {
        Traffic::Command(_) => {
            let m = "traffic \"command\" runs on the measured device alone: give other devices \
                     traffic of the lab's own, such as \"bulk\"";
            Err(Problem::at(raw.span(), m))
        }
        ours => Ok(ours),
    }
}
