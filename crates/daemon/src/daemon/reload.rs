//! The file is read again, on SIGHUP.

use std::collections::BTreeSet;
use std::sync::Arc;

use braid_api::{EventKind, Role};
use braid_core::Time;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Daemon, Weights};
use crate::DaemonError;
use crate::accesses::Wanted;
use crate::config::Config;
use crate::engine::Result;
use crate::registration::fulfil_all;
use crate::signals::held_back;
use crate::state::{lock, now};

/// Listens to SIGHUP.
pub(crate) fn hangups() -> Result<Signal> {
    held_back(|| signal(SignalKind::hangup()))
        .map_err(|e| DaemonError::Failed(format!("listen to SIGHUP: {e}")))
}

/// Reads the configuration again on each SIGHUP.
pub(crate) async fn on_hangups(mut hangups: Signal, daemon: Arc<Daemon>) -> DaemonError {
    while hangups.recv().await.is_some() {
        daemon.reload().await;
        match daemon.shared().role {
            Role::Device => {
                daemon.registers().forget_requests().await;
                daemon.shared().registration.changed.notify_one();
            }
            Role::Proxy => fulfil_all(&daemon).await,
        }
    }
    DaemonError::Failed("listen to SIGHUP: no more can come".into())
}

impl Daemon {
    /// Reads the configuration again. One that cannot be had changes nothing.
    pub(crate) async fn reload(&self) {
        let _turn = self.turn.lock().await;
        let error = self.read_again().await.err();
        let error = error.map(|e| e.to_string());
        if let Some(e) = &error {
            tracing::error!("{e}");
        }
        lock(&self.config_error).clone_from(&error);
        self.shared.log(None, EventKind::Configured { error });
    }

    async fn read_again(&self) -> Result<()> {
        let mut config = Config::load(&self.shared.file, self.shared.role)?;
        let before = lock(&self.config).clone();
        config.keep_numbers(&before);
        // Addresses of names are known until these are resolved again.
        if (&config.hosts, &config.fallback) == (&before.hosts, &before.fallback) {
            config.proxy.clone_from(&before.proxy);
        }
        config
            .accesses
            .extend(self.registered_beside(&config.accesses));
        if config.engines != before.engines {
            return Err(self.shared.fixed("which engines run"));
        }
        if config.metrics != before.metrics {
            return Err(self.shared.fixed("`listen` of [metrics]"));
        }
        if config.lan != before.lan {
            return Err(self.shared.fixed("[lan]"));
        }
        if config.converter != before.converter {
            return Err(self.shared.fixed("[converter]"));
        }
        if config.programs != before.programs {
            return Err(self.shared.fixed("`default` and `kill_switch`"));
        }
        for e in &self.engines {
            e.prepare(&before, &config).await?;
        }
        // What requests changed is as configured again.
        *lock(&self.wanted) = Wanted::configured(&config.accesses);
        self.shared.usage.released();
        let mut weights = Weights::configured(&config.accesses);
        let decided = self
            .shared
            .control
            .configure(&config, Time::from_nanos(now()));
        let mut resting = BTreeSet::new();
        if let Some(decided) = decided {
            weights.all = decided.weights;
            resting = decided.resting;
        }
        lock(&self.weights).clone_from(&weights);
        lock(&self.config).clone_from(&config);
        self.save();
        let mut done = Ok(());
        for e in &self.engines {
            let reloaded = e.reload(&config, &weights.of(e.kind())).await;
            done = done.and(reloaded);
        }
        done = done.and(self.rest_again(resting).await);
        if let Some(lan) = &*self.lan.lock().await {
            done = done.and(lan.set_rules(&config, &self.shared).await);
            done = done.and(lan.reach(&config.proxy).await);
        }
        self.shared.names.changed.notify_one();
        done
    }
}
