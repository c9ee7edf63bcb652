//! Replay: a policy runs over what was recorded, and its decisions are compared.
//!
//! A replay is open-loop: the observations are those that followed from the recorded decisions.
//! It shows where two policies part, and not how the accesses would have fared.

use thiserror::Error;

use crate::Time;
use crate::control::{Decision, Steering};
use crate::control_loop::{ControlError, ControlLoop};
use crate::journal::{Entry, Header};
use crate::policy::UnknownPolicy;

/// Moment at which the steerings in force began to differ, or differ in another way.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Moment of the newer decision of the two.
    pub at: Time,
    /// Steering that the recorded loop had in force; absent before its first decision.
    pub recorded: Option<Steering>,
    /// Steering that the replayed policy had in force; absent before its first decision.
    pub replayed: Option<Steering>,
}

/// Error: a journal that cannot be replayed.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ReplayError {
    /// No policy has the name that was asked for.
    #[error(transparent)]
    Policy(#[from] UnknownPolicy),
    /// The loop refused an observation, as it would have when it ran.
    #[error("line {line}: {source}")]
    Observation {
        /// Line of the observation in the journal, from 1.
        line: usize,
        /// Reason.
        source: ControlError,
    },
}

/// Runs the policy called `policy`, or the configured one, over the entries after the header. The
/// loop decides once after all observations of a moment, as the recorded one did.
///
/// # Errors
/// An unknown policy, or an observation that the loop refuses.
pub fn replay<'a>(
    header: &Header,
    entries: impl IntoIterator<Item = &'a Entry>,
    policy: Option<&str>,
) -> Result<Vec<Difference>, ReplayError> {
    let mut control = ControlLoop::new(header.seed);
    if let Some(name) = policy {
        control = control.with_policy(name)?;
    }
    let mut compared = Compared::default();
    // Moment whose observations are taken in and not decided on.
    let mut open: Option<Time> = None;
    for (i, entry) in entries.into_iter().enumerate() {
        match entry {
            Entry::Header(_) => {}
            Entry::Observation(observation) => {
                if let Some(at) = open.filter(|at| *at != observation.at) {
                    compared.step(at, control.decide(at), None);
                }
                open = Some(observation.at);
                let observed = control.observe(observation);
                observed.map_err(|source| ReplayError::Observation {
                    // The header is the first line.
                    line: i + 2,
                    source,
                })?;
            }
            Entry::Decision(decision) => {
                if let Some(at) = open.take().filter(|at| *at != decision.at) {
                    compared.step(at, control.decide(at), None);
                }
                let replayed = control.decide(decision.at);
                compared.step(decision.at, replayed, Some(decision));
            }
        }
    }
    if let Some(at) = open {
        compared.step(at, control.decide(at), None);
    }
    Ok(compared.differences)
}

/// Steerings in force, and where they differed.
#[derive(Debug, Default)]
struct Compared {
    recorded: Option<Steering>,
    replayed: Option<Steering>,
    differences: Vec<Difference>,
}

impl Compared {
    fn step(&mut self, at: Time, replayed: Option<Decision>, recorded: Option<&Decision>) {
        if replayed.is_none() && recorded.is_none() {
            return;
        }
        if let Some(decision) = replayed {
            self.replayed = Some(decision.steering);
        }
        if let Some(decision) = recorded {
            self.recorded = Some(decision.steering.clone());
        }
        let same = match (&self.recorded, &self.replayed) {
            (Some(one), Some(other)) => one.same_effect(other),
            _ => false,
        };
        if !same {
            self.differences.push(Difference {
                at,
                recorded: self.recorded.clone(),
                replayed: self.replayed.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::control::Observation;
    use crate::control::tests::observation;
    use crate::journal::{Reader, VERSION, Writer};
    use crate::{Engine, Role};

    /// Runs a loop over observations in their order and keeps its journal.
    fn recorded(observations: Vec<Observation>) -> Vec<u8> {
        let header = Header {
            version: VERSION,
            program: "test".to_owned(),
            role: Role::Device,
            engine: Engine::Mpquic,
            seed: 3,
        };
        let mut writer = Writer::new(Vec::new(), header).unwrap();
        let mut control = ControlLoop::new(3);
        let mut observations = observations.into_iter().peekable();
        while let Some(o) = observations.next() {
            let at = o.at;
            if control.observe(&o).is_ok() {
                writer.observation(o).unwrap();
            }
            if observations.peek().is_none_or(|next| next.at != at)
                && let Some(decision) = control.decide(at)
            {
                writer.decision(decision).unwrap();
            }
        }
        writer.finish().unwrap()
    }

    #[test]
    fn an_observation_that_the_loop_refuses_names_its_line() {
        let text = [
            r#"{"header":{"version":1,"program":"x","role":"device","engine":"tcp","seed":1}}"#,
            r#"{"observation":{"at_ns":0,"what":{"configuration":{"accesses":{}}}}}"#,
            r#"{"observation":{"at_ns":1,"what":{"configuration":{"policy":{"name":"smart"},"accesses":{}}}}}"#,
            "",
        ];
        let text = text.join("\n");
        let reader = Reader::new(text.as_bytes()).unwrap();
        let header = reader.header().clone();
        let entries: Vec<Entry> = reader.map(Result::unwrap).collect();
        let error = replay(&header, &entries, None).unwrap_err().to_string();
        let expected = "line 3: no policy is called \"smart\": expected one of static, capacity, energy, \
                    interface-selection, tuning";
        assert_eq!(error, expected);
    }

    proptest! {
        #[test]
        fn a_recorded_loop_is_replayed_without_a_difference(
            observations in prop::collection::vec((observation(), 0u64..3, any::<bool>()), 1..60),
        ) {
            let mut now = 0;
            let observations = observations.into_iter().map(|(mut o, step, capacity)| {
                now += step * 60_000_000;
                o.at = Time::from_nanos(now);
                if let crate::control::What::Configuration(settings) = &mut o.what {
                    let name = if capacity { "capacity" } else { "static" };
                    settings.policy.name = name.to_owned();
                }
                o
            });
            let text = recorded(observations.collect());
            let reader = Reader::new(&text[..]).unwrap();
            let header = reader.header().clone();
            let entries: Vec<Entry> = reader.map(Result::unwrap).collect();
            let differences = replay(&header, &entries, None).unwrap();
            prop_assert_eq!(differences, vec![]);
        }
    }
}
