//! The `[[case]]` tables.

use std::time::Duration;

use serde_spanned::Spanned;

use super::build::{Builder, no_access, unknown};
use super::diagnostic::Problem;
use super::raw::{RawCase, RawVariant};
use super::{AccessSetup, Bystander, Case, Engine, PathManager, traffic};

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
            _ => Err(unknown(given, "path manager", ["kernel", "notified"])),
        }
    }

    pub(super) fn case(
        &self,
        raw: &RawCase,
        variant: Option<&RawVariant>,
        accesses: &[AccessSetup],
        bystanders: &[Bystander],
    ) -> Result<Case, Problem> {
        let known = self.raw.access.get_ref();
        let check = |a: &Spanned<String>| match known.contains_key(a.get_ref()) {
            true => Ok(a.get_ref().clone()),
            false => Err(Problem::at(a.span(), no_access(a.get_ref(), known.keys()))),
        };
        let engine = self.engine(raw, &check)?;
        let mine: Vec<String> = match &raw.accesses {
            Some(list) => list.iter().map(check).collect::<Result<_, _>>()?,
            None => known.keys().cloned().collect(),
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
        if matches!(traffic, super::Traffic::Cbr { udp: true, .. }) && engine == Engine::Mptcp {
            return Err(Problem::at(
                raw.traffic.span(),
                "MPTCP does not carry UDP: use engine = \"tcp\" with the access that the datagrams take",
            ));
        }
        let weights = match &raw.weights {
            None => None,
            Some(w) => {
                for (name, v) in w.get_ref() {
                    if !known.contains_key(name) {
                        return Err(Problem::at(w.span(), no_access(name, known.keys())));
                    }
                    if !(0.0..=1e6).contains(&v.0) {
                        return Err(Problem::at(
                            w.span(),
                            format!("weight {} of {name}: expected 0 to 1000000", v.0),
                        ));
                    }
                }
                Some(w.get_ref().iter().map(|(k, v)| (k.clone(), v.0)).collect())
            }
        };
        let base_name = raw.name.get_ref().clone();
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
            cc: raw.cc.as_ref().map(|s| s.get_ref().clone()),
            weights,
            traffic,
            duration,
            warmup,
            accesses: accesses
                .iter()
                .filter(|a| mine.contains(&a.name))
                .cloned()
                .collect(),
            bystanders: bystanders.to_vec(),
            events: self.events(&mine, duration)?,
        })
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
                if let Some(s) = &raw.scheduler
                    && s.get_ref() != "default"
                {
                    return Err(Problem::at(
                        s.span(),
                        format!(
                            "the stock kernel's MPTCP has no scheduler \"{}\": expected \"default\"",
                            s.get_ref()
                        ),
                    ));
                }
                for (key, span) in [
                    ("weights", raw.weights.as_ref().map(Spanned::span)),
                    ("wrr_mode", raw.wrr_mode.as_ref().map(Spanned::span)),
                ] {
                    if let Some(span) = span {
                        return Err(Problem::at(
                            span,
                            format!("the stock kernel's scheduler has no `{key}`"),
                        ));
                    }
                }
                Ok(Engine::Mptcp)
            }
            _ => Err(unknown(&raw.engine, "engine", ["tcp", "mptcp"])),
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
