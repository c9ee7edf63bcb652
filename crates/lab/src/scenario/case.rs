//! The `[[case]]` tables.

use std::time::Duration;

use braid_core::api::WrrMode;
use serde_spanned::Spanned;

use super::build::{Builder, Setting, no_access, unknown};
use super::diagnostic::Problem;
use super::raw::{RawCase, RawVariant};
use super::{
    AccessSetup, Bystander, Case, Engine, Event, PathManager, network, quic, traffic, weights,
};

const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Builder<'_> {
    fn path_manager(&self, raw: &RawCase) -> Result<PathManager, Problem> {
        let Some(given) = &raw.path_manager else {
            return Ok(PathManager::Kernel);
        };
        if raw.engine.get_ref() != "mptcp" {
            return Err(Problem::at(given.span(), "only MPTCP has a path manager"));
        }
        match given.get_ref().as_str() {
            "kernel" => Ok(PathManager::Kernel),
            "notified" => Ok(PathManager::Notified),
            "braid" => Ok(PathManager::Braid),
            _ => Err(unknown(
                given,
                "path manager",
                ["kernel", "notified", "braid"],
            )),
        }
    }

    pub(super) fn case(
        &self,
        raw: &RawCase,
        variant: Option<&RawVariant>,
        setting: &Setting<'_>,
    ) -> Result<Case, Problem> {
        let accesses = &setting.accesses;
        let known = || accesses.iter().map(|a| &a.name);
        let check = |a: &Spanned<String>| match known().any(|k| k == a.get_ref()) {
            true => Ok(a.get_ref().clone()),
            false => Err(Problem::at(a.span(), no_access(a.get_ref(), known()))),
        };
        let engine = self.engine(raw, &check)?;
        let mine: Vec<String> = match &raw.accesses {
            Some(list) => list.iter().map(check).collect::<Result<_, _>>()?,
            None => known().cloned().collect(),
        };
        if let Engine::Tcp { access } = &engine
            && !mine.contains(access)
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
        let traffic = traffic::traffic(&raw.traffic)?;
        if traffic.is_udp() && engine == Engine::Mptcp {
            return Err(Problem::at(
                raw.traffic.span(),
                "MPTCP does not carry UDP: use engine = \"tcp\" with the access that the datagrams take",
            ));
        }
        quic::traffic(&engine, &traffic, raw)?;
        self.covers(setting, duration, raw)?;
        let weights = raw.weights.as_ref();
        let weights = weights.map(|w| self.case_weights(w, setting)).transpose()?;
        let mut events = self.events(accesses, &mine, duration, weights.is_some())?;
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
        let used: Vec<AccessSetup> = used.cloned().collect();
        let network = setting.network;
        Ok(Case {
            name: match variant {
                Some(v) => format!("{}: {base_name}", v.name.get_ref()),
                None => base_name.clone(),
            },
            variant: variant.map(|v| v.name.get_ref().clone()),
            base_name,
            engine,
            path_manager: self.path_manager(raw)?,
            scheduler: raw.scheduler.as_ref().map(|s| s.get_ref().clone()),
            wrr_mode: raw.wrr_mode.as_ref().map(wrr_mode).transpose()?,
            num_segments: raw.num_segments.as_ref().map(|n| *n.get_ref()),
            opportunistic: raw.opportunistic.as_ref().map(|b| *b.get_ref()),
            penalise: raw.penalise.as_ref().map(|b| *b.get_ref()),
            bystanders: like_the_case(&setting.bystanders, cc.as_ref()),
            cc,
            expect: quic::expect(raw, self.seed())?,
            weights,
            traffic,
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

    fn engine(
        &self,
        raw: &RawCase,
        check: &impl Fn(&Spanned<String>) -> Result<String, Problem>,
    ) -> Result<Engine, Problem> {
        match raw.engine.get_ref().as_str() {
            "tcp" => {
                if let Some(s) = &raw.scheduler {
                    return Err(Problem::at(
                        s.span(),
                        "plain TCP has one path and no scheduler",
                    ));
                }
                if let Some(w) = &raw.weights {
                    return Err(Problem::at(
                        w.span(),
                        "plain TCP has one path and no weights",
                    ));
                }
                let refusal = "plain TCP has one path and no scheduler";
                round_robin_keys(raw, refusal)?;
                minrtt_keys(raw, refusal)?;
                quic::none(raw)?;
                let Some(access) = &raw.access else {
                    return Err(Problem::at(
                        raw.engine.span(),
                        "engine \"tcp\" needs `access`: the one it runs on",
                    ));
                };
                Ok(Engine::Tcp {
                    access: check(access)?,
                })
            }
            "mptcp" => {
                if let Some(a) = &raw.access {
                    return Err(Problem::at(
                        a.span(),
                        "MPTCP uses all accesses: to restrict it, list `accesses = [...]`",
                    ));
                }
                quic::none(raw)?;
                scheduling(raw)?;
                Ok(Engine::Mptcp)
            }
            "mpquic" => quic::engine(raw),
            _ => Err(unknown(&raw.engine, "engine", ["tcp", "mptcp", "mpquic"])),
        }
    }

    fn times(
        &self,
        raw: &RawCase,
        variant: Option<&RawVariant>,
    ) -> Result<(Duration, Duration), Problem> {
        let d = raw
            .duration
            .as_ref()
            .or(variant.and_then(|v| v.duration.as_ref()))
            .unwrap_or(&self.raw.duration);
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

/// The scheduler's keys of an MPTCP case. Which schedulers there are the kernel
/// says that runs it.
fn scheduling(raw: &RawCase) -> Result<(), Problem> {
    let name = raw.scheduler.as_ref().map_or("default", |s| s.get_ref());
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if let Some(s) = &raw.scheduler
        && (name.is_empty() || name.len() > 15 || !name.chars().all(word))
    {
        return Err(Problem::at(
            s.span(),
            "a scheduler's name has 1 to 15 letters, digits, '-' and '_'",
        ));
    }
    if name == "default"
        && let Some(w) = &raw.weights
    {
        return Err(Problem::at(
            w.span(),
            "the kernel's default scheduler has no weights: add scheduler = \"wrr\"",
        ));
    }
    if !matches!(name, "rr" | "wrr") {
        round_robin_keys(raw, "only the schedulers \"rr\" and \"wrr\" have this")?;
    }
    if name != "minrtt" {
        minrtt_keys(raw, "only the scheduler \"minrtt\" has this")?;
    }
    if let Some(n) = &raw.num_segments
        && *n.get_ref() == 0
    {
        return Err(Problem::at(n.span(), "expected 1 to 255 segments"));
    }
    Ok(())
}

pub(super) fn round_robin_keys(raw: &RawCase, refusal: &str) -> Result<(), Problem> {
    let mode = raw.wrr_mode.as_ref().map(Spanned::span);
    match mode.or(raw.num_segments.as_ref().map(Spanned::span)) {
        Some(span) => Err(Problem::at(span, refusal)),
        None => Ok(()),
    }
}

pub(super) fn minrtt_keys(raw: &RawCase, refusal: &str) -> Result<(), Problem> {
    match raw.opportunistic.as_ref().or(raw.penalise.as_ref()) {
        Some(given) => Err(Problem::at(given.span(), refusal)),
        None => Ok(()),
    }
}

pub(super) fn wrr_mode(given: &Spanned<String>) -> Result<WrrMode, Problem> {
    let all = [WrrMode::Strict, WrrMode::WorkConserving];
    let found = all.into_iter().find(|m| m.as_str() == given.get_ref());
    found.ok_or_else(|| unknown(given, "mode", all.map(WrrMode::as_str)))
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
