//! Ledger of the bytes that probes have moved: a file, so that the budgets of a day and a month
//! hold over a restart.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use braid_core::control::ProbeSpending;

use crate::json_file;

/// Hours of a month, as budgets have it.
const MONTH: u64 = 30 * 24;
/// Hours of a day, and the one that has begun.
const DAY: u64 = 25;

/// Returns the hour of wall-clock time, counted from 1970.
pub(super) fn hour() -> u64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH);
    unix.map_or(0, |d| d.as_secs() / 3600)
}

/// Bytes by access and hour of wall-clock time.
///
/// An hour that lies ahead counts as one of today: a device without a clock of its own begins in
/// 1970, and must not forget its month for that.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    path: PathBuf,
    bytes: BTreeMap<String, BTreeMap<u64, u64>>,
    /// Reason why it is not read or written.
    trouble: Option<String>,
}

impl Ledger {
    /// Reads the file at `path`. One that is not there is empty.
    pub(super) fn open(path: &Path) -> Self {
        let mut ledger = Self {
            path: path.to_owned(),
            ..Self::default()
        };
        match json_file::read(path) {
            Ok(bytes) => ledger.bytes = bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => ledger.failed("read", &e),
        }
        ledger
    }

    /// Whether it is the one of this file.
    pub(super) fn is(&self, path: &Path) -> bool {
        self.path == path
    }

    /// Returns why it is not kept.
    pub(super) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Adds bytes of the hour `now`, and writes the file.
    pub(super) fn add(&mut self, access: &str, now: u64, bytes: u64) {
        let hours = self.bytes.entry(access.to_owned()).or_default();
        let of = hours.entry(now).or_default();
        *of = of.saturating_add(bytes);
        for hours in self.bytes.values_mut() {
            hours.retain(|hour, _| now.saturating_sub(*hour) <= MONTH);
        }
        self.bytes.retain(|_, hours| !hours.is_empty());
        match json_file::write(&self.path, &self.bytes) {
            Ok(()) => self.trouble = None,
            Err(e) => self.failed("write", &e),
        }
    }

    /// Returns the bytes of each access before the hour `now` ends.
    pub(super) fn spending(&self, now: u64) -> Vec<ProbeSpending> {
        let of = |(access, hours): (&String, &BTreeMap<u64, u64>)| {
            let within = |span: u64| {
                let of = hours
                    .iter()
                    .filter(|(h, _)| now.saturating_sub(**h) <= span);
                of.map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
            };
            ProbeSpending {
                access: access.clone(),
                bytes: within(MONTH),
                day_bytes: within(DAY),
            }
        };
        self.bytes.iter().map(of).collect()
    }

    fn failed(&mut self, what: &str, e: &io::Error) {
        let why = format!(
            "cannot {what} {}, which remembers what probes have cost over a restart: {e}: see \
             ledger in [control.probe]",
            self.path.display()
        );
        if self.trouble.as_ref() != Some(&why) {
            tracing::warn!("{why}");
        }
        self.trouble = Some(why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_forgets_nothing_and_a_month_is_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probes.json");
        let mut ledger = Ledger::open(&path);
        assert!(ledger.trouble().is_none() && ledger.spending(500_000).is_empty());
        ledger.add("nr", 500_000, 7);
        ledger.add("nr", 500_100, 20);
        ledger.add("wifi", 500_100, 100);
        let again = Ledger::open(&path);
        let of = |now| {
            let all = again.spending(now).into_iter();
            all.map(|s| (s.bytes, s.day_bytes)).collect::<Vec<_>>()
        };
        assert_eq!(of(500_100), [(27, 20), (100, 100)]);
        assert_eq!(of(500_100 + DAY + 1), [(27, 0), (100, 0)]);
        assert_eq!(of(500_100 + MONTH), [(20, 0), (100, 0)]);
        // In 1970, before the clock is set.
        assert_eq!(of(0), [(27, 27), (100, 100)]);
        ledger.add("wifi", 500_101 + MONTH, 1);
        assert_eq!(Ledger::open(&path).bytes.len(), 1);
    }

    #[test]
    fn a_ledger_that_is_not_kept_is_a_note() {
        let mut ledger = Ledger::open(Path::new("/nonexistent/probes.json"));
        ledger.add("nr", 1, 5);
        let why = ledger.trouble().unwrap();
        assert!(why.contains("write /nonexistent/probes.json") && why.contains("ledger"));
        assert_eq!(ledger.spending(1)[0].bytes, 5, "it counts all the same");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("probes.json");
        std::fs::write(&path, "[]").unwrap();
        let mut broken = Ledger::open(&path);
        assert!(broken.trouble().unwrap().contains("cannot read"));
        broken.add("nr", 1, 5);
        assert!(broken.trouble().is_none(), "it begins anew");
    }
}
