//! State of the network namespace before a daemon changed it: given back when the daemon
//! ends, or when the one ends that follows it after a kill.

use std::path::Path;

use braid_mptcp::offer::is_registered;
use braid_mptcp::pm::{Limits, PathManager};
use braid_mptcp::{buffers, support, weights};
use serde::{Deserialize, Serialize};

use crate::takeover::pins::DEFAULT;
use crate::takeover::state_file::KeptFile;

/// All that a daemon sets.
const KNOWN: [&str; 12] = [
    "net.mptcp.enabled",
    "net.mptcp.path_manager",
    "net.mptcp.pm_type",
    "net.mptcp.scheduler",
    "net.mptcp.rr_cwnd_limited",
    "net.mptcp.rr_num_segments",
    "net.mptcp.minrtt_opportunistic",
    "net.mptcp.minrtt_penalise",
    weights::SYSCTL,
    buffers::RECEIVE,
    buffers::SEND,
    DEFAULT,
];

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// In the order in which they were changed.
    sysctls: Vec<(String, String)>,
    /// The path manager's: further subflows, addresses accepted.
    limits: Option<(u32, u32)>,
}

/// Settings of the network namespace before the daemon's changes.
#[derive(Debug)]
pub(crate) struct Before {
    file: KeptFile,
    sysctls: Vec<(&'static str, String)>,
    limits: Option<Limits>,
}

impl Before {
    /// Loads the state of the calling thread's network namespace; what a killed daemon has saved
    /// counts.
    pub(crate) fn beside(control: &Path) -> Self {
        const ABOUT: &str = "what the network namespace had before";
        let mut before = Self {
            file: KeptFile::beside(control, ".before", ABOUT),
            sysctls: Vec::new(),
            limits: None,
        };
        if let Some(kept) = before.file.read::<Kept>() {
            let known = |(name, value): (String, String)| {
                let name = KNOWN.into_iter().find(|k| *k == name)?;
                let sound = name != DEFAULT || !is_registered(&value);
                sound.then_some((name, value))
            };
            before.sysctls = kept.sysctls.into_iter().filter_map(known).collect();
            before.limits = kept.limits.map(|(subflows, add_addr_accepted)| Limits {
                subflows,
                add_addr_accepted,
            });
        }
        before
    }

    /// Returns the value of `name` before it was changed, if it has been.
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        let found = self.sysctls.iter().find(|(n, _)| *n == name);
        found.map(|(_, before)| before.as_str())
    }

    /// `name`, which is about to be changed, is `value`. However often that is said, the first
    /// time counts.
    pub(crate) fn remember(&mut self, name: &'static str, value: String) {
        debug_assert!(KNOWN.contains(&name), "{name}");
        if self.of(name).is_none() {
            self.sysctls.push((name, value));
            self.keep();
        }
    }

    /// Saves the path manager's limits, which are about to be changed. Only the first call counts.
    pub(crate) fn remember_limits(&mut self, limits: Limits) {
        if self.limits.is_none() {
            self.limits = Some(limits);
            self.keep();
        }
    }

    fn keep(&self) {
        let sysctls = self.sysctls.iter();
        self.file.write(&Kept {
            sysctls: sysctls.map(|(n, v)| ((*n).to_owned(), v.clone())).collect(),
            limits: self.limits.map(|l| (l.subflows, l.add_addr_accepted)),
        });
    }

    /// Gives it all back, as far as the namespace is still there.
    pub(crate) fn restore(&self, pm: Option<&mut PathManager>) {
        if let (Some(pm), Some(limits)) = (pm, self.limits) {
            let _ = pm.set_limits(limits);
        }
        for (name, before) in self.sysctls.iter().rev() {
            let _ = support::set_sysctl(name, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        subflows: 2,
        add_addr_accepted: 1,
    };

    #[test]
    fn the_first_value_counts_also_after_a_kill() {
        let t = tempfile::tempdir().unwrap();
        let control = t.path().join("c.sock");
        let mut first = Before::beside(&control);
        first.remember(DEFAULT, "bbr".into());
        first.remember(DEFAULT, "lia_1".into());
        first.remember_limits(LIMITS);
        // Killed: nothing is dropped.
        std::mem::forget(first);
        let mut second = Before::beside(&control);
        second.remember(DEFAULT, "cubic".into());
        second.remember_limits(Limits::MAX);
        assert_eq!(
            (second.of(DEFAULT), second.limits),
            (Some("bbr"), Some(LIMITS))
        );
        drop(second);
        assert_eq!(Before::beside(&control).of(DEFAULT), None);
        assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_of_another_namespace_or_no_setting_of_ours_is_left() {
        let t = tempfile::tempdir().unwrap();
        let control = t.path().join("c.sock");
        let mut first = Before::beside(&control);
        first.remember(buffers::SEND, "1 2 3".into());
        std::mem::forget(first);
        let file = t.path().join("c.sock.before");
        let good = std::fs::read_to_string(&file).unwrap();
        assert_eq!(Before::beside(&control).of(buffers::SEND), Some("1 2 3"));
        for (part, lie) in [
            ("\"namespace\":", "\"namespace\":1"),
            ("\"boot\":\"", "\"boot\":\"0"),
            (buffers::SEND, "kernel.core_pattern"),
            ("\"sysctls\"", "\"sysctl\""),
        ] {
            let lie = good.replacen(part, lie, 1);
            assert_ne!(lie, good);
            std::fs::write(&file, &lie).unwrap();
            let read = Before::beside(&control);
            assert_eq!((read.sysctls.len(), read.limits), (0, None), "{lie}");
        }
    }

    proptest! {
        #[test]
        fn garbage_is_nothing(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            std::fs::write(t.path().join("c.sock.before"), text).unwrap();
            prop_assert!(Before::beside(&control).sysctls.is_empty());
        }
    }
}
