//! Traffic that the paths carry, against what the links could.

use std::time::Duration;

use braid_core::sched::WrrMode;
use braid_core::{Rate, Time};
use braid_radio::model::{DelaySpec, LinkSpec, QueueSpec, RateSpec};

use super::app::App;
use super::world::{Radio, World};
use crate::{Lane, Options, Steering};

pub(super) fn link(mbps: f64, ms: f64, queue_ms: u64) -> LinkSpec {
    LinkSpec {
        rate: RateSpec::Constant(Rate::from_mbps(mbps)),
        delay: DelaySpec::Constant(Duration::from_secs_f64(ms / 1e3)),
        queue: QueueSpec::Time(Duration::from_millis(queue_ms)),
        ..LinkSpec::default()
    }
}

/// Access with the same link in both directions: Mbit/s, delay in ms, queue in ms.
pub(super) fn radio(mbps: f64, ms: f64, queue_ms: u64) -> Radio {
    Radio {
        down: link(mbps, ms, queue_ms),
        up: link(mbps, ms, queue_ms),
        expects: None,
    }
}

/// 5G, Wi-Fi and LiFi at a tenth of the rates of the scenario `static`.
pub(super) fn accesses(queue_ms: u64) -> Vec<Radio> {
    let of = |(down, up, ms): (f64, f64, f64)| Radio {
        down: link(down, ms, queue_ms),
        up: link(up, ms, 100),
        expects: None,
    };
    [(35.4, 6.0, 10.0), (123.3, 60.0, 1.3), (1.25, 1.25, 1.0)]
        .map(of)
        .into()
}

/// Downlinks of [`scaled`], Mbit/s.
pub(super) const RATES: [f64; 3] = [106.3, 369.8, 3.76];

/// 5G, Wi-Fi and LiFi at 0.3 of the rates of the scenario `static`, with its queues.
pub(super) fn scaled() -> Vec<Radio> {
    let times = [(10.06, 30), (1.24, 20), (1.04, 60)];
    let of = |(mbps, (ms, queue_ms))| Radio {
        up: link(mbps / 2.0, ms, 60),
        ..radio(mbps, ms, queue_ms)
    };
    RATES.into_iter().zip(times).map(of).collect()
}

pub(super) fn options(lane: Lane, scheduler: &str, wrr_mode: WrrMode, cc: &str) -> Options {
    Options {
        lane,
        steering: Steering {
            scheduler: scheduler.to_owned(),
            wrr_mode,
            ..Steering::default()
        },
        congestion_control: cc.to_owned(),
        ..Options::default()
    }
}

/// Goodput, Mbit/s, and shares of the bytes of the downlinks, from 2 s to 12 s.
fn measured(options: &Options, weights: &[f64]) -> (f64, Vec<f64>) {
    over(&accesses(30), options, weights)
}

fn over(radios: &[Radio], options: &Options, weights: &[f64]) -> (f64, Vec<f64>) {
    let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
    let mut world = World::new(1, radios, options, weights, vec![], App::new(u64::MAX));
    world.run(at(2));
    let before = world.sent_bytes.clone();
    let mbps = world.goodput(at(12));
    let carried: Vec<f64> = world
        .sent_bytes
        .iter()
        .zip(&before)
        .map(|(a, b)| (a[0] - b[0]) as f64)
        .collect();
    let total: f64 = carried.iter().sum();
    (mbps, carried.into_iter().map(|c| c / total).collect())
}

/// Share of an IP packet that is the application's: UDP payload (1452 of 1480) less QUIC's short
/// header with an 8-byte connection id (1 + 8 + 2), its tag (16) and the header of the
/// STREAM frame (1 + 1 + 8 + 2); or that of the DATAGRAM frame (3) and the lane's own (some
/// 10 of a datagram, 11 of the stream frame), and what QUIC keeps free for packet numbers.
fn payload(lane: Lane) -> f64 {
    let headers = match lane {
        Lane::Stream => 27.0 + 12.0,
        Lane::Datagram => 27.0 + 3.0 + 21.0 + 10.0,
    };
    (1452.0 - headers) / 1480.0
}

const LANES: [Lane; 2] = [Lane::Stream, Lane::Datagram];

