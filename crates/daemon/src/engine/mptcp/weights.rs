//! Weights of this end: of all connections, and of single ones until they end.

use std::collections::{BTreeMap, BTreeSet};

use braid_api::{Role, SchedulerChange};
use braid_mptcp::diag::TcpSocket;
use braid_mptcp::support;
use braid_mptcp::weights::{self, Rule};
use ipnet::IpNet;

use super::manager::Manager;
use super::namespace::Wanted;
use super::{LIST, Mptcp};
use crate::DaemonError;
use crate::config::{Access, Config};
use crate::ebpf::Wrr;
use crate::engine::{ByName, Result, Steering};
use crate::state::lock;
use crate::takeover::pins::{Configured, Kept, without};

/// Most addresses and networks that get the weights of a single connection before it has
/// subflows on them.
const FEW: usize = 16;
/// Most connections with weights of their own: the table in the kernel has room for 4096
/// addresses.
const MAX_CONNECTIONS: usize = 128;

/// Weights in force.
pub(super) struct InForce {
    pub(super) steering: Steering,
    /// Whether weights count, so that new addresses get them, too.
    pub(super) counts: bool,
}

impl InForce {
    /// Returns the weights of a configuration, which do not count yet.
    pub(super) fn configured(config: &Config) -> Self {
        Self {
            steering: Steering {
                weights: of_accesses(&config.accesses),
                ..Steering::default()
            },
            counts: false,
        }
    }
}

fn of_accesses(accesses: &[Access]) -> ByName {
    let of = |a: &Access| Some((a.name.clone(), a.weight?));
    accesses.iter().filter_map(of).collect()
}

impl Mptcp {
    /// Adopts what a killed end had in force, if the file has not changed since.
    pub(super) fn adopt(&self, manager: &mut Manager) -> Option<Steering> {
        let configured = Configured::of(manager.config());
        let kept = lock(&self.namespace).gone_on();
        let kept = kept.filter(|k| k.configured == configured)?;
        if self.is_device() {
            manager.begin_without(&without(&kept.weights));
        }
        let steering = Steering {
            weights: kept.weights,
            connections: kept.connections,
            // Their devices register again.
            addresses: BTreeMap::new(),
        };
        let mut weights = lock(&self.weights);
        weights.steering.clone_from(&steering);
        weights.counts = true;
        Some(steering)
    }

    /// Keeps it in force, for connections and addresses that are still there.
    fn keep(&self, config: &Config) -> Result<()> {
        let alive = self.sockets.tokens()?;
        let steering = {
            let mut weights = lock(&self.weights);
            weights
                .steering
                .connections
                .retain(|t, _| alive.contains(t));
            weights.steering.clone()
        };
        self.put_weights(&steering)?;
        self.remember(Configured::of(config))
    }

    /// Schedules, and has the congestion control, as configured; or goes on with what was
    /// left. In this order: plain TCP is to get what the namespace had before both.
    pub(super) async fn set_up(&self, config: &Config, adopted: bool) -> Result<()> {
        let scheduled = match adopted {
            true => self.keep(config),
            false => self.schedule_as(config).await,
        };
        // Also where the machine lacks what the first takes.
        let congested = self.set_configured_congestion_control(config).await;
        scheduled.and(congested)
    }

    async fn set_configured_congestion_control(&self, config: &Config) -> Result<()> {
        let wanted = Wanted::of(config);
        let done = self.set_congestion_control(wanted).await;
        match (wanted, done) {
            // Nobody has asked for it.
            (Wanted::Usual(name), Err(e)) => {
                let mut namespace = lock(&self.namespace);
                namespace.note(format!("connections do not get {name}: {e}"));
                namespace.set_congestion_control(Wanted::Namespaces, None)
            }
            (_, done) => done,
        }
    }

    async fn set_congestion_control(&self, wanted: Wanted<'_>) -> Result<()> {
        let missing = lock(&self.namespace).missing_congestion(wanted);
        let loaded = match missing {
            Some(missing) => Some(missing.load().await?),
            None => None,
        };
        lock(&self.namespace).set_congestion_control(wanted, loaded)
    }

