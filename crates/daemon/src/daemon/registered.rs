//! Accesses that devices have registered, beside those of the file.

use std::collections::BTreeMap;
use std::sync::MutexGuard;

use braid_core::Time;

use super::Daemon;
use crate::accesses::Wanted;
use crate::config::Access;
use crate::engine::{ByName, Result};
use crate::registration::{Device, Origin, Registry, Wish};
use crate::state::{lock, now};

impl Daemon {
    /// Waits for the turn to change anything.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    pub(crate) fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }

    /// Takes up what a killed daemon knew of devices.
    pub(crate) async fn adopt_registered(&self) {
        let _turn = self.turn.lock().await;
        let Some(before) = self.kept_registry.read::<Registry>() else {
            return;
        };
        let accesses = {
            let mut registry = self.registry();
            registry.adopt(before, Time::from_nanos(now()));
            registry.accesses()
        };
        self.go_by_registered(accesses).await;
    }

    /// Returns the numbers of the devices that are known, with a session of each that has one.
    pub(crate) fn registered_devices(&self) -> Vec<(u64, Origin)> {
        self.registry().origins()
    }

    /// Whether the file, or a policy, has connections go by weights.
    pub(crate) fn goes_by_weights(&self) -> bool {
        let config = lock(&self.config);
        let scheduler = config.scheduler.as_ref().and_then(|s| s.name.as_deref());
        // Multipath QUIC always has weights, and is asked by sessions alone.
        scheduler.is_some_and(|name| name != "default")
    }

    /// Whether accesses of the weight 0 can be left out here.
    pub(crate) fn leaves_out(&self) -> bool {
        self.all_can(|c| c.leave_out).is_ok()
    }

    /// Saves what is known of devices, so that it outlives this process if that is killed.
    pub(crate) fn save_registered(&self) {
        self.kept_registry.write(&*self.registry());
    }

    /// Returns the registration of the accesses, at the device.
    pub(crate) fn registers(&self) -> &Device {
        &self.registers
    }

    /// Returns the name here of each access of a device.
    pub(crate) fn names_of(&self, id: u64) -> BTreeMap<String, String> {
        self.registry().names(id)
    }

    /// Returns the weights that a device has requested and that are not in force yet.
    pub(crate) fn wish(&self, id: u64, from: &Origin) -> Option<Wish> {
        self.registry().wish(id, from)
    }

    /// Returns the weights that a device has requested of accesses that are known, by its own
    /// names.
    pub(crate) fn requested_by(&self, id: u64) -> ByName {
        self.registry().requested(id)
    }

    /// Notes that requested weights are in force.
    pub(crate) fn fulfilled(&self, id: u64, from: &Origin, wish: Wish) {
        self.registry().fulfilled(id, from, wish);
    }

    /// Returns the weight of each access; 1 where nobody has named one.
    pub(crate) fn weights_of_all(&self) -> ByName {
        let wanted = lock(&self.wanted);
        let mut all: ByName = wanted.iter().map(|a| (a.name.clone(), 1.0)).collect();
        all.extend(lock(&self.weights).all.clone());
        all
    }

    /// Gives the addresses of devices on accesses of the file the weights that their devices have
    /// requested, in place of those of the accesses, and no others. A proxy that goes by no weights
    /// has none.
    pub(crate) async fn set_address_weights(&self) -> Result<()> {
        let _turn = self.turn.lock().await;
        let addresses = match self.goes_by_weights() {
            true => self.registry().address_weights(),
            false => BTreeMap::new(),
        };
        if lock(&self.weights).addresses == addresses {
            return Ok(());
        }
        self.all_can(|c| c.schedule)?;
        let mut new = self.sweep()?;
        new.addresses = addresses;
        self.set(new).await
    }

    /// Returns the registered accesses beside those of a file that is read again; their weights
    /// are taken as requested with the next registration.
    pub(super) fn registered_beside(&self, file: &[Access]) -> Vec<Access> {
        let mut registry = self.registry();
        registry.forget_wishes();
        let mut all = registry.accesses();
        all.retain(|a| file.iter().all(|f| f.name != a.name));
        all
    }

    /// Steers by the registered accesses as they are now, in one turn.
    pub(crate) async fn go_by_registered(&self, registered: Vec<Access>) {
        let (before, config) = {
            let mut config = lock(&self.config);
            let before = config.accesses.clone();
            config.accesses.retain(|a| a.registered.is_none());
            config.accesses.extend(registered);
            if config.accesses == before {
                return;
            }
            (before, config.clone())
        };
        self.follow_registered(&before, &config.accesses);
        let at = Time::from_nanos(now());
        if let Some(decided) = self.shared.control.go_on_with(&config, at) {
            lock(&self.weights).all = decided.weights;
        }
        let weights = lock(&self.weights).clone();
        for e in &self.engines {
            e.learn(&config.accesses, &weights.of(e.kind())).await;
        }
    }

    /// Keeps wishes and weights of the accesses that there are, and takes weights that devices
    /// have configured, or configured otherwise.
    fn follow_registered(&self, before: &[Access], accesses: &[Access]) {
        let mut wanted = lock(&self.wanted);
        let mut now = Wanted::configured(accesses);
        for a in &mut now {
            if let Some(before) = wanted.iter().find(|w| w.name == a.name) {
                a.clone_from(before);
            }
        }
        let mut weights = lock(&self.weights);
        for a in accesses.iter().filter(|a| a.registered.is_some()) {
            let before = before.iter().find(|b| b.name == a.name);
            match a.weight {
                same if before.is_some_and(|b| b.weight == same) => {}
                Some(weight) => drop(weights.all.insert(a.name.clone(), weight)),
                None => drop(weights.all.remove(&a.name)),
            }
        }
        let gone = |name: &String| {
            wanted.iter().any(|w| w.name == *name) && now.iter().all(|w| w.name != *name)
        };
        weights.all.retain(|name, _| !gone(name));
        *wanted = now;
    }
}
