//! The `[[case]]` tables.

use std::time::Duration;

use serde_spanned::Spanned;

use super::build::{Builder, Setting, no_access};
use super::diagnostic::Problem;
use super::raw::{RawCase, RawVariant};
use super::text::Text;
use super::{AccessSetup, Bystander, Case, Event, network, place, policy, weights};
use crate::engine;

const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Builder<'_> {
    pub(super) fn case(
        &self,
        raw: &RawCase,
        variant: Option<&RawVariant>,
        setting: &Setting<'_>,
    ) -> Result<Case, Problem> {
        let (raw, policy) = &self.governed(raw)?;
        let accesses = &setting.accesses;
        let known = || accesses.iter().map(|a| &a.name);
        let check = |a: &Spanned<String>| match known().any(|k| k == a.get_ref()) {
            true => Ok(a.get_ref().clone()),
            false => Err(Problem::at(a.span(), no_access(a.get_ref(), known()))),
        };
        let engine = engine::parse(raw, &check)?;
        let mine: Vec<String> = match &raw.accesses {
            Some(list) => list.iter().map(check).collect::<Result<_, _>>()?,
            None => known().cloned().collect(),
        };
        if let Some(access) = engine.get().access()
            && !mine.iter().any(|a| a == access)
        {
            return Err(Problem::at(
                raw.engine.span(),
                format!("`access` \"{access}\" is not among `accesses`"),
            ));
        }
        if mine.is_empty() {
            return Err(Problem::at(raw.name.span(), "`accesses` is empty"));
        }
        let (duration, warmup) = self.times(raw, variant)?;
        let (traffic, from) = place::of_engine(&raw.traffic, &engine)?;
        let beside = place::beside(raw, &engine)?;
        policy::check_expectation(raw, !engine.get().has_subflows(), &traffic)?;
        self.covers(setting, duration, raw)?;
        let weights = raw.weights.as_ref();
        let weights = weights.map(|w| self.case_weights(w, setting)).transpose()?;
        let name = raw.name.get_ref();
        let mut events = self.events(name, accesses, &mine, duration, weights.is_some())?;
        let planned = setting.planned.events.iter();
        let concerns = |e: &&Event| mine.contains(&e.access) && e.at < duration;
        events.extend(planned.filter(concerns).cloned());
        events.extend(weights::changes(raw, &setting.planned, &mine, duration));
        events.sort_by_key(|e| e.at);
        if let (Some(given), Some(weights)) = (&raw.weights, &weights)
            && let Some(when) = weights::nobody_carries(&mine, weights, &events)
        {
            let m = format!("{when} no access would have a weight above 0");
            return Err(Problem::at(given.span(), m));
        }
        let base_name = raw.name.get_ref().clone();
        let cc = raw.cc.as_ref().map(|s| s.get_ref().clone());
        let used = accesses.iter().filter(|a| mine.contains(&a.name));
        let mut used: Vec<AccessSetup> = used.cloned().collect();
        self.estimators(raw, *policy, &traffic, &mut used)?;
        let network = setting.network;
        Ok(Case {
            name: match variant {
                Some(v) => format!("{}: {base_name}", v.name.get_ref()),
                None => base_name.clone(),
            },
            variant: variant.map(|v| v.name.get_ref().clone()),
            base_name,
            path_manager: engine.get().path_manager(raw)?,
            scheduler: raw.scheduler.as_ref().map(|s| s.get_ref().clone()),
            wrr_mode: raw
                .wrr_mode
                .as_ref()
                .map(engine::keys::wrr_mode)
                .transpose()?,
            num_segments: raw.num_segments.as_ref().map(|n| *n.get_ref()),
            opportunistic: raw.opportunistic.as_ref().map(|b| *b.get_ref()),
            penalise: raw.penalise.as_ref().map(|b| *b.get_ref()),
            bystanders: like_the_case(&setting.bystanders, cc.as_ref()),
            cc,
            expect: engine.get().expect(raw, self.seed())?,
            engine,
            weights,
            policy: *policy,
            probes: policy::probes(raw, &used)?,
            traffic,
            from,
            beside,
            tcp_rmem: network::buffer(raw.tcp_rmem.as_ref(), "tcp_rmem")?.or(network.tcp_rmem),
            tcp_wmem: network::buffer(raw.tcp_wmem.as_ref(), "tcp_wmem")?
                .or(network.tcp_wmem)
                .unwrap_or_else(|| network::send_buffers(&used)),
            short_queues: raw.short_queues.unwrap_or(network.short_queues),
            duration,
            warmup,
            accesses: used,
            events,
            ideal: setting.planned.ideal.clone(),
        })
    }

    /// Whether the plan lasts as long as the case.
    fn covers(
        &self,
        setting: &Setting<'_>,
        duration: Duration,
        raw: &RawCase,
    ) -> Result<(), Problem> {
        match setting.planned.left {
            Some(left) if left < duration => Err(Problem::at(
                raw.duration.as_ref().unwrap_or(&self.raw.duration).span(),
                format!("of the plan {left:?} are left after its start: expected at most that"),
            )),
            _ => Ok(()),
        }
    }

    /// Duration of a case in a variant, as the file has it.
    pub(super) fn duration<'a>(
        &'a self,
        case: Option<&'a RawCase>,
        variant: Option<&'a RawVariant>,
    ) -> &'a Spanned<Text<Duration>> {
        case.and_then(|c| c.duration.as_ref())
            .or(variant.and_then(|v| v.duration.as_ref()))
            .unwrap_or(&self.raw.duration)
    }

    fn times(
        &self,
        raw: &RawCase,
        variant: Option<&RawVariant>,
    ) -> Result<(Duration, Duration), Problem> {
        let d = self.duration(Some(raw), variant);
        let w = raw
            .warmup
            .as_ref()
            .or(variant.and_then(|v| v.warmup.as_ref()))
            .or(self.raw.warmup.as_ref());
        let duration = d.get_ref().0;
        let warmup = w.map_or(Duration::ZERO, |w| w.get_ref().0);
        if duration.is_zero() || duration > LONGEST {
            return Err(Problem::at(
                d.span(),
                "expected a duration above zero and of at most 24 h",
            ));
        }
        if warmup >= duration {
            let span = w.map_or(d.span(), Spanned::span);
            return Err(Problem::at(
                span,
                "the warm-up must be shorter than the duration",
            ));
        }
        match self.overrides.duration {
            Some(o) => Ok((o, warmup.min(o / 2))),
            None => Ok((duration, warmup)),
        }
    }
}

/// The other devices, those with `cc = "case"` with that of the case.
fn like_the_case(others: &[Bystander], cc: Option<&String>) -> Vec<Bystander> {
    let mut others = others.to_vec();
    for other in &mut others {
        if other.cc.as_deref() == Some("case") {
            other.cc = cc.cloned();
        }
    }
    others
}
