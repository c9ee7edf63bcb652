//! What the paths carry, against what the links could.

use std::time::Duration;

use braid_core::api::WrrMode;
use braid_core::{Rate, Time};
use braid_radio::model::{DelaySpec, LinkSpec, QueueSpec, RateSpec};

use super::app::App;
use super::world::{Radio, World};
use crate::{Options, Steering};

fn link(mbps: f64, ms: f64, queue_ms: u64) -> LinkSpec {
    LinkSpec {
        rate: RateSpec::Constant(Rate::from_mbps(mbps)),
        delay: DelaySpec::Constant(Duration::from_secs_f64(ms / 1e3)),
        queue: QueueSpec::Time(Duration::from_millis(queue_ms)),
        ..LinkSpec::default()
    }
}

/// 5G, Wi-Fi and LiFi at a tenth of the rates of the scenario `static`.
fn accesses() -> Vec<Radio> {
    let of = |(down, up, ms): (f64, f64, f64)| Radio {
        down: link(down, ms, 30),
        up: link(up, ms, 100),
    };
    [(35.4, 6.0, 10.0), (123.3, 60.0, 1.3), (1.25, 1.25, 1.0)]
        .map(of)
        .into()
}

fn options(scheduler: &str, wrr_mode: WrrMode, cc: &str) -> Options {
    Options {
        steering: Steering {
            scheduler: scheduler.to_owned(),
            wrr_mode,
        },
        congestion_control: cc.to_owned(),
        ..Options::default()
    }
}

/// Goodput, Mbit/s, and shares of the bytes of the downlinks, from 2 s to 6 s.
fn measured(options: &Options, weights: &[f64]) -> (f64, Vec<f64>) {
    let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
    let mut world = World::new(1, &accesses(), options, weights, vec![], App::new(u64::MAX));
    world.run(at(2));
    let (before, received) = (world.sent_bytes.clone(), world.app.received);
    world.run(at(6));
    assert_eq!(world.app.wrong, None);
    let carried: Vec<f64> = world
        .sent_bytes
        .iter()
        .zip(&before)
        .map(|(a, b)| (a[0] - b[0]) as f64)
        .collect();
    let total: f64 = carried.iter().sum();
    let mbps = (world.app.received - received) as f64 * 8.0 / 4.0 / 1e6;
    (mbps, carried.into_iter().map(|c| c / total).collect())
}

/// UDP payload less QUIC's own bytes: short header with an 8-byte connection id (1 + 8 +
/// 2), tag (16), header of the STREAM frame (1 + 1 + 8 + 2).
const PAYLOAD: f64 = (1452.0 - 27.0 - 12.0) / 1480.0;

#[test]
fn strict_weights_are_exact() {
    for weights in [[1.0, 1.0, 1.0], [7.0, 2.0, 1.0], [30.0, 100.0, 1.0]] {
        let (mbps, shares) = measured(&options("wrr", WrrMode::Strict, "cubic"), &weights);
        let sum: f64 = weights.iter().sum();
        let rates = [35.4, 123.3, 1.25];
        let least = rates
            .iter()
            .zip(&weights)
            .map(|(r, w)| r / w)
            .fold(f64::INFINITY, f64::min);
        let bound = least * sum * PAYLOAD;
        for (share, w) in shares.iter().zip(&weights) {
            assert!((share - w / sum).abs() < 0.005, "{weights:?}: {shares:?}");
        }
        assert!(
            mbps > 0.95 * bound,
            "{weights:?}: {mbps:.2} of {bound:.2}, {shares:?}"
        );
    }
}

#[test]
fn every_window_is_filled_by_capacity() {
    let options = options("wrr", WrrMode::WorkConserving, "cubic");
    let (mbps, shares) = measured(&options, &[35.4, 123.3, 1.25]);
    let bound = (35.4 + 123.3 + 1.25) * PAYLOAD;
    assert!(mbps > 0.97 * bound, "{mbps:.2} of {bound:.2}, {shares:?}");
}

#[test]
fn every_congestion_control_fills_more_than_the_best_path() {
    // Open: beside another path BBR finds a third of the fast one's rate, and wVegas takes
    // bursts and delayed acknowledgements for queues.
    let open = ["bbr", "wvegas"];
    for cc in crate::congestion::names().filter(|n| !open.contains(n)) {
        let (mbps, shares) = measured(&options("minrtt", WrrMode::Strict, cc), &[]);
        let best = 123.3 * PAYLOAD;
        assert!(mbps > best, "{cc}: {mbps:.2} of {best:.2}, {shares:?}");
    }
}