#[test]
fn strict_weights_are_exact() {
    for (lane, weights) in LANES.into_iter().flat_map(|lane| {
        let all = [[1.0, 1.0, 1.0], [7.0, 2.0, 1.0], [30.0, 100.0, 1.0]];
        all.map(|w| (lane, w))
    }) {
        let mut options = options(lane, "wrr", WrrMode::Strict, "cubic");
        options.steering.reinject = lane == Lane::Datagram;
        let (mbps, shares) = measured(&options, &weights);
        let sum: f64 = weights.iter().sum();
        let each = [35.4, 123.3, 1.25].into_iter().zip(&weights);
        let least = each.map(|(r, w)| r / w).fold(f64::INFINITY, f64::min);
        let bound = least * sum * payload(lane);
        for (share, w) in shares.iter().zip(&weights) {
            assert!(
                (share - w / sum).abs() < 0.005,
                "{lane:?} {weights:?}: {shares:?}"
            );
        }
        assert!(
            mbps > 0.95 * bound,
            "{lane:?} {weights:?}: {mbps:.2} of {bound:.2}, {shares:?}"
        );
    }
}

/// The queue of the slow path holds five packets.
#[test]
fn a_slow_path_beside_a_faster_one_is_used() {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "cubic");
    options.steering.reinject = true;
    let radios = [radio(10.0, 30.0, 60), radio(1.0, 300.0, 60)];
    let (mbps, shares) = over(&radios, &options, &[]);
    assert!(
        mbps > 10.0 * payload(Lane::Datagram),
        "{mbps:.2}, {shares:?}"
    );
    assert!(shares[1] > 0.04, "{shares:?}");
}

/// Data that waits before 5G and LiFi would fill the receive window of the stream, 2.5 MB.
#[test]
fn a_stream_is_not_held_up_by_slow_queues() {
    let options = options(Lane::Stream, "wrr", WrrMode::WorkConserving, "cubic");
    let (mbps, shares) = over(&scaled(), &options, &RATES);
    let bound = RATES.iter().sum::<f64>() * payload(Lane::Stream);
    assert!(mbps > 0.97 * bound, "{mbps:.1} of {bound:.1}, {shares:?}");
}

#[test]
fn every_window_is_filled_by_capacity() {
    for (lane, part) in LANES.into_iter().zip([0.97, 0.95]) {
        let options = options(lane, "wrr", WrrMode::WorkConserving, "cubic");
        let (mbps, shares) = measured(&options, &[35.4, 123.3, 1.25]);
        let bound = (35.4 + 123.3 + 1.25) * payload(lane);
        assert!(
            mbps > part * bound,
            "{lane:?}: {mbps:.2} of {bound:.2}, {shares:?}"
        );
    }
}

#[test]
fn every_congestion_control_fills_more_than_the_best_path() {
    // Open: on the stream lane QUIC acknowledges on its first path, here a slower one, and BBR
    // takes what that adds for a short path of little rate. wVegas takes it for a queue, and on
    // the datagram lane bursts, too: half of what the paths carry.
    let open = |cc: &str, lane| cc == "wvegas" || (cc == "bbr" && lane == Lane::Stream);
    for cc in crate::congestion::names() {
        for lane in LANES.into_iter().filter(|l| !open(cc, *l)) {
            let options = options(lane, "minrtt", WrrMode::Strict, cc);
            let (mbps, shares) = measured(&options, &[]);
            let best = 123.3 * payload(lane);
            assert!(
                mbps > best,
                "{lane:?} {cc}: {mbps:.2} of {best:.2}, {shares:?}"
            );
        }
    }
}

#[test]
fn paths_tell_which_of_them_limits_and_what_arrives() {
    let radios = [radio(10.0, 10.0, 30), radio(40.0, 10.0, 30)];
    let strict = options(Lane::Datagram, "wrr", WrrMode::Strict, "cubic");
    let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
    let mut world = World::new(1, &radios, &strict, &[1.0, 1.0], vec![], App::new(u64::MAX));
    world.run(at(2));
    let before = world.paths()[1].clone();
    world.run(at(6));
    let after = world.paths()[1].clone();
    for (i, (b, a)) in before.iter().zip(&after).enumerate() {
        let seconds = |t: Duration| t.as_secs_f64();
        let waited = seconds(a.waited - b.waited);
        let full = seconds(a.full - b.full) / waited;
        assert!(waited > 3.6, "data always waits: {waited}");
        // The first has 10 Mbit/s, which holds back the second.
        assert!(if i == 0 { full > 0.8 } else { full < 0.3 }, "{i}: {full}");
        let mbps = (a.delivered_bytes - b.delivered_bytes) as f64 * 8e-6 / 4.0;
        assert!((8.5..10.0).contains(&mbps), "{i}: {mbps}");
        let told = a.delivery_rate.unwrap() * 8e-6;
        assert!((7.0..12.0).contains(&told), "{i}: {told}");
    }
}
