//! Plain TCP on one access.

use braid_core::overhead;
use serde::{Deserialize, Serialize};

use super::keys::{ONLY_MPQUIC, minrtt, mpquic, nothing_expected, policy_of, round_robin};
use super::{AccessNamed, EngineKeys, LabEngine};
use crate::scenario::Problem;
use crate::scenario::raw::RawCase;

/// Plain TCP on one access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tcp {
    /// The access.
    pub access: String,
}

impl EngineKeys for Tcp {
    const NAME: &'static str = "tcp";
    const WEIGHTS: bool = false;

    fn parse(raw: &RawCase, access: AccessNamed<'_>) -> Result<Self, Problem> {
        let policy = policy_of(raw)?;
        if let Some(given) = raw.policy.as_ref().filter(|_| policy.decides()) {
            let m = format!(
                "policy \"{}\" sets weights of several paths, and plain TCP has one: expected \
                 engine = \"mptcp\" or \"mpquic\", or policy = \"static\"",
                policy.as_str()
            );
            return Err(Problem::at(given.span(), m));
        }
        let refusal = "plain TCP has one path and no scheduler";
        if let Some(s) = &raw.scheduler {
            return Err(Problem::at(s.span(), refusal));
        }
        if let Some(w) = &raw.weights {
            return Err(Problem::at(
                w.span(),
                "plain TCP has one path and no weights",
            ));
        }
        round_robin(raw, refusal)?;
        minrtt(raw, refusal)?;
        mpquic(raw)?;
        nothing_expected(raw, ONLY_MPQUIC)?;
        let Some(given) = &raw.access else {
            return Err(Problem::at(
                raw.engine.span(),
                "engine \"tcp\" needs `access`: the one it runs on",
            ));
        };
        Ok(Self {
            access: access(given)?,
        })
    }
}

impl LabEngine for Tcp {
    fn access(&self) -> Option<&str> {
        Some(&self.access)
    }

    fn default_scheduler(&self) -> Option<&'static str> {
        None
    }

    fn daemons(&self) -> braid_api::Engine {
        braid_api::Engine::Tcp
    }

    fn transport(&self) -> overhead::Transport {
        overhead::Transport::Tcp
    }

    fn is_reference(&self) -> bool {
        true
    }
}
