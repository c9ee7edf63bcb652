//! Rules about hosts and classes of traffic, as they are told.

use std::collections::BTreeMap;

use braid_api::{ClassStatus, Rules};
use braid_core::control::Direction;
use braid_core::rules::DEFAULT_CLASS;

use super::Daemon;
use crate::config::Access;
use crate::engine::Result;
use crate::state::now;

impl Daemon {
    /// Describes the rules about hosts, and what has met them.
    pub(crate) async fn rules(&self) -> Result<Rules> {
        match self.lan.lock().await.as_ref() {
            Some(lan) => {
                let mut rules = lan.rules().await?;
                rules.classes = self.classes();
                Ok(rules)
            }
            None => Ok(Rules {
                t_ns: now(),
                ..Rules::default()
            }),
        }
    }

    /// Describes the classes, where there are others than the default, which comes last.
    fn classes(&self) -> Vec<ClassStatus> {
        let config = self.config();
        if config.classes.is_empty() {
            return vec![];
        }
        let engines = self.engines.iter().map(|e| e.class_bytes());
        let bytes: BTreeMap<(String, String), u64> = engines.flatten().collect();
        let sent = |class: &str| {
            let of = |a: &Access| {
                let key = (class.to_owned(), a.name.clone());
                (a.name.clone(), bytes.get(&key).copied().unwrap_or(0))
            };
            config.accesses.iter().map(of).collect()
        };
        let own = config.classes.iter().map(|(name, class)| ClassStatus {
            name: name.clone(),
            up: Some(class.steering.get(Direction::Up).clone()),
            down: Some(class.steering.get(Direction::Down).clone()),
            sent_bytes: sent(name),
        });
        let default = ClassStatus {
            name: DEFAULT_CLASS.to_owned(),
            up: None,
            down: None,
            sent_bytes: sent(DEFAULT_CLASS),
        };
        own.chain([default]).collect()
    }
}
