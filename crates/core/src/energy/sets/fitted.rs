//! Sets fitted on the recordings of Narayanan et al., "A Variegated Look at 5G in the Wild"
//! (SIGCOMM 2021): 51 s transfers at target rates (Verizon) and walks of 22,300 connected seconds.
//!
//! Transfers: of each direction the line of least mean relative error over all seconds that keeps
//! the energy of every transfer within 9.5 %; of mmWave downlink two transfers (200 and
//! 1000 Mbit/s) are beyond that for any line that follows the others. Walks: least mean relative
//! error over all seconds. Timers: median round-trip times after idle times of the same authors'
//! RRC-Probe.

use super::super::{AffineParameters, DrxParameters, Nr38840Parameters, Parameters, SignalTerm};
use super::{ParameterSet, Range};

/// Power of the phone beside its radio, mW: mean over the walks of total power less the power that
/// the authors ascribe to the radio. The recordings of the transfers have only the total.
const REST_MW: f64 = 2338.7;
/// Time from idle to connected, ms: least of the measured 0.3 to 1.6 s, of which up to 1.28 s pass
/// until the next paging occasion.
const PROMOTION_MS: f64 = 300.0;
/// Paging cycle, ms.
const PAGING_CYCLE_MS: f64 = 1280.0;
/// Receiver on in each cycle of DRX and of paging, ms: nobody measured it.
const ON_MS: f64 = 10.0;
/// Power between those, as a share of the power connected: light sleep by PDCCH-only of TR 38.840.
const SLEEP_SHARE: f64 = 0.2;

const TRANSFERS: &str =
    "Narayanan et al., SIGCOMM 2021: transfers of 51 s at target rates, Verizon";
const WALKS: &str = "Narayanan et al., SIGCOMM 2021: walks, 22,300 connected seconds, Verizon";
const TIMERS: &str = "timers: RRC-Probe of the same authors";
const PHONE: &str = "5G phone of the recordings, screen on";

/// Lines through the seconds of the transfers in each direction, power of the whole phone.
struct Fit {
    down_mw: f64,
    down_mw_per_mbps: f64,
    up_mw: f64,
    up_mw_per_mbps: f64,
}

const LTE: Fit = Fit {
    down_mw: 2730.30,
    down_mw_per_mbps: 13.878,
    up_mw: 2913.15,
    up_mw_per_mbps: 75.103,
};
const NSA_LOW: Fit = Fit {
    down_mw: 2920.04,
    down_mw_per_mbps: 12.866,
    up_mw: 3299.15,
    up_mw_per_mbps: 27.335,
};
const MMWAVE: Fit = Fit {
    down_mw: 5148.29,
    down_mw_per_mbps: 1.8206,
    up_mw: 5625.03,
    up_mw_per_mbps: 9.2659,
};

/// Affine parameters of a radio. Powers of promotion and tail were not recorded: the base stands
/// for them.
fn affine(base_mw: f64, fit: &Fit, promotion_ms: f64, tail_ms: f64) -> AffineParameters {
    AffineParameters {
        base_mw,
        down_mw_per_mbps: fit.down_mw_per_mbps,
        up_mw_per_mbps: fit.up_mw_per_mbps,
        uplink_mw: fit.up_mw - fit.down_mw,
        promotion_ms,
        promotion_mw: base_mw,
        tail_ms,
        tail_mw: base_mw,
        ..AffineParameters::default()
    }
}

/// Measured timers of one network, ms.
struct Timers {
    tail_ms: f64,
    cycle_ms: f64,
    inactive_until_ms: f64,
}

/// Parameters by RRC states: powers of the fit, timers of the network.
fn drx(fit: &Fit, timers: &Timers) -> DrxParameters {
    let base_mw = fit.down_mw - REST_MW;
    DrxParameters {
        connected_mw: base_mw,
        down_mw_per_mbps: fit.down_mw_per_mbps,
        up_mw_per_mbps: fit.up_mw_per_mbps,
        uplink_mw: fit.up_mw - fit.down_mw,
        promotion_ms: PROMOTION_MS,
        promotion_mw: base_mw,
        inactivity_ms: 0.0,
        cycle_ms: timers.cycle_ms,
        on_ms: ON_MS,
        sleep_mw: base_mw * SLEEP_SHARE,
        tail_ms: timers.tail_ms,
        inactive_until_ms: timers.inactive_until_ms,
        paging_cycle_ms: PAGING_CYCLE_MS,
        paging_on_ms: ON_MS,
        idle_mw: 0.0,
    }
}

fn range(down_mbps: f64, up_mbps: f64) -> Option<Range> {
    Some(Range { down_mbps, up_mbps })
}

/// A set of the phone of these recordings.
fn set(
    name: &str,
    access: &str,
    source: String,
    quality: &str,
    assumed: &str,
    range: Option<Range>,
    parameters: Parameters,
) -> ParameterSet {
    ParameterSet {
        name: name.to_owned(),
        device: PHONE.to_owned(),
        access: access.to_owned(),
        source,
        quality: quality.to_owned(),
        assumed: assumed.to_owned(),
        rest_mw: REST_MW,
        range,
        parameters,
    }
}

