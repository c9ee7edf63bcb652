//! Downlink capacity from SINR by the scaled and truncated Shannon formula of
//! O. Østerbø, "Scheduling and capacity estimation in LTE" (ITC 2011):
//!
//! B = f (C / ln 2) min[c15 ln 2 / C, ln(1 + gamma SINR)]
//!
//! which is f min[c15, C log2(1 + gamma SINR)]: Shannon's formula whose two
//! constants make it follow the efficiencies of TS 36.213 table 7.2.3-1, and
//! which ends at that of the highest CQI. docs/signals.md derives it.

use std::f64::consts::LN_2;
use std::fmt;
use std::str::FromStr;

use braid_core::Rate;
use serde::Serialize;

/// Efficiency of CQI 15 in bit/s/Hz: 64QAM at code rate 948/1024 (TS 36.213
/// table 7.2.3-1).
pub const CQI_15: f64 = 5.5547;

/// The constants of the formula.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ShannonFit {
    /// C: how much of Shannon's capacity is used. 0.9449 (Østerbø).
    pub scale: f64,
    /// gamma: which part of the SINR counts. 0.4852 (Østerbø).
    pub sinr_scale: f64,
    /// c15: no better efficiency than this, bit/s/Hz ([`CQI_15`]).
    pub max_efficiency: f64,
}

impl Default for ShannonFit {
    fn default() -> Self {
        Self {
            scale: 0.9449,
            sinr_scale: 0.4852,
            max_efficiency: CQI_15,
        }
    }
}

impl ShannonFit {
    /// Spectral efficiency at a linear `sinr`, bit/s/Hz; zero for none.
    pub fn efficiency(&self, sinr: f64) -> f64 {
        let ceiling = self.max_efficiency * LN_2 / self.scale;
        let shannon = (self.sinr_scale * sinr.max(0.0)).ln_1p();
        self.scale / LN_2 * ceiling.min(shannon)
    }

    /// Capacity of a channel of `bandwidth_hz` at a linear `sinr`.
    pub fn capacity(&self, bandwidth_hz: f64, sinr: f64) -> Rate {
        Rate::from_mbps(bandwidth_hz * self.efficiency(sinr) / 1e6)
    }
}

impl fmt::Display for ShannonFit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scale,
            sinr_scale,
            max_efficiency,
        } = self;
        write!(f, "{scale},{sinr_scale},{max_efficiency}")
    }
}

/// As `C,GAMMA,C15`: C and gamma above 0 and at most 1, c15 above 0 and at most 40 bit/s/Hz
/// (8 layers of 64QAM).
impl FromStr for ShannonFit {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, String> {
        let wrong = || {
            let form = "expected C,GAMMA,C15, C and GAMMA above 0 and at most 1, C15 above 0 and at most 40";
            format!("{form}, such as {}", Self::default())
        };
        let numbers: Vec<f64> = s
            .split(',')
            .map(|n| n.trim().parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        let &[scale, sinr_scale, max_efficiency] = &numbers[..] else {
            return Err(wrong());
        };
        let part = |v: f64| v > 0.0 && v <= 1.0;
        match part(scale) && part(sinr_scale) && max_efficiency > 0.0 && max_efficiency <= 40.0 {
            true => Ok(Self {
                scale,
                sinr_scale,
                max_efficiency,
            }),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sinr::{SinrModel, decibels, milliwatts};
    use super::*;
    use proptest::prelude::*;

    /// TS 36.213 table 7.2.3-1: efficiency of CQI 1 to 15.
    const CQI: [f64; 15] = [
        0.1523, 0.2344, 0.3770, 0.6016, 0.8770, 1.1758, 1.4766, 1.9141, 2.4063, 2.7305, 3.3223,
        3.9023, 4.5234, 5.1152, 5.5547,
    ];

    #[test]
    fn by_hand() {
        let f = ShannonFit::default();
        // SINR 10: ln(1 + 4.852) = 1.76679; times 0.9449 / 0.693147 = 2.40848.
        assert!((f.efficiency(10.0) - 2.40848).abs() < 1e-4);
        assert!((f.capacity(20e6, 10.0).as_mbps() - 48.17).abs() < 0.01);
        // CQI 15 from (2^(5.5547 / 0.9449) - 1) / 0.4852 = 119.2 on, 20.8 dB.
        assert!((f.efficiency(119.0) - 5.5547).abs() < 3e-3);
        assert_eq!(f.capacity(20e6, 1e6), Rate::from_bps(111_094_000));
        assert_eq!(f.capacity(20e6, 0.0), Rate::ZERO);
    }

    /// The example of docs/signals.md, from there to its end: SINR 24.34.
    #[test]
    fn by_hand_from_powers() {
        let m = SinrModel::default();
        let others = milliwatts(-100.0) + milliwatts(-106.0);
        let sinr = m.sinr(-95.0, others);
        let f = ShannonFit::default();
        // 1 + 0.4852 * 24.34 = 12.81, whose logarithm to base 2 is 3.679; times 0.9449.
        assert!((f.efficiency(sinr) - 3.477).abs() < 2e-3);
        assert!((f.capacity(20e6, sinr).as_mbps() - 69.5).abs() < 0.05);
    }

    /// The constants are a fit to the CQI table. Solved for the SINR of each CQI
    /// they give the well-known thresholds: some -6 dB for CQI 1, 2 dB per step.
    #[test]
    fn follows_the_cqi_table() {
        let f = ShannonFit::default();
        let needed = |e: f64| decibels(((e / f.scale).exp2() - 1.0) / f.sinr_scale);
        let sinr: Vec<f64> = CQI.iter().map(|e| needed(*e)).collect();
        assert!((-7.0..-5.0).contains(&sinr[0]), "{sinr:?}");
        assert!((20.0..21.5).contains(&sinr[14]), "{sinr:?}");
        let steps = sinr.windows(2).map(|w| w[1] - w[0]);
        assert!(steps.clone().all(|s| (1.0..2.9).contains(&s)), "{sinr:?}");
        assert!((steps.sum::<f64>() / 14.0 - 1.9).abs() < 0.1);
    }

    #[test]
    fn constants_that_mean_nothing_are_refused() {
        let default = ShannonFit::default();
        assert_eq!("0.9449, 0.4852,5.5547".parse(), Ok(default));
        for bad in [
            "", "1", "1,1", "1,1,1,1", "0,1,1", "1,1.1,1", "1,1,41", "nan,1,1", "1,1,x",
        ] {
            let e = bad.parse::<ShannonFit>().unwrap_err();
            assert!(e.contains("0.9449,0.4852,5.5547"), "{bad}: {e}");
        }
    }

    proptest! {
        #[test]
        fn is_read_back(c in 0.01f64..1.0, gamma in 0.01f64..1.0, c15 in 0.1f64..40.0) {
            let fit = ShannonFit { scale: c, sinr_scale: gamma, max_efficiency: c15 };
            prop_assert_eq!(fit.to_string().parse(), Ok(fit));
        }

        #[test]
        fn rises_and_is_bounded(a in -30.0f64..50.0, d in 0.0f64..20.0, mhz in 1.4f64..100.0) {
            let f = ShannonFit::default();
            let sinr = |db: f64| 10f64.powf(db / 10.0);
            let (low, high) = (f.capacity(mhz * 1e6, sinr(a)), f.capacity(mhz * 1e6, sinr(a + d)));
            prop_assert!(low <= high);
            prop_assert!(high.as_mbps() <= mhz * CQI_15 + 1e-6);
            // Never above Shannon's own.
            prop_assert!(f.efficiency(sinr(a)) <= (1.0 + sinr(a)).log2());
        }
    }
}
