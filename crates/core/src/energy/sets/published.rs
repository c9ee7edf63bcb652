//! Sets from publications and programs, whose measurements are not at hand.

use super::super::{Paper002Parameters, Parameters, WifiAirtimeParameters};
use super::ParameterSet;

/// Supply voltage and currents of ns-3's `WifiRadioEnergyModel` and `BasicEnergySource`.
const NS3_VOLT: f64 = 3.0;

/// Power of a current in ampere, mW.
fn ns3_mw(ampere: f64) -> f64 {
    ampere * NS3_VOLT * 1e3
}

fn wifi() -> ParameterSet {
    let awake_mw = ns3_mw(0.273);
    ParameterSet {
        name: "ns3-wifi".to_owned(),
        device: "Intel 5300, 802.11n card".to_owned(),
        access: "Wi-Fi".to_owned(),
        source:
            "defaults of ns-3 (idle 273 mA, receiving 313 mA, sending 380 mA, 3 V), after Halperin \
                 et al., HotPower 2010"
                .to_owned(),
        quality: "not measured here: no recording of a Wi-Fi card is at hand".to_owned(),
        assumed: "no power save: awake while idle; no toll of frames; payload of 24 Mbit/s on the \
                  whole channel where airtime is not counted"
            .to_owned(),
        rest_mw: 0.0,
        range: None,
        parameters: Parameters::WifiAirtime(WifiAirtimeParameters {
            awake_mw,
            receive_mw: ns3_mw(0.313),
            send_mw: ns3_mw(0.380),
            idle_mw: awake_mw,
            channel_mbps: 24.0,
            ..WifiAirtimeParameters::default()
        }),
    }
}

/// Set of one row of Tables 2 and 3: energy of no time (joules of 60 MB) and power.
fn paper002(
    name: &str,
    access: &str,
    quality: &str,
    intercept: f64,
    in_use_mw: f64,
) -> ParameterSet {
    ParameterSet {
        name: name.to_owned(),
        device: "single-board computer with USB modems, downlink".to_owned(),
        access: access.to_owned(),
        source:
            "Shams et al., Sensors 2023, 23, 7699 (paper 002): line through the means of Tables 2 \
                 and 3, 3 to 8 receivers"
                .to_owned(),
        quality: quality.to_owned(),
        assumed: "60 MB in each transfer; the tables contradict each other (docs/energy.md)"
            .to_owned(),
        rest_mw: 0.0,
        range: None,
        parameters: Parameters::Paper002(Paper002Parameters {
            joules_per_mb: intercept / 60.0,
            in_use_mw,
        }),
    }
}

/// Returns the sets of publications.
pub(super) fn sets() -> Vec<ParameterSet> {
    vec![
        wifi(),
        paper002(
            "paper002-lte",
            "LTE alone",
            "R2 0.95 over 6 means, worst error 0.5 %",
            45.1426,
            213.8,
        ),
        paper002(
            "paper002-wifi",
            "Wi-Fi alone",
            "R2 0.997 over 6 means, worst error 0.1 %",
            48.2521,
            134.8,
        ),
        paper002(
            "paper002-both",
            "LTE and Wi-Fi together, as one access (MPTCP, BALIA and Cubic)",
            "R2 0.69 over 12 means, worst error 0.6 %",
            55.7479,
            141.1,
        ),
    ]
}
