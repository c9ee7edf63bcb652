//! Weights: of all sessions, and of single ones until they end.

use std::collections::BTreeMap;

use braid_api::Weights;
use braid_core::weight;

use super::state::State;
use crate::DaemonError;
use crate::state::lock;

type Result<T> = std::result::Result<T, DaemonError>;
type ByName = BTreeMap<String, f64>;

/// `general` with a session's own in their place; refused where nothing would be left.
fn overlaid(general: &ByName, own: &ByName, of: &str) -> Result<ByName> {
    let mut all = general.clone();
    all.extend(own.clone());
    match weight::check_all(all.values().copied()) {
        Ok(()) => Ok(all),
        Err(e) => Err(DaemonError::Config(format!("{e}{of}"))),
    }
}

impl State {
    fn check(&self, weights: &Weights) -> Result<()> {
        for (name, weight) in &weights.0 {
            self.find(name)?;
            weight::check(name, *weight).map_err(DaemonError::Config)?;
        }
        Ok(())
    }

    fn general(&self) -> ByName {
        let steered = lock(&self.steered);
        let all = steered.accesses.iter();
        all.map(|a| (a.name.clone(), a.weight)).collect()
    }

    /// Returns the weights that a session is steered by.
    pub(super) fn weights_of(&self, token: u32) -> Vec<(String, f64)> {
        let mut all = self.general();
        all.extend(self.own_weights(token).unwrap_or_default());
        all.into_iter().collect()
    }

    /// Returns the weights that hold for a session alone.
    pub(super) fn own_weights(&self, token: u32) -> Option<ByName> {
        lock(&self.own).get(&token).cloned()
    }

    /// Changes those of all.
    pub(super) fn weigh_all(&self, change: &Weights) -> Result<Weights> {
        self.check(change)?;
        let new = overlaid(&self.general(), &change.0, "")?;
        for (token, own) in lock(&self.own).iter() {
            overlaid(&new, own, &format!(" (session {token})"))?;
        }
        for a in &mut lock(&self.steered).accesses {
            a.weight = new.get(&a.name).copied().unwrap_or(a.weight);
        }
        self.steer_all()?;
        Ok(Weights(new))
    }

    /// Changes those of one session; `None` gives it back to those of all.
    pub(super) fn weigh_one(&self, token: &str, change: Option<&Weights>) -> Result<Weights> {
        let known = token.parse().ok();
        let known = known.filter(|t| lock(&self.sessions).contains_key(t));
        let Some(number) = known else {
            return Err(DaemonError::Unknown(format!(
                "there is no session {token}: braid status --connections tells those there are"
            )));
        };
        match change {
            Some(change) => {
                self.check(change)?;
                let mut own = self.own_weights(number).unwrap_or_default();
                own.extend(change.0.clone());
                overlaid(&self.general(), &own, "")?;
                lock(&self.own).insert(number, own);
            }
            None => drop(lock(&self.own).remove(&number)),
        }
        self.steer_all()?;
        Ok(Weights(self.weights_of(number).into_iter().collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ones_take_the_place_of_those_of_all() {
        let of = |w: &[(&str, f64)]| -> ByName {
            w.iter().map(|(n, w)| ((*n).to_owned(), *w)).collect()
        };
        let general = of(&[("nr", 3.0), ("wifi", 0.0)]);
        let all = overlaid(&general, &of(&[("wifi", 2.0)]), "").unwrap();
        assert_eq!(all, of(&[("nr", 3.0), ("wifi", 2.0)]));
        let none = overlaid(&general, &of(&[("nr", 0.0)]), " (session 7)").unwrap_err();
        let said = none.to_string();
        assert!(
            said.contains("above 0") && said.ends_with("(session 7)"),
            "{said}"
        );
    }
}
