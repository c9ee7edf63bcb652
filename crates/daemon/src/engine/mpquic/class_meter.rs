//! Bytes that sessions have sent of each class on each access, for good: counters that outlive
//! sessions.

use std::collections::BTreeMap;

use braid_core::class::DEFAULT_NUMBER;
use braid_core::rules::DEFAULT_CLASS;

/// Counters by the names of class and access.
#[derive(Debug, Default)]
pub(super) struct ClassMeter {
    /// Names of the classes by their numbers.
    names: BTreeMap<u8, String>,
    /// Counters of each session at the last reading, by the numbers of session and class.
    seen: BTreeMap<(u32, u8, String), u64>,
    all: BTreeMap<(String, String), u64>,
}

impl ClassMeter {
    /// Goes by these names from now on. What was counted of others is forgotten.
    pub(super) fn name(&mut self, names: BTreeMap<u8, String>) {
        let default = (DEFAULT_NUMBER, DEFAULT_CLASS.to_owned());
        self.names = names.into_iter().chain([default]).collect();
        self.all
            .retain(|(class, _), _| self.names.values().any(|n| n == class));
    }

    /// Takes the counters of a session.
    pub(super) fn read(&mut self, session: u32, now: BTreeMap<(u8, String), u64>) {
        for ((class, access), bytes) in now {
            let key = (session, class, access);
            let before = self.seen.get(&key).copied().unwrap_or(0);
            let name = self.names.get(&class).map_or(DEFAULT_CLASS, |n| n);
            let counter = self.all.entry((name.to_owned(), key.2.clone()));
            *counter.or_default() += bytes.saturating_sub(before);
            self.seen.insert(key, bytes);
        }
    }

    /// Forgets a session that has ended.
    pub(super) fn end(&mut self, session: u32) {
        self.seen.retain(|(s, ..), _| *s != session);
    }

    /// Returns the counters.
    pub(super) fn all(&self) -> BTreeMap<(String, String), u64> {
        self.all.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(all: &[(u8, &str, u64)]) -> BTreeMap<(u8, String), u64> {
        let of = |(class, access, n): &(u8, &str, u64)| ((*class, (*access).to_owned()), *n);
        all.iter().map(of).collect()
    }

    #[test]
    fn counters_outlive_sessions_and_go_with_their_names() {
        let mut meter = ClassMeter::default();
        meter.name([(1, "voice".to_owned())].into());
        meter.read(7, counted(&[(1, "nr", 100), (0, "nr", 5)]));
        meter.read(7, counted(&[(1, "nr", 150), (1, "wifi", 1), (0, "nr", 5)]));
        meter.end(7);
        // A session of the same number begins at 0.
        meter.read(7, counted(&[(1, "nr", 30), (5, "nr", 2)]));
        let of = |meter: &ClassMeter, class: &str, access: &str| {
            let key = (class.to_owned(), access.to_owned());
            meter.all().get(&key).copied()
        };
        assert_eq!(of(&meter, "voice", "nr"), Some(180));
        assert_eq!(of(&meter, "voice", "wifi"), Some(1));
        // A class without steering goes as the default.
        assert_eq!(of(&meter, "default", "nr"), Some(7));
        meter.name([(1, "games".to_owned())].into());
        meter.read(7, counted(&[(1, "nr", 31)]));
        assert_eq!(of(&meter, "voice", "nr"), None);
        assert_eq!(of(&meter, "games", "nr"), Some(1));
    }
}
