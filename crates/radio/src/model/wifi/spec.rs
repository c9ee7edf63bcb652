//! Properties of a Wi-Fi channel as plain values, and the values allowed for them.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An amendment of IEEE 802.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Standard {
    /// HR/DSSS, 2.4 GHz: 1, 2, 5.5 and 11 Mbit/s (IEEE 802.11-2020 clause 16).
    #[serde(rename = "802.11b")]
    B,
    /// ERP-OFDM, 2.4 GHz, no 802.11b station in the cell: 6 to 54 Mbit/s (clause 18).
    #[serde(rename = "802.11g")]
    G,
    /// HT: 20 or 40 MHz, 1 to 4 streams (clause 19).
    #[serde(rename = "802.11n")]
    N,
    /// VHT, 5 GHz: 20 to 160 MHz, 1 to 4 streams (clause 21).
    #[serde(rename = "802.11ac")]
    Ac,
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::B => "802.11b",
            Self::G => "802.11g",
            Self::N => "802.11n",
            Self::Ac => "802.11ac",
        })
    }
}

/// The frequency band of 802.11n, which sets SIFS (10 or 16 us) and the signal
/// extension (6 us at 2.4 GHz). The other standards have one band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Band {
    /// 2.4 GHz.
    #[serde(rename = "2.4 GHz")]
    Ghz2,
    /// 5 GHz.
    #[serde(rename = "5 GHz")]
    Ghz5,
}

/// One Wi-Fi channel and the stations' common settings.
///
/// All but the standard has a default. The rate is that towards receivers that
/// do not name their own: `phy_mbps`, or `mcs`, or else the fastest that the
/// standard has at this width and number of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WifiSpec {
    /// The amendment.
    pub standard: Standard,
    /// Data rate, Mbit/s, one of those the standard has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phy_mbps: Option<f64>,
    /// Modulation and coding scheme: 0 to 7 (802.11n, for each stream), 0 to 9 (802.11ac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mcs: Option<u8>,
    /// Channel width: 20, 40 (802.11n, ac), 80, 160 (802.11ac). Default 20; 80 for 802.11ac.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_mhz: Option<u16>,
    /// Spatial streams, 1 (default) to 4 (802.11n, ac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streams: Option<u8>,
    /// Guard interval of 0.4 instead of 0.8 us (802.11n, ac).
    #[serde(default)]
    pub short_gi: bool,
    /// Preamble of 96 instead of 192 us at 2 Mbit/s and above (802.11b).
    #[serde(default)]
    pub short_preamble: bool,
    /// Band of 802.11n; default 5 GHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub band: Option<Band>,
    /// Transmissions after which a packet is given up, 1 to 255
    /// (dot11ShortRetryLimit; default 7).
    #[serde(default = "WifiSpec::default_retry_limit")]
    pub retry_limit: u32,
    /// Packets in one A-MPDU, 1 (no aggregation) to 64 (802.11n, ac; default 64).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ampdu: Option<u32>,
    /// Bytes of one A-MPDU; default and most: 65 535 (802.11n), 1 048 575 (802.11ac).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ampdu_bytes: Option<u32>,
    /// Air time of one A-MPDU, microseconds; default and most: 5484 (aPPDUMaxTime).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ampdu_us: Option<u32>,
    /// Smallest contention window, 2^k - 1; default 31 for 802.11b, else 15.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cw_min: Option<u32>,
    /// Largest contention window, 2^k - 1 up to 32 767; default 1023.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cw_max: Option<u32>,
}

impl WifiSpec {
    /// The defaults of `standard`.
    pub const fn new(standard: Standard) -> Self {
        Self {
            standard,
            phy_mbps: None,
            mcs: None,
            width_mhz: None,
            streams: None,
            short_gi: false,
            short_preamble: false,
            band: None,
            retry_limit: Self::default_retry_limit(),
            max_ampdu: None,
            max_ampdu_bytes: None,
            max_ampdu_us: None,
            cw_min: None,
            cw_max: None,
        }
    }

    const fn default_retry_limit() -> u32 {
        7
    }

    /// Channel width, MHz.
    pub fn width(&self) -> u16 {
        let default = if self.standard == Standard::Ac {
            80
        } else {
            20
        };
        self.width_mhz.unwrap_or(default)
    }

    /// Whether the standard aggregates packets.
    pub(super) fn high_throughput(&self) -> bool {
        matches!(self.standard, Standard::N | Standard::Ac)
    }

