//! Classes of traffic beside each other: each by its own steering, over the same paths.

mod modes;

use std::collections::BTreeMap;

use braid_core::Time;
use braid_core::class::ClassSteering;
use braid_core::sched::WrrMode;
use braid_radio::model::LossSpec;
use bytes::Bytes;

use super::app::App;
use super::script::What;
use super::shares::{options, radio};
use super::world::{Radio, World, at};
use crate::lane::{Lane as Channels, Packet};
use crate::{Lane, Options};

/// Bytes that a channel has waiting.
const BACKLOG: u64 = 1 << 20;

/// Load from the proxy: on each channel, of its class, as fast as it goes; and a packet of 200 bytes
/// every 20 ms in a class.
#[derive(Clone, Default)]
struct Load {
    channels: BTreeMap<u64, u8>,
    voice: Option<u8>,
}

impl Load {
    /// Bulk in class 1 and a call in class 2.
    fn call_beside_bulk() -> Self {
        Self {
            channels: [(1, 1)].into(),
            voice: Some(2),
        }
    }
}

/// Arrivals within the time that counts.
#[derive(Debug, Default)]
struct Outcome {
    /// Bytes by channel.
    bytes: BTreeMap<u64, u64>,
    /// Bytes that each downlink carried.
    carried: Vec<u64>,
    /// Delays of the packets, ms.
    delays: Vec<f64>,
}

impl Outcome {
    /// Share of a downlink among all.
    fn share(&self, access: usize) -> f64 {
        self.carried[access] as f64 / self.carried.iter().sum::<u64>() as f64
    }

    fn delay(&mut self, percent: usize) -> f64 {
        self.delays.sort_by(f64::total_cmp);
        self.delays[(self.delays.len() - 1) * percent / 100]
    }
}

fn class(text: &str) -> ClassSteering {
    serde_json::from_str(text).expect("a steering")
}

fn steered(classes: &[(u8, &str)]) -> Options {
    let mut options = options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "swing");
    let classes = classes.iter().map(|(n, text)| (*n, class(text)));
    options.steering.classes = classes.collect();
    options
}

fn unmarked(_: &Bytes) -> Option<Bytes> {
    None
}

/// One run: what comes from `begin` to `end` counts, ms.
struct Run {
    world: World,
    load: Load,
    sent_at: Vec<Time>,
}

impl Run {
    fn new(radios: &[Radio], options: &Options, load: Load) -> Self {
        let weights = vec![1.0; radios.len()];
        let mut world = World::new(1, radios, options, &weights, vec![], App::renewed());
        world.rest(at(500));
        Self {
            world,
            load,
            sent_at: vec![],
        }
    }

    /// Goes on for so many ms; returns what came.
    fn go(&mut self, ms: u64) -> Outcome {
        let begin = self.world.now();
        let sent = |w: &World| w.sent_bytes.iter().map(|s| s[0]).collect::<Vec<_>>();
        let before = sent(&self.world);
        let mut outcome = Outcome::default();
        for tick in 1..=ms * 2 {
            let to = Time::from_nanos(begin.as_nanos() + tick * 500_000);
            self.world.rest(to);
            self.receive(&mut outcome);
            self.send(tick);
        }
        let after = sent(&self.world);
        let carried = after.iter().zip(&before).map(|(a, b)| a - b);
        outcome.carried = carried.collect();
        outcome
    }

    fn receive(&mut self, outcome: &mut Outcome) {
        let won = self.world.dial.connection().expect("a session");
        let now = self.world.now();
        let c = self.world.device.connection(won).expect("it lasts");
        let lane = c.lane().expect("the lane of datagrams");
        while let Some(data) = lane.next_message() {
            let n = u64::from_be_bytes(data[..8].try_into().expect("a packet of ours"));
            let sent = self.sent_at[usize::try_from(n).expect("few")];
            outcome.delays.push(now.since(sent).as_secs_f64() * 1e3);
        }
        for channel in self.load.channels.keys() {
            while let Some(data) = lane.read(*channel) {
                *outcome.bytes.entry(*channel).or_default() += data.len() as u64;
            }
        }
    }

