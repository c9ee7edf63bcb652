//! The channel against theory.

use std::time::Duration;

use braid_core::Time;

use super::*;
use crate::model::{Medium, MediumStats, StationStats};

mod behaviour;
mod contention;
mod network;
mod phy;

const IP_BYTES: u32 = 1500;

fn time(seconds: f64) -> Time {
    Duration::from_secs_f64(seconds).into()
}

/// Saturated stations at `rates` for `seconds`.
fn saturated(
    spec: &WifiSpec,
    rates: &[Option<f64>],
    garbled: f64,
    seconds: f64,
) -> (MediumStats, Queues) {
    let mut queues = Queues::new(rates.len(), 7);
    for (s, &rate) in rates.iter().enumerate() {
        queues.saturate(s, 0, IP_BYTES);
        queues.channel(s, 0, garbled, rate);
    }
    let mut dcf = Dcf::new(spec, rates.len(), 11).unwrap();
    dcf.advance(time(seconds), &mut queues);
    (dcf.stats(), queues)
}

fn mbps(station: &StationStats, seconds: f64) -> f64 {
    station.delivered_bytes as f64 * 8.0 / seconds / 1e6
}

fn total_mbps(stats: &MediumStats, seconds: f64) -> f64 {
    stats.stations.iter().map(|s| mbps(s, seconds)).sum()
}

fn collided(stats: &MediumStats) -> f64 {
    let sum = |f: fn(&StationStats) -> u64| stats.stations.iter().map(f).sum::<u64>();
    sum(|s| s.collided) as f64 / sum(|s| s.attempts) as f64
}

#[test]
fn saturation_matches_bianchi() {
    println!(
        "\n| channel | stations | Bianchi, Mbit/s | refined | here | collided: Bianchi | refined | here | busy: refined | here |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
    let mut single = WifiSpec::new(Standard::N);
    single.max_ampdu = Some(1);
    let cases = [
        ("802.11b 11", WifiSpec::new(Standard::B), 30.0),
        ("802.11g 54", WifiSpec::new(Standard::G), 15.0),
        ("802.11n 65, no A-MPDU", single, 15.0),
        ("802.11n 65", WifiSpec::new(Standard::N), 60.0),
        ("802.11ac 433.3", WifiSpec::new(Standard::Ac), 30.0),
    ];
    for (name, spec, seconds) in cases {
        for n in [1, 2, 5, 10] {
            let rates = vec![None; n];
            let bianchi = saturation(Theory::Bianchi, &spec, &rates, IP_BYTES).unwrap();
            let refined = saturation(Theory::Refined, &spec, &rates, IP_BYTES).unwrap();
            let (stats, _) = saturated(&spec, &rates, 0.0, seconds);
            let (rate, p) = (total_mbps(&stats, seconds), collided(&stats));
            let busy = stats.busy.as_secs_f64() / seconds;
            println!(
                "| {name} | {n} | {:.2} | {:.2} | {rate:.2} | {:.3} | {:.3} | {p:.3} | {:.3} | {busy:.3} |",
                bianchi.total_mbps,
                refined.total_mbps,
                bianchi.collision,
                refined.collision,
                refined.busy
            );
            assert!(
                (rate / bianchi.total_mbps - 1.0).abs() < 0.05,
                "{name}, {n}"
            );
            assert!(
                (rate / refined.total_mbps - 1.0).abs() < 0.02,
                "{name}, {n}"
            );
            assert!((p - refined.collision).abs() < 0.015, "{name}, {n}");
            assert!((busy - refined.busy).abs() < 0.005, "{name}, {n}");
        }
    }
}

/// One station by hand; ten against equations 7 and 9 of Bianchi 2000.
#[test]
fn theory_solves_its_equations() {
    let mut spec = WifiSpec::new(Standard::G);
    spec.cw_max = Some(511);
    let one = saturation(Theory::Bianchi, &spec, &[None], IP_BYTES).unwrap();
    // 7.5 slots of 9 us, DIFS, frame, SIFS, acknowledgement.
    let cycle = 7.5 * 9.0 + 28.0 + 254.0 + 10.0 + 34.0;
    assert!((one.total_mbps - 12_000.0 / cycle).abs() < 1e-9);
    let (n, w, m) = (10, 16.0, 5);
    let p: f64 = saturation(Theory::Bianchi, &spec, &[None; 10], IP_BYTES)
        .unwrap()
        .collision;
    let sum: f64 = (0..m).map(|i| (2.0 * p).powi(i)).sum();
    let tau = 2.0 / (1.0 + w + p * w * sum);
    assert!((1.0 - (1.0 - tau).powi(n - 1) - p).abs() < 1e-9);
}

#[test]
fn one_slow_station_slows_all() {
    let spec = WifiSpec::new(Standard::B);
    let seconds = 120.0;
    println!(
        "\n| stations | all at 11, each | one at 1: Heusse | Bianchi | slow here | fast here | slow's air |"
    );
    println!("|--:|--:|--:|--:|--:|--:|--:|");
    for n in [2, 3, 5] {
        let (all_fast, _) = saturated(&spec, &vec![Some(11.0); n], 0.0, seconds);
        let mut rates = vec![Some(11.0); n];
        rates[0] = Some(1.0);
        let (stats, _) = saturated(&spec, &rates, 0.0, seconds);
        let heusse = heusse(&spec, n as u32, 1.0, 11.0, IP_BYTES).unwrap();
        let bianchi = saturation(Theory::Refined, &spec, &rates, IP_BYTES).unwrap();
        let slow = mbps(&stats.stations[0], seconds);
        let fast = (total_mbps(&stats, seconds) - slow) / (n - 1) as f64;
        let air: Duration = stats.stations.iter().map(|s| s.airtime).sum();
        let share = stats.stations[0].airtime.as_secs_f64() / air.as_secs_f64();
        println!(
            "| {n} | {:.2} | {heusse:.2} | {:.2} | {slow:.2} | {fast:.2} | {share:.2} |",
            total_mbps(&all_fast, seconds) / n as f64,
            bianchi.station_mbps[0],
        );
        assert!((slow / fast - 1.0).abs() < 0.05, "{n}: {slow} and {fast}");
        assert!((fast / bianchi.station_mbps[0] - 1.0).abs() < 0.03, "{n}");
        assert!((fast / heusse - 1.0).abs() < 0.10, "{n}: {fast}, {heusse}");
        assert!(
            fast < 0.5 * total_mbps(&all_fast, seconds) / n as f64,
            "{n}"
        );
        // 1500 IP bytes with 36 of headers: 192 us and 8 bits each at the rate.
        let (slow_air, fast_air) = (192.0 + 12_288.0, 192.0 + 1118.0);
        let expected = slow_air / (slow_air + fast_air * (n - 1) as f64);
        assert!((share - expected).abs() < 0.03, "{n}: {share}, {expected}");
    }
}
