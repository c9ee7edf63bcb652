//! Link and transfer rates.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::{self, ParseError};

/// Bits per second. Serialized as the plain number; parsed from text such as
/// `342 Mbit/s` (SI prefixes: 1 Mbit = 1 000 000 bit).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rate(u64);

impl Rate {
    /// Nothing passes.
    pub const ZERO: Rate = Rate(0);

    /// A rate of `bps` bits per second.
    pub const fn from_bps(bps: u64) -> Self {
        Rate(bps)
    }

    /// A rate of `mbps` megabits (10^6 bits) per second; negative counts as zero.
    pub fn from_mbps(mbps: f64) -> Self {
        Rate((mbps.max(0.0) * 1e6).round() as u64)
    }

    /// Bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Megabits (10^6 bits) per second.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// How long `bytes` take at this rate, rounded up to a nanosecond; `None`
    /// at zero rate.
    pub fn time_for(self, bytes: u64) -> Option<Duration> {
        if self.0 == 0 {
            return None;
        }
        let ns = (u128::from(bytes) * 8_000_000_000).div_ceil(u128::from(self.0));
        Some(Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX)))
    }

    /// Bytes that pass in `d`.
    pub fn bytes_in(self, d: Duration) -> u64 {
        let b = u128::from(self.0) * d.as_nanos() / 8_000_000_000;
        u64::try_from(b).unwrap_or(u64::MAX)
    }

    /// This rate times `factor` (negative counts as zero).
    pub fn scaled(self, factor: f64) -> Self {
        Rate((self.0 as f64 * factor.max(0.0)).round() as u64)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (v, unit) = match self.0 {
            b if b >= 1_000_000_000 => (b as f64 / 1e9, "Gbit/s"),
            b if b >= 1_000_000 => (b as f64 / 1e6, "Mbit/s"),
            b if b >= 1_000 => (b as f64 / 1e3, "kbit/s"),
            b => (b as f64, "bit/s"),
        };
        write!(f, "{v} {unit}")
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(s: &str) -> Result<Self, ParseError> {
        let (v, unit) = units::split(s, "a rate such as \"342 Mbit/s\"")?;
        let scale = match unit {
            "bit/s" | "bps" => 1.0,
            "kbit/s" | "kbps" => 1e3,
            "Mbit/s" | "Mbps" => 1e6,
            "Gbit/s" | "Gbps" => 1e9,
            _ => {
                return Err(ParseError::unit(s, unit, "bit/s, kbit/s, Mbit/s or Gbit/s"));
            }
        };
        let bps = v * scale;
        if bps > 1e12 {
            return Err(ParseError::range(s, "at most 1000 Gbit/s"));
        }
        Ok(Rate(bps.round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parses_what_the_papers_print() {
        assert_eq!("342 Mbit/s".parse::<Rate>().unwrap().as_bps(), 342_000_000);
        assert_eq!(
            "1.19Gbit/s".parse::<Rate>().unwrap().as_bps(),
            1_190_000_000
        );
        assert_eq!("0 bit/s".parse::<Rate>().unwrap(), Rate::ZERO);
        for bad in [
            "",
            "342",
            "fast",
            "-1 Mbit/s",
            "1 MB/s",
            "NaN Mbit/s",
            "2000 Gbit/s",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn display_round_trips(bps in 0u64..1_000_000_000_000) {
            let r = Rate::from_bps(bps);
            prop_assert_eq!(r.to_string().parse::<Rate>().unwrap(), r);
        }

        #[test]
        fn time_and_bytes_agree(bps in 8u64..100_000_000_000, bytes in 0u64..1_000_000_000) {
            let r = Rate::from_bps(bps);
            let back = r.bytes_in(r.time_for(bytes).unwrap());
            prop_assert!(back >= bytes && back - bytes <= 1 + bps / 8_000_000_000);
        }
    }
}
