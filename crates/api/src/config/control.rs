//! `[control]`: who decides the weights of the accesses, and the journal of these decisions.

mod energy;
mod probe;

use std::path::PathBuf;

use braid_core::Rate;
use braid_core::control::CapacitySettings;
use serde::{Deserialize, Serialize};

use super::scheduler::Scheduler;
use super::text;
use crate::diagnostic::Problem;
use crate::{Engine, Role};
pub use energy::Energy;
pub use probe::{MAX_FLOWS, Transfers};

/// Scheduler that shares by weights, the only one that a policy's weights reach.
pub const WEIGHTED: &str = "wrr";

/// Least size of a journal, bytes: it must hold the configuration and a while of samples.
const MIN_JOURNAL: u64 = 65_536;

/// `[control]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Control {
    /// Policy that decides.
    pub policy: Policy,
    /// Change of a capacity that is not worth a decision, percent of the weight in force, 0 to
    /// 100; policy `capacity`.
    pub hysteresis_percent: u32,
    /// Step to which capacities are rounded, as text with a unit, 1 kbit/s to 1 Gbit/s; policy
    /// `capacity`.
    #[serde(with = "text::rate")]
    pub step: Rate,
    /// File that gets every observation and decision; absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub journal: Option<PathBuf>,
    /// Size at which the journal begins anew, bytes, 65536 or more. The one before is kept under
    /// the same name with `.old`.
    pub journal_bytes: u64,
    /// `[control.probe]`.
    pub probe: Transfers,
    /// `[control.energy]`.
    pub energy: Energy,
}

/// Policy, by its name in `braid_core::policy::POLICIES`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Weights as configured, or as requested since.
    #[default]
    Static,
    /// Weights in proportion to estimated capacities.
    Capacity,
    /// Accesses that carry what is wanted for the least energy; the others rest.
    Energy,
    /// Access of the highest throughput, with those that have little less (paper 002).
    InterfaceSelection,
    /// Interface selection, then the fastest alone where that takes less energy (paper 002).
    Tuning,
}

impl Policy {
    /// All policies.
    pub const ALL: [Self; 5] = [
        Self::Static,
        Self::Capacity,
        Self::Energy,
        Self::InterfaceSelection,
        Self::Tuning,
    ];

    /// Returns its name in `braid_core::policy::POLICIES`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Capacity => "capacity",
            Self::Energy => "energy",
            Self::InterfaceSelection => "interface-selection",
            Self::Tuning => "tuning",
        }
    }

    /// Whether it decides by itself, so that paths are sampled for it.
    pub fn decides(self) -> bool {
        self != Self::Static
    }

    /// Whether it lets accesses rest, by the power models of a device's radios.
    pub fn rests(self) -> bool {
        !matches!(self, Self::Static | Self::Capacity)
    }
}

/// Estimator of an access, by its name in `braid_core::estimate::ESTIMATORS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Estimator {
    /// Traffic that flows anyway; until it has filled the access once, what is expected.
    #[default]
    Passive,
    /// Short transfers over the access; until there was one, the traffic.
    Probe,
    /// Rates that the access is expected to carry.
    Expected,
}

impl Estimator {
    /// All estimators.
    pub const ALL: [Self; 3] = [Self::Passive, Self::Probe, Self::Expected];

    /// Returns its name in `braid_core::estimate::ESTIMATORS`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passive => "passive",
            Self::Probe => "probe",
            Self::Expected => "expected",
        }
    }

    /// Returns the names of the estimators to ask, the preferred first.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Passive => &["passive", "expected"],
            Self::Probe => &["probe", "passive", "expected"],
            Self::Expected => &["expected"],
        }
    }
}

impl Default for Control {
    fn default() -> Self {
        let capacity = CapacitySettings::default();
        Self {
            policy: Policy::default(),
            hysteresis_percent: capacity.hysteresis_percent,
            step: capacity.step,
            journal: None,
            journal_bytes: 64 << 20,
            probe: Transfers::default(),
            energy: Energy::default(),
        }
    }
}

impl Control {
    /// Checks it, also against the role, the engine and the scheduler that are configured.
    pub(super) fn check(
        &self,
        role: Role,
        engines: &[Engine],
        scheduler: Option<&Scheduler>,
    ) -> Result<(), Problem> {
        let at = |key: &str, what: &str| Err(Problem::at_key(&["control", key], what));
        if self.hysteresis_percent > 100 {
            return at("hysteresis_percent", "expected 0 to 100 percent");
        }
        let steps = Rate::from_bps(1_000)..=Rate::from_bps(1_000_000_000);
        if !steps.contains(&self.step) {
            return at("step", "expected a step of 1 kbit/s to 1 Gbit/s");
        }
        if self.journal_bytes < MIN_JOURNAL {
            return at("journal_bytes", "expected 65536 bytes or more");
        }
        self.probe.check(role)?;
        self.energy.check(self.policy, role)?;
        if !self.policy.decides() {
            return Ok(());
        }
        let policy = self.policy.as_str();
        if engines.contains(&Engine::Tcp) {
            let what = format!(
                "policy \"{policy}\" sets weights of several paths, and engine = \"tcp\" has one: \
                 expected engine = \"mptcp\" or \"mpquic\", or policy = \"static\""
            );
            return at("policy", &what);
        }
        match scheduler.and_then(|s| s.name.as_deref()) {
            Some(name) if name != WEIGHTED => {
                let what = format!(
                    "policy \"{policy}\" sets weights, which scheduler \"{name}\" does not follow: \
                     write name = \"{WEIGHTED}\" or leave the name out, or policy = \"static\" in \
                     [control]"
                );
                Err(Problem::at_key(&["scheduler", "name"], what))
            }
            _ => Ok(()),
        }
    }
}
