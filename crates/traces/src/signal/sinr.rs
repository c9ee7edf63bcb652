//! SINR from reference signal powers, as in I. Tomić et al., "On the downlink
//! capacity of LTE cell" (TELFOR 2015): the serving cell's power over the other
//! cells' of the carrier, each as busy as the network is, plus noise.

use serde::Serialize;

/// Thermal noise of one hertz at 290 K, dBm: 10 log10(k T / 1 mW).
pub const THERMAL_DBM_PER_HZ: f64 = -173.975;

/// Width of a resource element, over which RSRP is defined (TS 36.214 5.1.1),
/// hertz.
pub const SUBCARRIER_HZ: f64 = 15_000.0;

/// Parameters of the SINR of a cell beside received powers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SinrModel {
    /// Network load Q_L: how much of the time the other cells send, 0 to 1.
    /// 0.10 in the paper (section 3.1).
    pub network_load: f64,
    /// Noise figure of the device, dB, 0 to 30. The paper's is lost; 9 dB is what
    /// 3GPP evaluates with (TR 36.942 table 4.8, TR 36.814 table A.2.1.1-2).
    pub noise_figure_db: f64,
    /// Thermal noise of one subcarrier, dBm: -132.2 for 15 kHz at 290 K.
    pub thermal_dbm: f64,
}

impl Default for SinrModel {
    fn default() -> Self {
        Self {
            network_load: 0.10,
            noise_figure_db: 9.0,
            thermal_dbm: THERMAL_DBM_PER_HZ + 10.0 * SUBCARRIER_HZ.log10(),
        }
    }
}

impl SinrModel {
    /// Noise in one subcarrier at the receiver, mW.
    pub fn noise_mw(&self) -> f64 {
        milliwatts(self.thermal_dbm + self.noise_figure_db)
    }

    /// SINR, linear, of a cell received with `serving_dbm` while the other cells
    /// of its carrier have `others_mw` together: RSRP_s / (Q_L sum RSRP_i + N).
    pub fn sinr(&self, serving_dbm: f64, others_mw: f64) -> f64 {
        milliwatts(serving_dbm) / (self.network_load * others_mw.max(0.0) + self.noise_mw())
    }

    /// Whether every parameter is in its range; else says which is not.
    ///
    /// # Errors
    /// The name of the parameter and its range.
    pub fn check(&self) -> Result<(), String> {
        let in_range = |name: &str, v: f64, low: f64, high: f64| {
            if (low..=high).contains(&v) {
                return Ok(());
            }
            Err(format!("{name} {v}: expected {low} to {high}"))
        };
        in_range("network load", self.network_load, 0.0, 1.0)?;
        in_range("noise figure (dB)", self.noise_figure_db, 0.0, 30.0)?;
        in_range("thermal noise (dBm)", self.thermal_dbm, -160.0, -80.0)
    }
}

/// `dbm` decibel-milliwatts as milliwatts.
pub fn milliwatts(dbm: f64) -> f64 {
    10f64.powf(dbm / 10.0)
}

/// A ratio in decibels; minus infinity for zero.
pub fn decibels(ratio: f64) -> f64 {
    10.0 * ratio.log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The example worked by hand in docs/signals.md.
    #[test]
    fn by_hand() {
        let m = SinrModel::default();
        assert!((m.thermal_dbm + 132.2).abs() < 0.05, "{}", m.thermal_dbm);
        // N = 10^(-12.3214) = 4.771e-13 mW; interference 0.1 * (1e-10 + 2.512e-11).
        let others = milliwatts(-100.0) + milliwatts(-106.0);
        let sinr = m.sinr(-95.0, others);
        let by_hand = 3.1623e-10 / (0.1 * 1.25119e-10 + 4.771e-13);
        assert!((sinr / by_hand - 1.0).abs() < 2e-3, "{sinr} {by_hand}");
        assert!((decibels(sinr) - 13.86).abs() < 0.01, "{}", decibels(sinr));
        // Alone, only noise is left: -95 + 132.2 - 9 dB.
        assert!((decibels(m.sinr(-95.0, 0.0)) - 28.2).abs() < 0.05);
    }

    #[test]
    fn ranges() {
        let bad = SinrModel {
            network_load: 1.5,
            ..SinrModel::default()
        };
        assert_eq!(
            bad.check().unwrap_err(),
            "network load 1.5: expected 0 to 1"
        );
        let nan = SinrModel {
            noise_figure_db: f64::NAN,
            ..SinrModel::default()
        };
        assert!(nan.check().is_err());
    }

    proptest! {
        #[test]
        fn more_power_more_interference(s in -140.0f64..-40.0, i in -140.0f64..-40.0, d in 0.1f64..20.0) {
            let m = SinrModel::default();
            let at = m.sinr(s, milliwatts(i));
            prop_assert!(at > 0.0 && at.is_finite());
            prop_assert!(m.sinr(s + d, milliwatts(i)) > at);
            prop_assert!(m.sinr(s, milliwatts(i + d)) < at);
            prop_assert!(m.sinr(s, 0.0) > at);
        }
    }
}
