//! `[power]`: counters of power that the device has.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::text;
use crate::Role;
use crate::diagnostic::Problem;

/// `[power]` at the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Power {
    /// Read the counters of power, and attribute what they show to accesses.
    pub counters: bool,
    /// Time between two readings, 100 ms to 1 min.
    #[serde(with = "text::duration")]
    pub interval: Duration,
    /// Folder that has the counters, as `/sys` is laid out.
    pub root: PathBuf,
}

impl Default for Power {
    fn default() -> Self {
        Self {
            counters: false,
            interval: Duration::from_secs(1),
            root: "/sys".into(),
        }
    }
}

impl Power {
    /// Checks the values.
    ///
    /// # Errors
    /// The interval is out of range, or a proxy is to read counters.
    pub(super) fn check(&self, role: Role) -> Result<(), Problem> {
        if role == Role::Proxy && self.counters {
            let what = "counters of power are read at the device: remove [power] from the proxy's";
            return Err(Problem::at_key(&["power"], what));
        }
        let range = Duration::from_millis(100)..=Duration::from_secs(60);
        match range.contains(&self.interval) {
            true => Ok(()),
            false => Err(Problem::at_key(
                &["power", "interval"],
                "expected 100 ms to 60 s between readings of the counters of power",
            )),
        }
    }
}