    fn send(&mut self, tick: u64) {
        let (now, instant) = (self.world.now(), self.world.instant());
        let proxy = self.world.proxy.as_mut().expect("it runs");
        let handle = proxy.handles()[0];
        let c = proxy.connection(handle).expect("it lasts");
        let lane: &mut Channels = c.lane().expect("the lane of datagrams");
        for (channel, class) in &self.load.channels {
            lane.set_class(*channel, *class);
            while lane.unsent(*channel) < BACKLOG {
                if lane.write(*channel, vec![0; 1 << 16].into()) == 0 {
                    break;
                }
            }
        }
        if let Some(class) = self.load.voice
            && tick.is_multiple_of(40)
        {
            let mut data = vec![0; 200];
            data[..8].copy_from_slice(&(self.sent_at.len() as u64).to_be_bytes());
            self.sent_at.push(now);
            let packet = Packet {
                class,
                flow: 1,
                ordered: false,
                data: data.into(),
                mark: unmarked,
            };
            lane.send_packet(packet, instant);
        }
    }
}

/// Two like accesses of 20 Mbit/s.
fn like() -> [Radio; 2] {
    [radio(20.0, 10.0, 40), radio(20.0, 12.0, 40)]
}

#[test]
fn each_class_goes_by_its_own_order() {
    let options = steered(&[
        (1, r#"{"mode": "active-standby", "order": ["a0"]}"#),
        (2, r#"{"mode": "active-standby", "order": ["a1"]}"#),
    ]);
    for (class, access) in [(1, 0), (2, 1)] {
        let load = Load {
            channels: [(1, class)].into(),
            ..Load::default()
        };
        let mut run = Run::new(&like(), &options, load);
        run.go(1000);
        let outcome = run.go(3000);
        assert!(outcome.share(access) > 0.99, "class {class}: {outcome:?}");
        assert!(outcome.bytes[&1] > 6_500_000, "class {class}: {outcome:?}");
    }
    // Beside each other they fill both.
    let load = Load {
        channels: [(1, 1), (3, 2)].into(),
        ..Load::default()
    };
    let mut run = Run::new(&like(), &options, load);
    run.go(1000);
    let outcome = run.go(3000);
    for channel in [1, 3] {
        assert!(outcome.bytes[&channel] > 6_300_000, "{outcome:?}");
    }
}

#[test]
fn weights_are_those_of_the_class() {
    let options = steered(&[(
        1,
        r#"{"mode": "load-balancing", "wrr_mode": "strict", "weights": {"a0": 80, "a1": 20}}"#,
    )]);
    for (class, wanted) in [(1, 0.8), (0, 0.5)] {
        let load = Load {
            channels: [(1, class)].into(),
            ..Load::default()
        };
        let mut run = Run::new(&like(), &options, load);
        run.go(1000);
        let outcome = run.go(3000);
        let share = outcome.share(0);
        assert!((share - wanted).abs() < 0.03, "class {class}: {outcome:?}");
    }
}

#[test]
fn classes_on_the_same_path_share_it_as_their_streams() {
    let options = steered(&[
        (1, r#"{"mode": "active-standby", "order": ["a0"]}"#),
        (2, r#"{"mode": "active-standby", "order": ["a0"]}"#),
    ]);
    let load = Load {
        channels: [(1, 1), (3, 2), (5, 2), (7, 2)].into(),
        ..Load::default()
    };
    let mut run = Run::new(&like(), &options, load);
    run.go(1000);
    let outcome = run.go(4000);
    let all: u64 = outcome.bytes.values().sum();
    for (channel, bytes) in &outcome.bytes {
        let share = *bytes as f64 / all as f64;
        assert!((share - 0.25).abs() < 0.03, "{channel}: {outcome:?}");
    }
}

#[test]
fn a_class_leaves_a_path_whose_round_trip_exceeds_its_threshold() {
    let radios = [radio(10.0, 90.0, 400), radio(10.0, 30.0, 40)];
    let steering = |threshold: &str| {
        steered(&[
            (1, r#"{"mode": "active-standby", "order": ["a0"]}"#),
            (
                2,
                &format!(r#"{{"mode": "active-standby", "order": ["a0", "a1"]{threshold}}}"#),
            ),
        ])
    };
    let mut delays = [0.0; 2];
    for (i, threshold) in ["", r#", "max_rtt_ms": 100"#].iter().enumerate() {
        let mut options = steering(threshold);
        "cubic".clone_into(&mut options.congestion_control);
        let load = Load::call_beside_bulk();
        let mut run = Run::new(&radios, &options, load);
        run.go(4000);
        delays[i] = run.go(4000).delay(50);
    }
    assert!(
        delays[0] > 80.0,
        "it goes by the preferred path: {delays:?}"
    );
    assert!(delays[1] < 50.0, "it goes by the other path: {delays:?}");
}

#[test]
fn a_class_returns_to_a_path_whose_round_trip_falls_again_though_nothing_else_flows_there() {
    let radios = [radio(10.0, 90.0, 400), radio(10.0, 30.0, 40)];
    let mut options = steered(&[
        (1, r#"{"mode": "active-standby", "order": ["a0"]}"#),
        (
            2,
            r#"{"mode": "active-standby", "order": ["a0", "a1"], "max_rtt_ms": 100}"#,
        ),
    ]);
    "cubic".clone_into(&mut options.congestion_control);
    let load = Load::call_beside_bulk();
    let mut run = Run::new(&radios, &options, load);
    run.go(4000);
    let mut beside = run.go(2000);
    assert!(
        (25.0..50.0).contains(&beside.delay(50)),
        "{:?}",
        beside.delay(50)
    );
    // No more bulk comes, and the preferred path gets near.
    run.load.channels.clear();
    let now = run.world.now();
    run.world.script.push_back((now, 0, What::Delay(5)));
    run.go(8000);
    let mut after = run.go(2000);
    assert!(after.delay(95) < 15.0, "{:?}", after.delay(95));
}

#[test]
fn a_class_leaves_a_path_that_loses_more_than_its_threshold() {
    let mut lossy = radio(20.0, 5.0, 40);
    lossy.down.loss = LossSpec::Bernoulli(0.03);
    let radios = [lossy, radio(20.0, 60.0, 40)];
    for (threshold, leaves) in [("", false), (r#", "max_loss_percent": 1"#, true)] {
        let options = steered(&[
            (1, r#"{"mode": "active-standby", "order": ["a0"]}"#),
            (
                2,
                &format!(r#"{{"mode": "active-standby", "order": ["a0", "a1"]{threshold}}}"#),
            ),
        ]);
        let load = Load::call_beside_bulk();
        let mut run = Run::new(&radios, &options, load);
        run.go(4000);
        let mut outcome = run.go(3000);
        let (came, median) = (outcome.delays.len(), outcome.delay(50));
        assert_eq!(median > 59.0, leaves, "{threshold}: {median} ms");
        // 150 packets: by the path without loss all of them come.
        assert_eq!(came >= 150, leaves, "{threshold}: {came}");
    }
}

#[test]
fn packets_wait_for_no_path_that_their_class_does_not_use() {
    let options = steered(&[(1, r#"{"mode": "active-standby", "order": ["a1"]}"#)]);
    let radios = [radio(20.0, 5.0, 40), radio(20.0, 30.0, 40)];
    let load = Load {
        voice: Some(1),
        ..Load::default()
    };
    let mut run = Run::new(&radios, &options, load);
    run.go(1000);
    let mut outcome = run.go(3000);
    assert!(
        (30.0..32.0).contains(&outcome.delay(95)),
        "{:?}",
        outcome.delay(95)
    );
}

#[test]
fn a_class_that_could_not_send_for_long_takes_no_more_than_its_share() {
    let options = steered(&[
        (1, r#"{"mode": "active-standby", "order": ["a0", "a1"]}"#),
        (2, r#"{"mode": "active-standby", "order": ["a1", "a0"]}"#),
    ]);
    let radios = [radio(2.0, 10.0, 40), radio(20.0, 12.0, 40)];
    let load = Load {
        channels: [(1, 1), (3, 2)].into(),
        ..Load::default()
    };
    for dead in [0, 1] {
        let mut run = Run::new(&radios, &options, load.clone());
        run.go(10_000);
        run.world.pass(dead, false);
        run.go(2000);
        let outcome = run.go(6000);
        let all: u64 = outcome.bytes.values().sum();
        for channel in [1, 3] {
            let share = outcome.bytes.get(&channel).copied().unwrap_or(0) as f64 / all as f64;
            assert!((share - 0.5).abs() < 0.1, "{dead} {channel}: {outcome:?}");
        }
    }
}

#[test]
fn a_class_goes_on_where_its_path_fails_and_others_are_not_there() {
    let options = steered(&[(
        1,
        r#"{"mode": "active-standby", "order": ["a1"], "max_rtt_ms": 1}"#,
    )]);
    // Class 5 has no steering: it goes as the default.
    for class in [1, 5] {
        let load = Load {
            channels: [(1, class)].into(),
            ..Load::default()
        };
        let mut run = Run::new(&like(), &options, load);
        run.go(1000);
        run.world.pass(1, false);
        run.go(1000);
        let outcome = run.go(2000);
        assert!(outcome.bytes[&1] > 4_000_000, "class {class}: {outcome:?}");
        run.world.pass(1, true);
        run.go(1500);
        let back = run.go(2000);
        let share = back.share(1);
        assert!(
            share > if class == 1 { 0.98 } else { 0.4 },
            "class {class}: {back:?}"
        );
    }
}

#[test]
fn voice_in_a_class_of_copies_outlives_an_access_without_a_gap() {
    let options = steered(&[(1, r#"{"mode": "redundant"}"#)]);
    let load = Load {
        channels: [(1, 0)].into(),
        voice: Some(1),
    };
    let mut run = Run::new(&like(), &options, load);
    run.go(2000);
    let mut before = run.go(2000);
    run.world.pass(0, false);
    let during = run.go(2000);
    // 100 packets: all come, beside bulk that fills both accesses.
    assert!(during.delays.len() >= 98, "{}", during.delays.len());
    let median = before.delay(50);
    let worst = during.delays.iter().copied().fold(0.0, f64::max);
    assert!(
        worst < median + 60.0,
        "{median} ms before, {worst} ms at worst"
    );
}

#[test]
fn bulk_in_copies_goes_at_the_pace_of_the_fastest() {
    let options = steered(&[(1, r#"{"mode": "redundant"}"#)]);
    let radios = [radio(20.0, 10.0, 40), radio(4.0, 15.0, 40)];
    let load = Load {
        channels: [(1, 1)].into(),
        ..Load::default()
    };
    let mut run = Run::new(&radios, &options, load);
    run.go(2000);
    let outcome = run.go(4000);
    let mbps = outcome.bytes[&1] as f64 * 8.0 / 4e6;
    assert!((17.0..21.0).contains(&mbps), "{mbps} Mbit/s: {outcome:?}");
    // The other carries copies as far as it can.
    assert!(outcome.carried[1] > 1_500_000, "{outcome:?}");
}

#[test]
fn a_call_does_not_wait_behind_bulk_that_would_fill_the_queues() {
    let mut options = steered(&[]);
    "cubic".clone_into(&mut options.congestion_control);
    let load = Load {
        channels: [(1, 0)].into(),
        voice: Some(0),
    };
    let radios = [radio(10.0, 5.0, 400), radio(10.0, 5.0, 400)];
    let mut run = Run::new(&radios, &options, load);
    run.go(4000);
    let mut outcome = run.go(6000);
    let mbps = outcome.bytes[&1] as f64 * 8.0 / 6e6;
    let delay = outcome.delay(95);
    assert!(delay < 30.0, "{delay} ms beside {mbps} of 20 Mbit/s");
    assert!(mbps > 0.85 * 20.0, "{mbps} of 20 Mbit/s at {delay} ms");
}