/// Sets of the affine model: name, access, fit, tail, quality, range.
fn of_transfers() -> Vec<ParameterSet> {
    let assumed = "power of promotion and tail: the base; idle: none; power beside the radio: that \
                   of the walks";
    let one = |name, access, fit: &Fit, tail_ms, quality, range| {
        let p = affine(fit.down_mw - REST_MW, fit, PROMOTION_MS, tail_ms);
        let source = format!("{TRANSFERS}; {TIMERS}");
        set(
            name,
            access,
            source,
            quality,
            assumed,
            range,
            Parameters::Affine(p),
        )
    };
    vec![
        one(
            "sigcomm21-lte",
            "LTE",
            &LTE,
            10_100.0,
            "MAPE per second 7.2 % down, 8.9 % up; R2 0.39, 0.55; energy of 34 transfers: mean error \
             3.7 %, worst 9.5 %",
            range(96.1, 27.7),
        ),
        one(
            "sigcomm21-nsa-low",
            "5G NSA, low band",
            &NSA_LOW,
            10_200.0,
            "MAPE per second 9.4 % down, 9.5 % up; R2 0.45, 0.54; energy of 13 transfers: mean error \
             4.5 %, worst 9.5 %",
            range(120.0, 46.0),
        ),
        one(
            "sigcomm21-mmwave",
            "5G NSA, mmWave",
            &MMWAVE,
            10_200.0,
            "MAPE per second 4.5 % down, 2.4 % up; R2 0.87, 0.84; energy of 52 transfers: mean error \
             2.2 %, worst 14.1 % (200 Mbit/s down) and 11.5 % (1000 Mbit/s down), others 9.5 %",
            range(2482.4, 220.1),
        ),
    ]
}

/// Set of the walks, with signal.
fn of_walks() -> ParameterSet {
    let term = |mw_per_db, reference, min, max| {
        Some(SignalTerm {
            mw_per_db,
            reference,
            min,
            max,
        })
    };
    let base_mw = 3400.76;
    let p = AffineParameters {
        base_mw,
        down_mw_per_mbps: 1.4073,
        up_mw_per_mbps: 4.6139,
        promotion_ms: PROMOTION_MS,
        promotion_mw: base_mw,
        tail_ms: 10_200.0,
        tail_mw: base_mw,
        rsrp: term(-63.299, -85.0, -118.0, -58.0),
        sinr: term(67.347, 12.0, -7.0, 26.0),
        ..AffineParameters::default()
    };
    set(
        "sigcomm21-mmwave-walk",
        "5G NSA, mmWave, with RSRP and SINR of NR",
        format!("{WALKS}; {TIMERS}"),
        "MAPE per second 11.1 % of the radio, 7.1 % of the phone (10-fold cross-validation: the same); \
         R2 0.82; energy of all walks -2.0 %",
        "power of promotion and tail: the base at -85 dBm and 12 dB; idle: none",
        range(3457.0, 221.3),
        Parameters::Affine(p),
    )
}

/// Sets by RRC states: name, access, fit and the network's timers.
fn of_states() -> Vec<ParameterSet> {
    let assumed = "receiver on for 10 ms in each cycle; sleep between DRX cycles at 0.2 of the power \
                   connected (light sleep by PDCCH-only of TR 38.840), between pagings none; no \
                   inactivity timer before DRX; power of promotion: connected";
    let quality = "timers measured to about 0.1 s; powers while data flows as the affine set of the \
                   access; the power of the tail was not recorded";
    let one = |name, access, fit, tail_ms, cycle_ms, inactive_until_ms| {
        let timers = Timers {
            tail_ms,
            cycle_ms,
            inactive_until_ms,
        };
        let p = Parameters::Drx(drx(fit, &timers));
        let source = format!("{TRANSFERS}; {TIMERS}");
        set(name, access, source, quality, assumed, None, p)
    };
    vec![
        one(
            "sigcomm21-lte-verizon",
            "LTE, timers of Verizon",
            &LTE,
            10_100.0,
            320.0,
            0.0,
        ),
        one(
            "sigcomm21-lte-tmobile",
            "LTE, timers of T-Mobile",
            &LTE,
            5_000.0,
            60.0,
            0.0,
        ),
        one(
            "sigcomm21-sa-tmobile",
            "5G, timers of T-Mobile SA, powers of NSA low band",
            &NSA_LOW,
            10_000.0,
            40.0,
            15_000.0,
        ),
    ]
}

/// Set of the relative powers of TR 38.840, scaled on the transfers over the low band.
fn of_tr38840() -> ParameterSet {
    let p = Nr38840Parameters {
        unit_mw: 5.960,
        peak_down_mbps: 94.74,
        peak_up_mbps: 107.9,
        bandwidth_mhz: 100.0,
        rx_antennas: 4,
        tx_power_dbm: 23.0,
        inactivity_ms: 0.0,
        cycle_ms: 40.0,
        on_ms: ON_MS,
        tail_ms: 10_200.0,
        paging_cycle_ms: PAGING_CYCLE_MS,
    };
    set(
        "sigcomm21-nsa-low-38840",
        "5G NSA, low band",
        format!("3GPP TR 38.840 V16.0.0, tables 18 and 19; scale: {TRANSFERS}; {TIMERS}"),
        "MAPE per second 9.2 % down, 10.0 % up; energy of 13 transfers: mean error 4.9 %, worst \
         13.2 %",
        "bandwidth part 100 MHz, 4 receive antennas, 23 dBm: the unit and the two peaks absorb them; \
         DRX cycle of T-Mobile SA, receiver on for 10 ms of it",
        range(120.0, 46.0),
        Parameters::Nr38840(p),
    )
}

/// Returns the sets of these recordings.
pub(super) fn sets() -> Vec<ParameterSet> {
    let mut sets = of_transfers();
    sets.push(of_walks());
    sets.extend(of_states());
    sets.push(of_tr38840());
    sets
}
