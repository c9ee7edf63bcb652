//! Apply: the engines do what was decided, all of them or none.

use std::collections::BTreeMap;

use braid_api::Engine as Kind;

use super::{Daemon, Weights};
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

    /// Sets the weights of all connections that a policy has decided, if they are not in force.
    pub(super) async fn set_decided(&self, decided: BTreeMap<String, f64>) -> Result<()> {
        let mut new = self.sweep()?;
        if new.all == decided {
            return Ok(());
        }
        new.all = decided;
        self.set(new).await
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