    /// Loads weighted round robin if `change`, or weights that count after it, take it and it is
    /// not there. The manager is not to be locked meanwhile.
    pub(super) async fn load_weights(
        &self,
        change: Option<&SchedulerChange>,
        weighted: bool,
    ) -> Result<Option<Wrr>> {
        let missing = lock(&self.namespace).missing_weights(change, weighted)?;
        match missing {
            Some(missing) => missing.load().await.map(Some),
            None => Ok(None),
        }
    }

    /// Schedules as configured.
    async fn schedule_as(&self, config: &Config) -> Result<()> {
        let change = match &config.scheduler {
            Some(change) => change.clone(),
            None if lock(&self.namespace).stands_in() => SchedulerChange {
                name: Some("default".into()),
                ..SchedulerChange::default()
            },
            None => return Ok(()),
        };
        let steering = lock(&self.weights).steering.clone();
        let weighted = !steering.weights.is_empty();
        let mut loaded = self.load_weights(Some(&change), weighted).await?;
        lock(&self.namespace).schedule(&change, &mut loaded)?;
        // None: what requests set is taken back.
        if weighted || lock(&self.namespace).stands_in() {
            lock(&self.namespace).enable_weights(&mut loaded)?;
            self.put_weights(&steering)?;
            lock(&self.weights).counts = true;
        }
        self.remember(Configured::of(config))
    }

    /// Saves the weights in force for the daemon that follows this one.
    pub(super) fn remember(&self, configured: Configured) -> Result<()> {
        let Steering {
            weights,
            connections,
            ..
        } = lock(&self.weights).steering.clone();
        lock(&self.namespace).remember(Kept {
            weights,
            connections,
            configured,
        })
    }

    /// Puts the weights in force for addresses and subflows as they are now. What can
    /// go wrong went wrong when they were set.
    pub(super) fn put_known_weights(&self) {
        let steering = lock(&self.weights).steering.clone();
        let _ = self.put_weights(&steering);
    }