    /// Checks everything but the rate, which [`super::phy::Phy`] knows.
    pub(super) fn check(&self) -> Result<(), WifiError> {
        let ht = self.high_throughput();
        let need = |ok: bool, key, given: String, expected: &str| {
            if ok {
                Ok(())
            } else {
                Err(self.error(key, given, expected))
            }
        };
        let only = |set: bool, key, ok: bool, which: &str| {
            need(
                ok || !set,
                key,
                "set".into(),
                &format!("it only with {which}"),
            )
        };
        only(
            self.mcs.is_some(),
            "mcs",
            ht,
            "802.11n or 802.11ac; give phy_mbps",
        )?;
        only(
            self.streams.is_some_and(|n| n != 1),
            "streams",
            ht,
            "802.11n or 802.11ac",
        )?;
        only(self.short_gi, "short_gi", ht, "802.11n or 802.11ac")?;
        only(
            self.max_ampdu.is_some_and(|n| n != 1),
            "max_ampdu",
            ht,
            "802.11n or 802.11ac",
        )?;
        only(
            self.max_ampdu_bytes.is_some(),
            "max_ampdu_bytes",
            ht,
            "802.11n or 802.11ac",
        )?;
        only(
            self.max_ampdu_us.is_some(),
            "max_ampdu_us",
            ht,
            "802.11n or 802.11ac",
        )?;
        only(
            self.short_preamble,
            "short_preamble",
            self.standard == Standard::B,
            "802.11b",
        )?;
        only(
            self.band.is_some(),
            "band",
            self.standard == Standard::N,
            "802.11n",
        )?;
        let widths: &[u16] = match self.standard {
            Standard::B | Standard::G => &[20],
            Standard::N => &[20, 40],
            Standard::Ac => &[20, 40, 80, 160],
        };
        let width = self.width();
        need(
            widths.contains(&width),
            "width_mhz",
            width.to_string(),
            &list(widths),
        )?;
        let range = |key, value: Option<u32>, low: u32, high: u32| {
            value.map_or(Ok(()), |v| {
                need(
                    (low..=high).contains(&v),
                    key,
                    v.to_string(),
                    &format!("{low} to {high}"),
                )
            })
        };
        range("streams", self.streams.map(u32::from), 1, 4)?;
        range("retry_limit", Some(self.retry_limit), 1, 255)?;
        range("max_ampdu", self.max_ampdu, 1, 64)?;
        range(
            "max_ampdu_bytes",
            self.max_ampdu_bytes,
            1,
            self.ampdu_bytes_bound(),
        )?;
        range("max_ampdu_us", self.max_ampdu_us, 1, PPDU_MAX_US)?;
        for (key, value) in [("cw_min", self.cw_min), ("cw_max", self.cw_max)] {
            let ok = value.is_none_or(|cw| cw <= 32_767 && (cw + 1).is_power_of_two());
            let given = value.unwrap_or_default().to_string();
            need(
                ok,
                key,
                given,
                "2^k - 1 up to 32767: 0, 1, 3, 7, 15, 31, ...",
            )?;
        }
        let (low, high) = self.contention_windows();
        need(
            low <= high,
            "cw_max",
            high.to_string(),
            &format!("at least cw_min, {low}"),
        )
    }

    /// Smallest and largest contention window (IEEE 802.11-2020 tables 16-4,
    /// 18-5, 19-25, 21-28; AC_BE for 802.11n and ac, table 9-155).
    pub(super) fn contention_windows(&self) -> (u32, u32) {
        let default_min = if self.standard == Standard::B { 31 } else { 15 };
        let low = self.cw_min.unwrap_or(default_min);
        (low, self.cw_max.unwrap_or_else(|| low.max(1023)))
    }

    /// Longest A-MPDU of the standard, in bytes (9.7.1, tables 9-271 and 9-184).
    pub(super) fn ampdu_bytes_bound(&self) -> u32 {
        if self.standard == Standard::Ac {
            (1 << 20) - 1
        } else {
            (1 << 16) - 1
        }
    }

    pub(super) fn error(&self, key: &'static str, given: String, expected: &str) -> WifiError {
        WifiError {
            standard: self.standard,
            key,
            given,
            expected: expected.to_owned(),
        }
    }
}

/// aPPDUMaxTime in microseconds: what the length of the legacy signal field can
/// announce (IEEE 802.11-2020 tables 19-25 and 21-28).
pub(super) const PPDU_MAX_US: u32 = 5484;

/// A setting of a Wi-Fi channel that the standard does not allow.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{standard}: {key} = {given} is not possible: expected {expected}")]
pub struct WifiError {
    standard: Standard,
    /// The field of [`WifiSpec`] that is wrong.
    pub key: &'static str,
    given: String,
    expected: String,
}

/// `a, b, c`.
pub(super) fn list<T: ToString>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(", ")
}
