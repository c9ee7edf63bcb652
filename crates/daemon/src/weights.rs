//! How this end shares what it sends: as configured, and as requests change it.

use std::collections::{BTreeMap, BTreeSet};

use braid_api::{Role, SchedulerChange, Weights};
use braid_core::weight;
use braid_mptcp::weights::{self, Rule};
use ipnet::IpNet;

use super::DaemonError;
use super::config::Config;
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
    fn keep(&self, manager: &Manager) -> Result<(), DaemonError> {
        self.sweep()?;
        let weights = lock(&self.weights).clone();
        self.put_weights(&weights)?;
        self.remember(manager)
    }

    /// Schedules, and has the congestion control, as configured; or goes on with what was
    /// left. In this order: plain TCP is to get what the namespace had before both.
    pub(super) fn set_up(&self, manager: &Manager, goes_on: bool) -> Result<(), DaemonError> {
        let scheduled = match goes_on {
            true => self.keep(manager),
            false => self.configured(manager.config()),
        };
        // Also where the machine lacks what the first takes.
        let congested = lock(&self.engine).congest(manager.config().cc.as_deref());
        scheduled.and(congested)
    }

    /// Schedules as configured.
    fn configured(&self, config: &Config) -> Result<(), DaemonError> {
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
        let all_own = lock(&self.own_weights).clone();
        let by_address = weights::known_to_kernel();
        let subflows = match by_address || !all_own.is_empty() {
            true => self.subflows()?,
            false => BTreeSet::new(),
        };
        if by_address {
            named.retain(|(net, _)| is_host(net));
            let seen: BTreeSet<_> = named.iter().map(|(net, _)| *net).collect();
            let new = subflows.iter().filter(|(_, net, _)| !seen.contains(net));
            let new: BTreeMap<_, _> = new.map(|(_, net, name)| (*net, name.clone())).collect();
            named.extend(new);
        }
        let numbers = self.numbers();
        let parts = match by_address {
            true => most_subflows(&subflows),
            false => BTreeMap::new(),
        };
        let rule = |net: &IpNet, name: &str, own: Option<&ByName>| Rule {
            net: *net,
            remote: self.role == Role::Proxy,
            weight: of(name, own) / parts.get(name).copied().unwrap_or(1.0),
            access: numbers.get(name).copied().unwrap_or(0),
        };
        let general: Vec<Rule> = named.iter().map(|(net, n)| rule(net, n, None)).collect();
        let mut single = BTreeMap::new();
        for (token, own) in &all_own {
            let present = subflows.iter().filter(|(t, ..)| t == token);
            let used = |net: &IpNet| present.clone().any(|(_, p, _)| net.contains(p));
            let mine = named.iter().enumerate();
            let mine = mine.filter(|(i, (net, _))| *i < FEW || used(net));
            let mine = mine.map(|(_, (net, n))| rule(net, n, Some(own)));
            single.insert(*token, mine.collect());
        }
        lock(&self.engine).weigh(&general, &single)
    }

    /// Returns the number of each access, as [`Rule::access`]. A proxy may have more accesses than
    /// there are numbers, but those of one device lie near each other.
    fn numbers(&self) -> BTreeMap<String, u8> {
        let accesses = lock(&self.accesses);
        let names = accesses.iter().map(|a| a.name.clone());
        names.zip((1..=weights::ACCESSES).cycle()).collect()
    }

    /// Whether a subflow that begins may need to be weighed: those of connections with
    /// weights of their own, and all where the kernel goes by the address.
    pub(super) fn weighs_each(&self) -> bool {
        !lock(&self.own_weights).is_empty() || *lock(&self.weighed) && weights::known_to_kernel()
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
        // Before anything is read: another request may be under way.
        let mut manager = self.manager.lock().await;
        self.check(change)?;
        self.can_leave_out(change)?;
        let before = lock(&self.weights).clone();
        let stood_in = lock(&self.engine).stands_in();
        let mut new = before.clone();
        new.extend(change.0.clone());
        self.somebody_carries(&new)?;
        if let Err(e) = self.weigh_all(&mut manager, &new).await {
            // What was done of it is undone; what that meets is what this met.
            let _ = self.weigh_all(&mut manager, &before).await;
            if !stood_in {
                let _ = lock(&self.engine).stand_down();
            }
            self.wake.notify_one();
            return Err(e);
        }
        *lock(&self.weighed) = true;
        Ok(Weights(new))
    }

    async fn weigh_all(&self, manager: &mut Manager, new: &ByName) -> Result<(), DaemonError> {
        let excludes = self.role == Role::Device;
        let put = self.put_weights(new);
        // A subflow that begins meanwhile is to get these.
        lock(&self.weights).clone_from(new);
        let excluded = match excludes && lock(&self.engine).stands_in() {
            true => manager.exclude(&without(new)).await,
            false => Ok(()),
        };
        put.and(excluded).and(self.remember(manager))
    }

    /// A weight of 0 is MP_PRIO, which the end that has the address sends: at the proxy
    /// only Braid's kernel can leave an access out.
    fn can_leave_out(&self, change: &Weights) -> Result<(), DaemonError> {
        let mut none = without(&change.0).into_iter();
        match none.next() {
            Some(name) if self.role == Role::Proxy && !weights::known_to_kernel() => {
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
            weight::check(name, weight).map_err(DaemonError::Config)?;
        }
        Ok(())
    }

    /// Whether an access has a weight above 0; those that nobody has named have 1.
    fn somebody_carries(&self, weights: &ByName) -> Result<(), DaemonError> {
        let accesses = lock(&self.accesses);
        let all = accesses.iter();
        let all = all.map(|a| weights.get(&a.name).copied().unwrap_or(1.0));
        weight::check_all(all).map_err(DaemonError::Config)
    }
}

fn is_host(net: &IpNet) -> bool {
    net.prefix_len() == net.max_prefix_len()
}

/// How many subflows by each access a connection has at most.
fn most_subflows(all: &BTreeSet<(u32, IpNet, String)>) -> BTreeMap<&str, f64> {
    let mut of_each: BTreeMap<(u32, &str), f64> = BTreeMap::new();
    for (token, _, name) in all {
        *of_each.entry((*token, name)).or_default() += 1.0;
    }
    let mut most = BTreeMap::new();
    for ((_, name), n) in of_each {
        let before = most.entry(name).or_insert(n);
        *before = n.max(*before);
    }
    most
}

/// The accesses that are left out.
fn without(weights: &ByName) -> Vec<&str> {
    let none = weights.iter().filter(|(_, w)| **w == 0.0);
    none.map(|(name, _)| name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subflows_are_counted_by_connection_and_access() {
        let net = |s: &str| s.parse().unwrap();
        let all = [
            (1, net("10.0.1.2/32"), "nr".into()),
            (1, net("10.0.2.2/32"), "wifi".into()),
            (2, net("10.0.1.2/32"), "nr".into()),
            (2, net("10.0.1.3/32"), "nr".into()),
        ];
        let all = all.into();
        let most = most_subflows(&all);
        assert_eq!(most, [("nr", 2.0), ("wifi", 1.0)].into());
    }
}