    /// Gives the kernel these weights, for the addresses and subflows that are there.
    fn put_weights(&self, steering: &Steering) -> Result<()> {
        // The kernel's own default, for those that nobody has named yet.
        let of = |name: &str, own: Option<&ByName>| {
            let own = own.and_then(|o| o.get(name));
            let weight = own.or_else(|| steering.weights.get(name));
            weight.copied().unwrap_or(1.0)
        };
        let mut named = self.sockets.names();
        let single_addresses = &steering.addresses;
        for address in single_addresses.keys() {
            let net = IpNet::from(*address);
            // The rules of networks give way to those of the addresses in them.
            if let Some(name) = self.sockets.access_at(*address)
                && named.iter().all(|(n, _)| *n != net)
            {
                named.push((net, name));
            }
        }
        let all_own = &steering.connections;
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
            remote: !self.is_device(),
            weight: match single_addresses.get(&net.addr()) {
                Some(weight) if own.is_none() && is_host(net) => *weight,
                _ => of(name, own),
            } / parts.get(name).copied().unwrap_or(1.0),
            access: numbers.get(name).copied().unwrap_or(0),
        };
        let general: Vec<Rule> = named.iter().map(|(net, n)| rule(net, n, None)).collect();
        let mut single = BTreeMap::new();
        for (token, own) in all_own {
            let present = subflows.iter().filter(|(t, ..)| t == token);
            let used = |net: &IpNet| present.clone().any(|(_, p, _)| net.contains(p));
            let mine = named.iter().enumerate();
            let mine = mine.filter(|(i, (net, _))| *i < FEW || used(net));
            let mine = mine.map(|(_, (net, n))| rule(net, n, Some(own)));
            single.insert(*token, mine.collect());
        }
        lock(&self.namespace).weigh(&general, &single)
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
        let weights = lock(&self.weights);
        !weights.steering.connections.is_empty() || weights.counts && weights::known_to_kernel()
    }

    /// Sets every weight at once, or none.
    pub(super) async fn set_weights(&self, new: &Steering) -> Result<()> {
        let mut loaded = self.load_weights(None, true).await?;
        // Before anything is read: another change may be under way.
        let mut manager = self.manager.lock().await;
        let before = lock(&self.weights).steering.clone();
        let stood_in = lock(&self.namespace).stands_in();
        lock(&self.namespace).enable_weights(&mut loaded)?;
        if let Err(e) = self.weigh_all(&mut manager, new).await {
            // Roll back. A failing rollback has the same cause, so only the first error is returned.
            let _ = self.weigh_all(&mut manager, &before).await;
            if !stood_in {
                let _ = lock(&self.namespace).stand_down();
            }
            self.wake.notify_one();
            return Err(e);
        }
        lock(&self.weights).counts = true;
        Ok(())
    }

    async fn weigh_all(&self, manager: &mut Manager, new: &Steering) -> Result<()> {
        let put = self.put_weights(new);
        // A subflow that begins meanwhile is to get these.
        lock(&self.weights).steering.clone_from(new);
        let excluded = match self.is_device() && lock(&self.namespace).stands_in() {
            true => manager.exclude(&without(&new.weights)).await,
            false => Ok(()),
        };
        let configured = Configured::of(manager.config());
        put.and(excluded).and(self.remember(configured))
    }

    /// Checks that a connection can have weights of its own, and these.
    pub(super) fn can_weigh(&self, token: u32, own: &ByName, general: &Steering) -> Result<()> {
        self.counts_for(token)?;
        for (name, weight) in own {
            if *weight == 0.0 {
                return Err(DaemonError::Refused(format!(
                    "access \"{name}\": weight 0 makes an access a backup (MP_PRIO), which holds \
                     for all connections: leave out --connection, or take a small weight"
                )));
            }
            if self.is_device() && general.weights.get(name) == Some(&0.0) {
                return Err(DaemonError::Refused(format!(
                    "access \"{name}\" has weight 0, which makes it a backup for all connections: \
                     give it one above 0 first"
                )));
            }
        }
        let connections = &general.connections;
        if connections.len() >= MAX_CONNECTIONS && !connections.contains_key(&token) {
            return Err(DaemonError::Refused(format!(
                "{MAX_CONNECTIONS} connections have weights of their own, and no more can: give one \
                 back with braid set weights --connection TOKEN --reset"
            )));
        }
        Ok(())
    }

    /// Checks that weights count for a connection.
    fn counts_for(&self, token: u32) -> Result<()> {
        let namespace = lock(&self.namespace);
        let Some(name) = namespace.stand_in_name() else {
            return Err(match support::sysctl("net.mptcp.weights") {
                Some(_) => DaemonError::Lacking(
                    "this kernel's own schedulers have weights for all connections together\n  \
                     to enable it: run it on a kernel without them, where weights come by eBPF"
                        .into(),
                ),
                None => DaemonError::Refused(
                    "weights do not count here yet: set those of all connections first, or \
                     [scheduler] name = \"wrr\""
                        .into(),
                ),
            });
        };
        let other = |s: &&TcpSocket| s.congestion_control != name;
        let sockets = self.sockets.tcp()?;
        let mut mine = sockets.iter().filter(|s| s.token() == Some(token));
        match mine.find(other) {
            Some(s) => Err(DaemonError::Refused(format!(
                "connection {token} has the congestion control {}, not that by which weights \
                 count ({name}): it began before them, or chose its own",
                s.congestion_control
            ))),
            None => Ok(()),
        }
    }

    /// Forgets the weights of a connection that has ended.
    pub(super) fn forget(&self, token: u32) {
        let had = lock(&self.weights).steering.connections.remove(&token);
        if had.is_some() {
            self.put_known_weights();
        }
    }

    /// Returns the subflows of all connections: token, address at the device, access.
    fn subflows(&self) -> Result<BTreeSet<(u32, IpNet, String)>> {
        let sockets = self.sockets.subflows(LIST)?;
        let of = |s: &TcpSocket| {
            let access = self.sockets.access(s)?;
            let address = match self.shared.role {
                Role::Device => s.local.ip(),
                Role::Proxy => s.remote.ip(),
            };
            Some((s.token()?, address.into(), access))
        };
        Ok(sockets.iter().filter_map(of).collect())
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
