//! Random runs: whatever links do, every byte arrives once and in order.

use std::time::Duration;

use braid_core::sched::SCHEDULERS;
use braid_core::sched::WrrMode;
use braid_core::{Rate, Time};
use braid_radio::model::{DelaySpec, JitterSpec, LinkSpec, LossSpec, QueueSpec, RateSpec};

use super::app::App;
use super::draws::{Draws, asked_or};
use super::script::What;
use super::world::{Radio, World};
use crate::{Lane, Options, Steering};

/// Runs in `cargo test`.
const SEEDS: u64 = 3000;
/// BBR draws its probing from the clock: it has no part in runs that are repeatable.
const CONTROLS: [&str; 6] = ["reno", "cubic", "lia", "olia", "balia", "wvegas"];

fn link(d: &mut Draws) -> LinkSpec {
    let loss = match d.below(4) {
        0 => LossSpec::Bernoulli(d.log(1e-5, 0.05)),
        1 => LossSpec::GilbertElliott {
            good_to_bad: d.log(1e-5, 0.01),
            bad_to_good: d.log(0.05, 0.9),
            loss_good: 0.0,
            loss_bad: d.unit(),
        },
        _ => LossSpec::None,
    };
    let jitter = (d.below(4) == 0).then(|| JitterSpec {
        deviation: Duration::from_secs_f64(d.log(1e-5, 0.02)),
        reorder: d.below(2) == 0,
    });
    LinkSpec {
        rate: RateSpec::Constant(Rate::from_mbps(d.log(0.3, 300.0))),
        delay: DelaySpec::Constant(Duration::from_secs_f64(d.log(1e-4, 0.3))),
        jitter,
        loss,
        queue: QueueSpec::Bytes(d.log(3000.0, 1e6) as u64),
        ..LinkSpec::default()
    }
}

/// Outages of accesses, told or not, changes of address, and of whether to leave it. The first access lasts:
/// at any time there is one to carry.
fn script(d: &mut Draws, accesses: usize) -> Vec<(Time, usize, What)> {
    let mut script = Vec::new();
    for _ in 0..d.below(8) {
        let begin = d.log(0.01, 20.0);
        let end = begin + d.log(0.01, 5.0);
        let at = |s: f64| Time::from(Duration::from_secs_f64(s));
        let access = d.below(accesses);
        match d.below(5) {
            4 => {
                script.push((at(begin), access, What::Backup(true)));
                script.push((at(end), access, What::Backup(false)));
            }
            3 => script.push((at(begin), access, What::Expect(d.log(0.5, 1000.0) as u32))),
            0 => script.push((at(begin), access, What::Move)),
            _ if access == 0 => {}
            1 => {
                script.push((at(begin), access, What::Link(false)));
                script.push((at(end), access, What::Link(true)));
            }
            _ => {
                script.push((at(begin), access, What::Silent(false)));
                script.push((at(end), access, What::Silent(true)));
            }
        }
    }
    script
}

fn world(seed: u64) -> World {
    let d = &mut Draws::new(seed, "run");
    let n = 1 + d.below(4);
    let radios: Vec<Radio> = (0..n)
        .map(|_| Radio {
            down: link(d),
            up: link(d),
            // Far off as often as right.
            expects: (d.below(2) == 0).then(|| d.log(1.0, 1000.0) as u32),
        })
        .collect();
    let lane = [Lane::Stream, Lane::Datagram][d.below(2)];
    let fits = |name: &&str| {
        let steering = Steering {
            scheduler: (**name).to_owned(),
            ..Steering::default()
        };
        steering.make(lane).is_ok()
    };
    let names: Vec<&str> = SCHEDULERS.iter().map(|(n, _)| *n).filter(fits).collect();
    let options = Options {
        lane,
        steering: Steering {
            scheduler: names[d.below(names.len())].to_owned(),
            wrr_mode: [WrrMode::Strict, WrrMode::WorkConserving][d.below(2)],
            reinject: d.below(2) == 0,
            ..Steering::default()
        },
        congestion_control: CONTROLS[d.below(CONTROLS.len())].to_owned(),
        ..Options::default()
    };
    let weights: Vec<f64> = (0..n).map(|_| d.log(0.01, 100.0)).collect();
    let total = d.log(1e3, 1e6) as u64;
    let script = script(d, n);
    let duplicated = if d.below(4) == 0 {
        d.log(1e-4, 0.2)
    } else {
        0.0
    };
    let mut world = World::new(seed, &radios, &options, &weights, script, App::new(total));
    world.duplicated = duplicated;
    world
}

fn run(seed: u64) -> World {
    let mut world = world(seed);
    world.run(Time::from(Duration::from_secs(600)));
    world
}

#[test]
fn every_byte_arrives_once_and_in_order() {
    let mut failed = Vec::new();
    for seed in asked_or(0..SEEDS) {
        let mut world = run(seed);
        if !world.app.done() || world.app.wrong.is_some() {
            let what = world.app.wrong.clone();
            let so_far = || {
                format!(
                    "{} bytes by {:?}: {:?}",
                    world.app.received,
                    world.now(),
                    world.app.log
                )
            };
            let what = what.unwrap_or_else(so_far);
            failed.push(format!("seed {seed}: {what}"));
        } else if let Err(what) = world.close() {
            failed.push(format!("seed {seed}: {what}"));
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed; BRAID_SEEDS=N..M runs some again:\n{}",
        failed.len(),
        failed.join("\n")
    );
}

#[test]
fn a_seed_is_replayed_to_the_byte() {
    for seed in 0..20 {
        let of = |w: World| (w.trace, w.now(), w.app.received);
        assert_eq!(of(run(seed)), of(run(seed)), "seed {seed}");
    }
}
