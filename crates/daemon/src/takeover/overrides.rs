//! Changes that requests made to the accesses, saved for the daemon that follows one that was
//! killed: in a file beside the control socket, as long as there is something to save.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::accesses::Wanted;
use crate::takeover::state_file::KeptFile;

/// Settings of an access that requests can change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Changeable {
    backup: bool,
    enabled: bool,
    priority: Option<u16>,
}

type ByName = BTreeMap<String, Changeable>;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    configured: ByName,
    now: ByName,
}

fn of(accesses: &[Wanted]) -> ByName {
    let one = accesses.iter().map(|a| {
        let changeable = Changeable {
            backup: a.backup,
            enabled: a.enabled,
            priority: a.priority,
        };
        (a.name.clone(), changeable)
    });
    one.collect()
}

/// The file, which goes when this is dropped.
pub(crate) struct Requests(KeptFile);

impl Requests {
    pub(crate) fn beside(control: &Path) -> Self {
        const ABOUT: &str = "what requests changed of the accesses";
        Self(KeptFile::beside(control, ".requests", ABOUT))
    }

    /// Sets `accesses`, which are as configured, to what a killed daemon had, if it was
    /// configured alike.
    pub(crate) fn adopt(&self, accesses: &mut [Wanted]) {
        let kept = self.0.read::<Kept>();
        let Some(kept) = kept.filter(|k| k.configured == of(accesses)) else {
            return;
        };
        for access in accesses {
            if let Some(then) = kept.now.get(&access.name) {
                access.backup = then.backup;
                access.enabled = then.enabled;
                access.priority = then.priority;
            }
        }
    }

    /// Saves what differs.
    pub(crate) fn keep(&self, configured: &[Wanted], now: &[Wanted]) {
        let kept = Kept {
            configured: of(configured),
            now: of(now),
        };
        match kept.configured == kept.now {
            true => self.0.forget(),
            false => {
                self.0.write(&kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Access = (bool, bool, Option<u16>);

    fn wanted(accesses: &[Access]) -> Vec<Wanted> {
        let one = |(n, &(backup, enabled, priority)): (usize, &Access)| Wanted {
            name: format!("a{n}"),
            enabled,
            backup,
            priority,
            expected: braid_api::Expected::default(),
            limit: braid_api::Limit::default(),
        };
        accesses.iter().enumerate().map(one).collect()
    }

    fn accesses() -> impl Strategy<Value = Vec<Access>> {
        prop::collection::vec(any::<Access>(), 3)
    }

    proptest! {
        #[test]
        fn what_was_changed_is_found_again_and_only_by_the_same_file(
            configured in accesses(), now in accesses(), other in accesses(),
        ) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            let requests = Requests::beside(&control);
            requests.keep(&wanted(&configured), &wanted(&now));
            let mut same = wanted(&configured);
            requests.adopt(&mut same);
            prop_assert_eq!(same, wanted(&now));
            let mut changed = wanted(&other);
            requests.adopt(&mut changed);
            let expected = if other == configured { &now } else { &other };
            prop_assert_eq!(changed, wanted(expected));
            drop(requests);
            prop_assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
        }

        #[test]
        fn garbage_changes_nothing(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            std::fs::write(t.path().join("c.sock.requests"), text).unwrap();
            let mut all = wanted(&[(false, true, None)]);
            Requests::beside(&control).adopt(&mut all);
            prop_assert_eq!(all, wanted(&[(false, true, None)]));
        }
    }
}
