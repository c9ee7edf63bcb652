//! Packets that overtake each other on a link.

use std::time::Duration;

use braid_core::sched::WrrMode;
use braid_radio::model::JitterSpec;

use super::app::App;
use super::shares::{link, options};
use super::world::{Radio, World, at};
use crate::Lane;

/// A link of so many Mbit/s and ms with a queue of 100 ms, and jitter of so many ms.
fn jittery(mbps: f64, ms: f64, jitter_ms: f64, reorder: bool) -> Radio {
    let mut down = link(mbps, ms, 100);
    down.jitter = (jitter_ms > 0.0).then(|| JitterSpec {
        deviation: Duration::from_secs_f64(jitter_ms / 1e3),
        reorder,
    });
    Radio {
        down,
        up: link(10.0, ms, 100),
        expects: None,
    }
}

/// Results of a run.
#[derive(Debug)]
struct Run {
    /// Goodput from 3 s to 12 s, Mbit/s.
    mbps: f64,
    /// IP bytes that the proxy sent in that time, for each byte that arrived.
    cost: f64,
}

fn run(radios: &[Radio], lane: Lane, cc: &str, seed: u64) -> Run {
    let mut options = options(lane, "minrtt", WrrMode::WorkConserving, cc);
    options.steering.reinject = lane == Lane::Datagram;
    let weights = vec![1.0; radios.len()];
    let app = App::new(u64::MAX);
    let mut world = World::new(seed, radios, &options, &weights, vec![], app);
    let sent = |w: &World| w.sent_bytes.iter().map(|b| b[0]).sum::<u64>();
    world.run(at(3000));
    let (before, carried) = (world.app.received, sent(&world));
    let mbps = world.goodput(at(12_000));
    let received = world.app.received - before;
    Run {
        mbps,
        cost: (sent(&world) - carried) as f64 / received as f64,
    }
}

/// 40 Mbit/s and 10 ms, 20 Mbit/s and 30 ms, with jitter of so many ms.
fn both(a: f64, b: f64) -> [Radio; 2] {
    [jittery(40.0, 10.0, a, true), jittery(20.0, 30.0, b, true)]
}

const LANES: [Lane; 2] = [Lane::Datagram, Lane::Stream];

#[test]
fn paths_that_reorder_carry_85_percent_of_what_they_could() {
    for lane in LANES {
        for (a, b, seeds) in [(1.0, 1.0, 1..2), (5.0, 10.0, 1..4)] {
            for seed in seeds {
                let run = run(&both(a, b), lane, "cubic", seed);
                assert!(run.mbps > 0.85 * 57.0, "{lane:?} {a} {b}: {run:?}");
                assert!(run.cost < 1.1, "{lane:?} {a} {b}: {run:?}");
            }
        }
    }
}

/// Without reordering, such jitter leaves BBR 48 to 51 Mbit/s of 57. It draws from the system when
/// it probes, so that no seed replays a run: the middle one of three counts (of 30 runs the least
/// had 44.7 on the datagram lane, 48.7 on the stream lane).
#[test]
fn with_bbr_they_carry_75_percent_of_what_they_could() {
    for lane in LANES {
        let mut runs = [(); 3].map(|()| run(&both(5.0, 10.0), lane, "bbr", 1));
        runs.sort_by(|a, b| a.mbps.total_cmp(&b.mbps));
        assert!(runs[1].mbps > 0.75 * 57.0, "{lane:?}: {runs:?}");
        assert!(runs.iter().all(|r| r.cost < 1.1), "{lane:?}: {runs:?}");
    }
}

#[test]
fn one_path_that_reorders_carries_what_it_could() {
    for (lane, cc) in LANES.into_iter().flat_map(|l| [(l, "cubic"), (l, "bbr")]) {
        for (path, carries) in both(5.0, 10.0).chunks(1).zip([38.0, 19.0]) {
            let run = run(path, lane, cc, 1);
            assert!(run.mbps > 0.85 * carries, "{lane:?} {cc}: {run:?}");
        }
    }
}

/// The window of a controller that the library does not give back itself.
#[test]
fn what_was_done_for_losses_that_were_none_is_taken_back() {
    for cc in ["reno", "lia", "swing"] {
        let run = run(&both(1.0, 1.0), Lane::Datagram, cc, 1);
        assert!(run.mbps > 0.85 * 57.0, "{cc}: {run:?}");
    }
}
