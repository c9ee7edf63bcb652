//! Steering of the sessions.

use braid_api::Role;
use braid_core::control::Direction;
use braid_mpquic::{Access, Steering as Scheduling};

use crate::DaemonError;
use crate::accesses::Wanted;
use crate::config::quic::{self, Quic};
use crate::config::{self, Config};
use crate::engine::{ByName, Result};

/// Steering of the sessions: as configured, and as changed by requests since.
#[derive(Clone, Debug)]
pub(super) struct Steered {
    pub(super) scheduling: Scheduling,
    pub(super) accesses: Vec<Access>,
    /// Accesses that are left out by a request, by name.
    pub(super) disabled: Vec<String>,
}

pub(super) fn access(a: &config::Access, role: Role) -> Access {
    Access {
        name: a.name.clone(),
        interface: a.interface.as_ref().map(ToString::to_string),
        address: a.address,
        up: true,
        weight: a.weight.unwrap_or(1.0),
        priority: a.priority.unwrap_or(0).into(),
        backup: a.backup && role == Role::Device,
        expected: a.expected,
        limit: a.limit.up.filter(|_| role == Role::Device),
        registered: a.registered.is_some(),
    }
}

impl Steered {
    pub(super) fn configured(config: &Config, quic: &Quic, role: Role) -> Result<Self> {
        let default = quic::default_steering(quic.reinject);
        let change = config.scheduler.clone().unwrap_or_default();
        let mut scheduling =
            quic::steering(&change, &default, quic.lane).map_err(DaemonError::Config)?;
        // What the proxy sends, each device steers by itself.
        if role == Role::Device {
            scheduling.classes = config.class_steering(Direction::Up);
        }
        Ok(Self {
            scheduling,
            accesses: config.accesses.iter().map(|a| access(a, role)).collect(),
            disabled: Vec::new(),
        })
    }

    /// Returns the accesses that every session begins with: those of the file.
    pub(super) fn configured_accesses(&self) -> Vec<Access> {
        let all = self.accesses.iter();
        all.filter(|a| !a.registered).cloned().collect()
    }

    /// Takes over how an access is to be used.
    pub(super) fn adopt(&mut self, wanted: &Wanted) {
        if !wanted.enabled {
            self.disabled.push(wanted.name.clone());
        }
        for a in self.accesses.iter_mut().filter(|a| a.name == wanted.name) {
            a.backup = wanted.backup;
            a.priority = wanted.priority.unwrap_or(0).into();
            a.expected = wanted.expected;
            a.limit = wanted.limit.up;
        }
    }

    pub(super) fn set_weights(&mut self, weights: &ByName) {
        for a in &mut self.accesses {
            a.weight = weights.get(&a.name).copied().unwrap_or(1.0);
        }
    }
}
