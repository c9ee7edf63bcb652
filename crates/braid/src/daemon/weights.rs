//! How this end shares what it sends: as configured, and as requests change it.

use std::collections::BTreeMap;

use braid_core::api::{Role, SchedulerChange, Weights};
use ipnet::IpNet;

use super::DaemonError;
use super::config::Config;
use super::engine::{self, ByNet};
use super::keep::{ByName, Configured, Kept};
use super::manager::Manager;
use super::state::{State, lock, no_access};

/// At most so many addresses and networks get the weights of a single connection before
/// it has subflows on them.
const FEW: usize = 16;

impl State {
    /// Takes over what a killed end had in force, if the file has not changed since.
    pub(super) fn go_on(&self, manager: &mut Manager) -> bool {
        let configured = Configured::of(manager.config());
        let kept = lock(&self.engine).gone_on();
        let Some(kept) = kept.filter(|k| k.configured == configured) else {
            return false;
        };
        if self.role == Role::Device {
            manager.begin_without(&without(&kept.weights));
        }
        *lock(&self.weights) = kept.weights;
        *lock(&self.own_weights) = kept.connections;
        *lock(&self.weighed) = true;
        true
    }

    /// Keeps it in force, for connections and addresses that are still there.
    pub(super) fn keep(&self, manager: &Manager) -> Result<(), DaemonError> {
        self.sweep()?;
        let weights = lock(&self.weights).clone();
        self.put_weights(&weights)?;
        self.remember(manager)
    }

    /// Schedules as configured.
    pub(super) fn configured(&self, config: &Config) -> Result<(), DaemonError> {
        let change = match &config.scheduler {
            Some(change) => change.clone(),
            None if lock(&self.engine).stands_in() => SchedulerChange {
                name: Some("default".into()),
                ..SchedulerChange::default()
            },
            None => return Ok(()),
        };
        lock(&self.engine).schedule(&change)?;
        let weights = lock(&self.weights).clone();
        // None: what requests set is taken back.
        if !weights.is_empty() || lock(&self.engine).stands_in() {
            self.put_weights(&weights)?;
            *lock(&self.weighed) = true;
        }
        self.remember_as(Configured::of(config))
    }

    pub(super) fn remember(&self, manager: &Manager) -> Result<(), DaemonError> {
        self.remember_as(Configured::of(manager.config()))
    }

    fn remember_as(&self, configured: Configured) -> Result<(), DaemonError> {
        let kept = Kept {
            weights: lock(&self.weights).clone(),
            connections: lock(&self.own_weights).clone(),
            configured,
        };
        lock(&self.engine).remember(kept)
    }

    /// The weights in force, for addresses and subflows as they are now. What can
    /// go wrong went wrong when they were set.
    pub(super) fn put_known_weights(&self) {
        let weights = lock(&self.weights).clone();
        let _ = self.put_weights(&weights);
    }

    pub(super) fn put_weights(&self, weights: &ByName) -> Result<(), DaemonError> {
        // The kernel's own default, for those that nobody has named yet.
        let of = |name: &str, own: Option<&ByName>| {
            let own = own.and_then(|o| o.get(name));
            own.or_else(|| weights.get(name)).copied().unwrap_or(1.0)
        };
        let mut named = lock(&self.names).clone();
        if engine::knows_weights() {
            named.retain(|(net, _)| is_host(net));
            named.extend(self.subflows_of(None)?);
        }
        let general: ByNet = named.iter().map(|(a, n)| (*a, of(n, None))).collect();
        let mut single = BTreeMap::new();
        let all_own = lock(&self.own_weights).clone();
        for (token, own) in &all_own {
            let present = self.subflows_of(Some(*token))?;
            let used = |net: &IpNet| present.keys().any(|p| net.contains(p));
            let mine = named.iter().enumerate();
            let mine = mine.filter(|(i, (net, _))| *i < FEW || used(net));
            let mine = mine.map(|(_, (net, n))| (*net, of(n, Some(own))));
            single.insert(*token, mine.collect());
        }
        lock(&self.engine).weigh(&general, &single)
    }

    /// Whether a subflow that begins may need to be weighed: those of connections with
    /// weights of their own, and all of networks where the kernel goes by the address.
    pub(super) fn weighs_each(&self) -> bool {
        let networks = || lock(&self.names).iter().any(|(net, _)| !is_host(net));
        !lock(&self.own_weights).is_empty()
            || *lock(&self.weighed) && engine::knows_weights() && networks()
    }

    pub(super) async fn schedule(
        &self,
        change: &SchedulerChange,
    ) -> Result<SchedulerChange, DaemonError> {
        let manager = self.manager.lock().await;
        lock(&self.engine).schedule(change)?;
        self.remember(&manager)?;
        Ok(lock(&self.engine).scheduler())
    }

    /// Changes some weights, all of them at once or none.
    pub(super) async fn weigh(&self, change: &Weights) -> Result<Weights, DaemonError> {
        let mut new = lock(&self.weights).clone();
        self.check(change)?;
        self.can_leave_out(change)?;
        new.extend(change.0.clone());
        let mut manager = self.manager.lock().await;
        self.put_weights(&new)?;
        if self.role == Role::Device && lock(&self.engine).stands_in() {
            manager.exclude(&without(&new)).await?;
        }
        lock(&self.weights).clone_from(&new);
        *lock(&self.weighed) = true;
        self.remember(&manager)?;
        Ok(Weights(new))
    }

    /// A weight of 0 is MP_PRIO, which the end that has the address sends: at the proxy
    /// only Braid's kernel can leave an access out.
    fn can_leave_out(&self, change: &Weights) -> Result<(), DaemonError> {
        let mut none = without(&change.0).into_iter();
        match none.next() {
            Some(name) if self.role == Role::Proxy && !engine::knows_weights() => {
                Err(DaemonError::Refused(format!(
                    "access \"{name}\": weight 0 leaves an access out (MP_PRIO), which only the \
                     device can do: set it there, or take a small weight here"
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether these are weights of accesses.
    pub(super) fn check(&self, change: &Weights) -> Result<(), DaemonError> {
        let accesses = lock(&self.accesses);
        for (name, &weight) in &change.0 {
            if !accesses.iter().any(|a| a.name == *name) {
                return Err(DaemonError::Unknown(no_access(&accesses, name)));
            }
            if !(weight.is_finite() && weight >= 0.0) {
                return Err(DaemonError::Config(format!(
                    "access \"{name}\": a weight is a number, 0 or above"
                )));
            }
        }
        Ok(())
    }
}

fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

/// The accesses that are left out.
fn without(weights: &ByName) -> Vec<&str> {
    let none = weights.iter().filter(|(_, w)| **w == 0.0);
    none.map(|(name, _)| name.as_str()).collect()
}
