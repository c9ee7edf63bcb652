//! Links whose rate swings: a bond carries no less than its better line.

use std::time::Duration;

use braid_core::sched::WrrMode;
use braid_core::{Rate, stats};
use braid_radio::model::RateSpec;
use braid_radio::swing::SwingingLink;

use super::app::App;
use super::draws::asked;
use super::script::What;
use super::shares::{link, options};
use super::world::{Radio, World, at};
use crate::Lane;

/// When measuring begins and ends, ms.
const BEGIN: u64 = 2000;
const END: u64 = 17_000;
/// Pairs in `cargo test`.
const PAIRS: u64 = 6;

/// Goodput over these links, Mbit/s.
fn carried(seed: u64, cc: &str, links: &[&SwingingLink]) -> f64 {
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, cc);
    let radio = |l: &&SwingingLink| {
        let [down, up] = l.links();
        let expects = None;
        Radio { down, up, expects }
    };
    let radios: Vec<Radio> = links.iter().map(radio).collect();
    let outages = links.iter().enumerate();
    let outages = outages.filter_map(|(i, l)| Some((i, l.outage?)));
    let script = outages.flat_map(|(i, (from, to))| {
        let passes = |ms, passes| (at(ms), i, What::Silent(passes));
        [passes(from, false), passes(to, true)]
    });
    let app = App::new(u64::MAX);
    let mut world = World::new(seed, &radios, &options, &[1.0; 2], script.collect(), app);
    world.run(at(BEGIN));
    world.goodput(at(END))
}

/// Outcome of one pair, Mbit/s.
struct Pair {
    what: String,
    alone: [f64; 2],
    bond: f64,
    /// Rate that both could carry.
    wire: f64,
}

impl Pair {
    fn run(seed: u64, cc: &str) -> Self {
        let draw = |name| SwingingLink::draw(seed, name, Duration::from_millis(END));
        let [a, b] = ["a", "b"].map(draw);
        Self {
            what: format!("seed {seed}: {a} + {b}"),
            alone: [&a, &b].map(|l| carried(seed, cc, &[l])),
            bond: carried(seed, cc, &[&a, &b]),
            wire: a.carries(BEGIN, END) + b.carries(BEGIN, END),
        }
    }

    fn of_better(&self) -> f64 {
        self.bond / self.alone[0].max(self.alone[1])
    }

    fn of_wire(&self) -> f64 {
        self.bond / self.wire
    }
}

/// Runs pairs, prints them, and returns them.
fn pairs(seeds: std::ops::Range<u64>, cc: &str) -> Vec<Pair> {
    let run = |seed| {
        let pair = Pair::run(seed, cc);
        let ([a, b], bond) = (pair.alone, pair.bond);
        let parts = [pair.of_wire(), pair.of_better(), bond / (a + b)];
        let parts = parts.map(|p| format!("{p:.3}")).join(", ");
        println!(
            "{}: {a:.1}, {b:.1}, both {bond:.1} Mbit/s: of wire, better and sum {parts}",
            pair.what
        );
        pair
    };
    seeds.map(run).collect()
}

/// Pairs with less than this part of their better path, over how many there are.
fn below(pairs: &[Pair], part: f64) -> f64 {
    let below = pairs.iter().filter(|p| p.of_better() < part).count();
    below as f64 / pairs.len() as f64
}

/// Median part of the wire.
fn median(pairs: &[Pair]) -> f64 {
    let all: Vec<f64> = pairs.iter().map(Pair::of_wire).collect();
    stats::median(&all)
}

#[test]
fn a_bond_of_swinging_links_carries_more_than_the_better_one() {
    let pairs = pairs(1..1 + PAIRS, "swing");
    assert_eq!(below(&pairs, 0.95), 0.0);
    assert!(median(&pairs) > 0.6, "{}", median(&pairs));
}

/// Prints what `BRAID_CC` carries, for comparison.
#[test]
#[ignore = "takes an hour: make soak"]
fn a_bond_of_1000_pairs_of_swinging_links_carries_more_than_the_better_one() {
    let cc = std::env::var("BRAID_CC").unwrap_or_else(|_| "swing".to_owned());
    let pairs = pairs(asked().unwrap_or(1..1001), &cc);
    println!(
        "{cc}: median of the wire {:.3}; below 0.99 of the better path {:.2} %, below 0.95 {:.2} %",
        median(&pairs),
        100.0 * below(&pairs, 0.99),
        100.0 * below(&pairs, 0.95)
    );
    assert!(below(&pairs, 0.95) < 0.02);
}

/// Part of a swinging wire that one path carries: 2 s each at 100, 10, 60 and 200 Mbit/s, with
/// a queue of 80 ms.
fn of_steps(cc: &str) -> f64 {
    let rates = [100.0, 10.0, 60.0, 200.0];
    let step = |(i, mbps): (u64, f64)| (Duration::from_secs(2 * i), Rate::from_mbps(mbps));
    let mean = rates.iter().sum::<f64>() / 4.0;
    let mut down = link(mean, 10.0, 80);
    down.rate = RateSpec::Steps {
        points: (0..8).zip(rates.into_iter().cycle()).map(step).collect(),
        period: None,
    };
    let radio = Radio {
        down,
        up: link(50.0, 10.0, 80),
        expects: None,
    };
    let options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, cc);
    let mut world = World::new(1, &[radio], &options, &[1.0], vec![], App::new(u64::MAX));
    world.goodput(at(16_000)) / mean
}

#[test]
fn a_window_follows_a_rate_that_rises_tenfold() {
    let [cubic, swing] = ["cubic", "swing"].map(of_steps);
    // Headers of the datagram lane are 4 % of the wire.
    assert!(swing > 0.9 && cubic < swing - 0.1, "{cubic} {swing}");
}
