//! Accesses as they are to be used: as configured, and as changed by requests since.

use braid_api::{AccessChange, Expected, Limit, Priorities};

use super::config::Access;

/// Wishes for one access.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// Its name.
    pub(crate) name: String,
    /// Whether it may be used.
    pub(crate) enabled: bool,
    /// Whether it is used only when no other is.
    pub(crate) backup: bool,
    /// Its place in the order: those of the least number carry.
    pub(crate) priority: Option<u16>,
    /// Rates that it is expected to carry.
    pub(crate) expected: Expected,
    /// Greatest rates that are sent on it.
    pub(crate) limit: Limit,
}

impl Wanted {
    /// Returns the wishes of the configuration.
    pub(crate) fn configured(accesses: &[Access]) -> Vec<Self> {
        let one = |a: &Access| Self {
            name: a.name.clone(),
            enabled: true,
            backup: a.backup,
            priority: a.priority,
            expected: a.expected,
            limit: a.limit,
        };
        accesses.iter().map(one).collect()
    }

    /// Takes a change over.
    pub(crate) fn apply(&mut self, change: AccessChange) {
        self.enabled = change.enabled.unwrap_or(self.enabled);
        self.backup = change.backup.unwrap_or(self.backup);
        self.expected = change.expected.unwrap_or(self.expected);
        self.limit = change.limit.unwrap_or(self.limit);
    }

    /// Returns the change that leads back to this from where `change` led.
    pub(crate) fn undo(&self, change: AccessChange) -> AccessChange {
        AccessChange {
            enabled: change.enabled.map(|_| self.enabled),
            backup: change.backup.map(|_| self.backup),
            expected: change.expected.map(|_| self.expected),
            limit: change.limit.map(|_| self.limit),
        }
    }
}

/// Returns the order of all accesses.
pub(crate) fn order(all: &[Wanted]) -> Priorities {
    Priorities(all.iter().map(|a| (a.name.clone(), a.priority)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_undone_by_its_inverse() {
        let before = Wanted {
            name: "nr".into(),
            enabled: true,
            backup: false,
            priority: Some(2),
            expected: Expected::default(),
            limit: Limit::default(),
        };
        let change = AccessChange {
            backup: Some(true),
            ..AccessChange::default()
        };
        let mut now = before.clone();
        now.apply(change);
        assert!(now.backup && now.enabled);
        let undo = before.undo(change);
        assert_eq!((undo.backup, undo.enabled), (Some(false), None));
        now.apply(undo);
        assert_eq!(now, before);
    }
}
