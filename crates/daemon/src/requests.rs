//! Changes that requests made to the accesses, saved for the daemon that follows one that was
//! killed: in a file beside the control socket, as long as there is something to save.

use std::collections::BTreeMap;
use std::path::Path;

use braid_mptcp::manage::Settings;
use serde::{Deserialize, Serialize};

use super::kept_file::KeptFile;

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

fn of(settings: &Settings) -> ByName {
    let accesses = settings.accesses.iter();
    let one = accesses.map(|a| {
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
pub(super) struct Requests(KeptFile);

impl Requests {
    pub(super) fn beside(control: &Path) -> Self {
        const ABOUT: &str = "what requests changed of the accesses";
        Self(KeptFile::beside(control, ".requests", ABOUT))
    }

    /// Sets `settings`, which are as configured, to what a killed daemon had, if it was
    /// configured alike.
    pub(super) fn go_on(&self, settings: &mut Settings) {
        let kept = self.0.read::<Kept>();
        let Some(kept) = kept.filter(|k| k.configured == of(settings)) else {
            return;
        };
        for access in &mut settings.accesses {
            if let Some(then) = kept.now.get(&access.name) {
                access.backup = then.backup;
                access.enabled = then.enabled;
                access.priority = then.priority;
            }
        }
    }

    /// Keeps what differs.
    pub(super) fn keep(&self, configured: &Settings, now: &Settings) {
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
    use braid_mptcp::manage::AccessSpec;
    use proptest::prelude::*;

    type Access = (bool, bool, Option<u16>);

    fn settings(accesses: &[Access]) -> Settings {
        let spec = |(n, &(backup, enabled, priority)): (usize, &Access)| AccessSpec {
            name: format!("a{n}"),
            interface: format!("w{n}").parse().unwrap(),
            address: None,
            backup,
            excluded: false,
            max_addresses: None,
            priority,
            enabled,
        };
        Settings {
            accesses: accesses.iter().enumerate().map(spec).collect(),
            ..Settings::default()
        }
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
            requests.keep(&settings(&configured), &settings(&now));
            let mut same = settings(&configured);
            requests.go_on(&mut same);
            prop_assert_eq!(same, settings(&now));
            let mut changed = settings(&other);
            requests.go_on(&mut changed);
            let expected = if other == configured { &now } else { &other };
            prop_assert_eq!(changed, settings(expected));
            drop(requests);
            prop_assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
        }

        #[test]
        fn garbage_changes_nothing(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            std::fs::write(t.path().join("c.sock.requests"), text).unwrap();
            let mut all = settings(&[(false, true, None)]);
            Requests::beside(&control).go_on(&mut all);
            prop_assert_eq!(all, settings(&[(false, true, None)]));
        }
    }
}
