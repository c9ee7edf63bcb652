//! The control loop's view of all engines.

use std::collections::BTreeMap;

use braid_core::AccessState;

use super::Daemon;
use crate::DaemonError;
use crate::control::{Control, Decided, Look, Steered};
use crate::engine::view::rank;

impl Steered for Daemon {
    fn control(&self) -> &Control {
        &self.shared.control
    }

    fn look(&self) -> Result<Look, DaemonError> {
        let looks = self.engines.iter().map(|e| e.look());
        Ok(join(looks.collect::<Result<_, _>>()?))
    }

    async fn steer(&self, decided: &Decided) -> Result<(), DaemonError> {
        let _turn = self.turn.lock().await;
        self.set_decided(decided.clone()).await
    }
}

/// Joins what the engines see. An access is as good as the best of them says; one that an engine
/// leaves out keeps its state.
fn join(looks: Vec<Look>) -> Look {
    let mut all = looks.into_iter();
    let mut joined = all.next().unwrap_or_default();
    for look in all {
        joined.paths.extend(look.paths);
        let mut others: BTreeMap<_, _> = look.states.into_iter().collect();
        joined.states.retain_mut(|(access, state)| {
            let Some(other) = others.remove(&*access) else {
                return false;
            };
            let worth = |s: Option<AccessState>| s.map(rank);
            if worth(other) > worth(*state) {
                *state = other;
            }
            true
        });
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_those_of_the_best_engine_and_none_is_made_up() {
        use AccessState::{Active, Ignored, Silent};
        let look = |states: &[(&str, Option<AccessState>)]| Look {
            paths: vec![],
            states: states.iter().map(|(n, s)| ((*n).to_owned(), *s)).collect(),
        };
        let one = look(&[
            ("nr", Some(Silent)),
            ("wifi", None),
            ("lte", Some(Ignored)),
            ("busy", Some(Active)),
        ]);
        let other = look(&[("nr", Some(Active)), ("wifi", Some(Ignored)), ("lte", None)]);
        let expected = look(&[
            ("nr", Some(Active)),
            ("wifi", Some(Ignored)),
            ("lte", Some(Ignored)),
        ]);
        assert_eq!(join(vec![one, other]).states, expected.states);
    }
}
