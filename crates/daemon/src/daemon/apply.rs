//! Apply: the engines do what was decided, all of them or none.

use std::collections::BTreeSet;

use braid_api::{AccessChange, Engine as Kind};

use super::{Daemon, Weights};
use crate::control::Decided;
use crate::engine::{ByName, Change, Engine, Result};
use crate::state::lock;

impl Daemon {
    /// Makes a change by every engine, or by none: what those before the one that refuses have done
    /// is taken back.
    pub(super) async fn all_or_none(
        &self,
        change: impl Fn(&dyn Engine) -> Change + Sync,
        back: impl Fn(&dyn Engine) -> Change + Sync,
    ) -> Result<()> {
        for (n, e) in self.engines.iter().enumerate() {
            if let Err(why) = e.apply(&change(&**e)).await {
                for e in &self.engines[..n] {
                    // Its reason is no news beside the first.
                    let _ = e.apply(&back(&**e)).await;
                }
                return Err(why);
            }
        }
        Ok(())
    }

    /// Sets every weight at once, or none.
    pub(super) async fn set(&self, new: Weights) -> Result<()> {
        let before = lock(&self.weights).clone();
        let by = |w: &Weights, e: &dyn Engine| Change::Weights(w.of(e.kind()));
        self.all_or_none(|e| by(&new, e), |e| by(&before, e))
            .await?;
        *lock(&self.weights) = new;
        Ok(())
    }

    /// Sets weights that the engine `from` has in force already.
    pub(super) async fn adopt_weights(&self, from: Kind, weights: Weights) -> Result<()> {
        for e in self.engines.iter().filter(|e| e.kind() != from) {
            e.apply(&Change::Weights(weights.of(e.kind()))).await?;
        }
        *lock(&self.weights) = weights;
        Ok(())
    }

    /// Sets what a policy has decided for all connections, where it is not in force.
    pub(super) async fn set_decided(&self, decided: Decided) -> Result<()> {
        if *lock(&self.resting) != decided.resting {
            tracing::info!("policy: {}", decided.why);
            self.set_resting(decided.resting).await?;
        }
        let mut new = self.sweep()?;
        if new.all == decided.weights {
            return Ok(());
        }
        new.all = decided.weights;
        self.set(new).await
    }

    /// Lets these accesses rest, and no others. Those that are to carry do so before others cease.
    async fn set_resting(&self, resting: BTreeSet<String>) -> Result<()> {
        let before = lock(&self.resting).clone();
        let woken = before.difference(&resting).map(|name| (name, false));
        let changes = woken.chain(resting.difference(&before).map(|name| (name, true)));
        for (name, rests) in changes {
            let wish = lock(&self.wanted).iter().find(|w| w.name == *name).cloned();
            // One that is configured no more has nothing to rest from.
            let Some(wish) = wish else { continue };
            let backup = |rests| {
                let backup = Some(wish.backup || rests);
                let change = AccessChange {
                    backup,
                    ..AccessChange::default()
                };
                Change::Access(name.clone(), change)
            };
            self.all_or_none(|_| backup(rests), |_| backup(!rests))
                .await?;
            let mut now = lock(&self.resting);
            match rests {
                true => drop(now.insert(name.clone())),
                false => drop(now.remove(name)),
            }
        }
        *lock(&self.resting) = resting;
        Ok(())
    }

    /// Lets those rest anew that the policy has decided: the engines have gone back to what is
    /// configured.
    pub(super) async fn rest_again(&self, resting: BTreeSet<String>) -> Result<()> {
        lock(&self.resting).clear();
        self.set_resting(resting).await
    }

    /// Returns a change of an access as the engines are to make it: one that rests stays a backup.
    pub(super) fn with_rest(&self, name: &str, change: AccessChange) -> AccessChange {
        let rests = lock(&self.resting).contains(name);
        AccessChange {
            backup: change.backup.map(|backup| backup || rests),
            ..change
        }
    }

    /// Returns the weights; those of connections that have ended are forgotten.
    pub(super) fn sweep(&self) -> Result<Weights> {
        let mut weights = lock(&self.weights).clone();
        if weights.connections.is_empty() {
            return Ok(weights);
        }
        let mut alive = Vec::new();
        for e in &self.engines {
            alive.push((e.kind(), e.tokens()?));
        }
        let lives = |token: &u32, (of, _): &mut (Kind, ByName)| {
            let mut engines = alive.iter();
            engines.any(|(kind, tokens)| kind == of && tokens.contains(token))
        };
        weights.connections.retain(lives);
        Ok(weights)
    }
}
