//! `[access.NAME.cap]`: what an access may carry in a month of its contract.

use braid_core::Rate;
use serde::{Deserialize, Serialize};

use super::text;
use crate::Limit;
use crate::diagnostic::Problem;

/// `[access.NAME.cap]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cap {
    /// Bytes in a month, both directions together, with all headers of IP.
    #[serde(with = "text::bytes")]
    pub monthly: u64,
    /// Day on which a month begins, 1 to 31; in a shorter month its last day.
    #[serde(default = "first")]
    pub reset_day: u8,
    /// Part of it of which is told, percent, 1 to 100.
    #[serde(default = "most")]
    pub near_percent: u8,
    /// Use of the access once all of it is used, until the month ends.
    #[serde(default)]
    pub at: AtCap,
    /// Rate of `at = "slow"`, each way.
    #[serde(
        default,
        with = "text::optional_rate",
        skip_serializing_if = "Option::is_none"
    )]
    pub slow: Option<Rate>,
}

/// Use of an access whose month is used up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AtCap {
    /// As before; it is told.
    Warn,
    /// Only when no other access is active.
    #[default]
    Backup,
    /// At the rate of `slow`, each way, and no faster.
    Slow,
    /// Not at all.
    Off,
}

/// How much of a cap is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CapLevel {
    /// Less than is told of.
    #[default]
    Below,
    /// As much as is told of.
    Near,
    /// All.
    Reached,
}

fn first() -> u8 {
    1
}

fn most() -> u8 {
    80
}

impl Cap {
    /// Returns how much of it so many bytes are.
    pub fn level(&self, bytes: u64) -> CapLevel {
        let near = u128::from(self.monthly) * u128::from(self.near_percent);
        match bytes {
            all if all >= self.monthly => CapLevel::Reached,
            some if u128::from(some) * 100 >= near => CapLevel::Near,
            _ => CapLevel::Below,
        }
    }

    /// Returns the limit of an access whose month is used up.
    pub fn limit(&self) -> Limit {
        Limit {
            down: self.slow,
            up: self.slow,
        }
    }

    pub(super) fn check(&self, name: &str) -> Result<(), Problem> {
        let at = |key: &str, what: &str| {
            let what = format!("access \"{name}\": {what}");
            Err(Problem::at_key(&["access", name, "cap", key], what))
        };
        if self.monthly == 0 {
            return at("monthly", "expected a size above 0, such as \"50 GB\"");
        }
        match (self.at, self.slow) {
            (AtCap::Slow, None) => {
                return at(
                    "at",
                    "\"slow\" needs a rate: expected slow = \"1 Mbit/s\" beside",
                );
            }
            (AtCap::Slow, Some(rate)) => {
                self.limit().check().map_err(|_| {
                    let what = format!("{rate} is not from 1 kbit/s to 1000 Gbit/s");
                    Problem::at_key(&["access", name, "cap", "slow"], what)
                })?;
            }
            (_, Some(_)) => return at("slow", "it goes with at = \"slow\""),
            (_, None) => {}
        }
        if !(1..=31).contains(&self.reset_day) {
            return at("reset_day", "expected a day of a month, 1 to 31");
        }
        if !(1..=100).contains(&self.near_percent) {
            return at("near_percent", "expected 1 to 100 percent");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, DeviceAccess, Format};
    use super::*;

    fn device(cap: &str) -> Result<Config<DeviceAccess>, String> {
        let text = format!("[access.nr]\ninterface = \"wwan0\"\n[access.nr.cap]\n{cap}\n");
        let read = Config::parse(&text, Format::Toml);
        read.map_err(|p| p.in_file("f".into(), &text).to_string())
    }

    #[test]
    fn a_cap_has_levels() {
        let config = device("monthly = \"50 GB\"\nreset_day = 15\nat = \"off\"").unwrap();
        let cap = config.access["nr"].cap.unwrap();
        assert_eq!(
            (cap.monthly, cap.reset_day, cap.at),
            (50_000_000_000, 15, AtCap::Off)
        );
        let slow = device("monthly = \"50 GB\"\nat = \"slow\"\nslow = \"1 Mbit/s\"");
        let e = slow.unwrap_err();
        assert!(
            e.contains("f:3:") && e.contains("no limit of the rate"),
            "{e}"
        );
        let levels = [
            39_999_999_999,
            40_000_000_000,
            49_999_999_999,
            50_000_000_000,
        ];
        assert_eq!(
            levels.map(|n| cap.level(n)),
            [
                CapLevel::Below,
                CapLevel::Near,
                CapLevel::Near,
                CapLevel::Reached
            ]
        );
        assert_eq!(cap.level(u64::MAX), CapLevel::Reached);
        let toml = toml::to_string(&config).unwrap();
        assert_eq!(
            Config::<DeviceAccess>::parse(&toml, Format::Toml).unwrap(),
            config
        );
    }

    #[test]
    fn what_is_wrong_with_a_cap_is_said_where_it_stands() {
        for (cap, words) in [
            ("monthly = \"50 Gbit\"", "f:4:11: "),
            ("monthly = \"0 B\"", "above 0"),
            ("monthly = 5", "f:4:11: "),
            ("monthly = \"1 GB\"\nreset_day = 32", "f:5:1: "),
            ("monthly = \"1 GB\"\nnear_percent = 0", "1 to 100 percent"),
            ("monthly = \"1 GB\"\nat = \"of\"", "off"),
            ("reset_day = 3", "monthly"),
        ] {
            let e = device(cap).unwrap_err();
            assert!(e.contains(words), "{cap}: {e}");
        }
    }
}
