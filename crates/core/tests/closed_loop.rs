//! The control loop around senders in memory: links follow steps and a walk, samples come
//! every 100 ms, decisions are applied 30 ms later. Seeds are 1 to 5; rates waver by 5 % to both
//! sides, anew every 100 ms. A run is recorded, and its journal replayed.

use braid_core::control::{
    AccessSettings, Decision, Direction, LimitedBy, Observation, PathMetrics, PolicySettings,
    ProbeResult, Settings, StateChange, What,
};
use braid_core::control_loop::ControlLoop;
use braid_core::journal::{Entry, Header, Reader, VERSION, Writer};
use braid_core::replay::replay;
use braid_core::{AccessKind, Rate, Time, seed};
use braid_core::{AccessState, Engine, Role};
use rand::RngExt;

/// Step of the model, milliseconds.
const DT: u64 = 10;

/// Steps of the model between two samples.
const STEPS_PER_SAMPLE: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Sender {
    /// Shares exactly by weights: the link that is full first limits the others.
    Strict,
    /// Fills every link.
    Filling,
    /// Sends a fifth of what each link carries.
    Light,
}

/// Capacity of a link in Mbit/s over time in seconds.
type Capacity = fn(f64) -> f64;

struct Run {
    /// Share of the integral of the capacities that was delivered, 0 to 1.
    delivered: f64,
    /// Share that the weights would give if they were kept exactly, at every moment.
    fit: f64,
    /// Bytes that probes moved, as a share of the same integral.
    probes: f64,
    /// Weights by time in seconds.
    weights: Vec<(f64, Vec<f64>)>,
    entries: Vec<Entry>,
    header: Header,
}

struct World {
    links: Vec<Capacity>,
    sender: Sender,
    seconds: u64,
    seed: u64,
    estimators: Vec<String>,
    policy: &'static str,
}

fn ms(n: u64) -> Time {
    Time::from_nanos(n * 1_000_000)
}

fn name(link: usize) -> String {
    format!("link{link}")
}

/// Rates of a sender that keeps its weights exactly.
fn strict(weights: &[f64], capacities: &[f64]) -> Vec<f64> {
    let both = weights.iter().zip(capacities);
    let turns = both.filter(|(w, _)| **w > 0.0).map(|(w, c)| c / w);
    let turn = turns.fold(f64::INFINITY, f64::min);
    weights.iter().map(|w| w * turn).collect()
}

impl World {
    fn new(links: &[Capacity], sender: Sender, seconds: u64, seed: u64) -> Self {
        Self {
            links: links.to_vec(),
            sender,
            seconds,
            seed,
            estimators: vec!["passive".to_owned()],
            policy: "capacity",
        }
    }

    fn settings(&self) -> Settings {
        let mut access = AccessSettings::new(AccessKind::Other);
        access.estimators.clone_from(&self.estimators);
        access.probe.duration_ms = 500;
        access.probe.interval_ms = 5_000;
        access.probe.bytes_per_hour = 1_000_000_000_000;
        access.probe.bytes_per_day = 1_000_000_000_000;
        access.probe.bytes_per_month = 1_000_000_000_000;
        let accesses = (0..self.links.len()).map(|i| (name(i), access.clone()));
        Settings {
            policy: PolicySettings {
                name: self.policy.to_owned(),
                ..PolicySettings::default()
            },
            accesses: accesses.collect(),
        }
    }

    fn run(&self) -> Run {
        let mut model = Model::new(self);
        assert!(model.recorder.decide(0).is_some());
        for now in (0..self.seconds * 1000).step_by(DT as usize) {
            let probe_ended = model.advance(now);
            let end = now + DT;
            let sampled = end.is_multiple_of(100);
            if sampled {
                model.sample(end);
            }
            if sampled || probe_ended {
                model.decide(end);
            }
        }
        model.finish()
    }
}

/// Links and sender while they run, with their loop. Amounts are megabits.
struct Model<'a> {
    world: &'a World,
    recorder: Recorder,
    rng: seed::Rng,
    /// Factor of each link's capacity.
    noise: Vec<f64>,
    weights: Vec<f64>,
    /// Weights that were decided, and when they are applied.
    pending: Option<(u64, Vec<f64>)>,
    probe: Option<RunningProbe>,
    /// Steps since the last sample in which each link was full.
    full_steps: Vec<usize>,
    delivered: Vec<f64>,
    capacity: f64,
    fit: f64,
    probed: f64,
    changes: Vec<(f64, Vec<f64>)>,
}

struct RunningProbe {
    link: usize,
    begun: u64,
    until: u64,
    moved: f64,
}

impl<'a> Model<'a> {
    fn new(world: &'a World) -> Self {
        let n = world.links.len();
        let mut recorder = Recorder::new(world.seed);
        recorder.observe(0, What::Configuration(world.settings()));
        for i in 0..n {
            let (access, state) = (name(i), AccessState::Active);
            recorder.observe(0, What::AccessState(StateChange { access, state }));
        }
        Self {
            world,
            recorder,
            rng: seed::stream(world.seed, "closed loop"),
            noise: vec![1.0; n],
            weights: vec![1.0; n],
            pending: None,
            probe: None,
            full_steps: vec![0; n],
            delivered: vec![0.0; n],
            capacity: 0.0,
            fit: 0.0,
            probed: 0.0,
            changes: Vec::new(),
        }
    }

    /// Sends for one step from `now` on. Returns whether a probe ended with it.
    fn advance(&mut self, now: u64) -> bool {
        if let Some((_, new)) = self.pending.take_if(|(at, _)| *at <= now) {
            self.changes.push((now as f64 / 1e3, new.clone()));
            self.weights = new;
        }
        if now.is_multiple_of(100) {
            let rng = &mut self.rng;
            self.noise.fill_with(|| 0.95 + 0.1 * rng.random::<f64>());
        }
        let (t, seconds) = (now as f64 / 1e3, DT as f64 / 1e3);
        let links = self.world.links.iter().zip(&self.noise);
        let full: Vec<f64> = links.map(|(capacity, noise)| capacity(t) * noise).collect();
        self.capacity += full.iter().sum::<f64>() * seconds;
        self.fit += strict(&self.weights, &full).iter().sum::<f64>() * seconds;
        let mut free = full;
        if let Some(probe) = &mut self.probe {
            // Ten flows against one.
            let share = free[probe.link] * 10.0 / 11.0;
            free[probe.link] -= share;
            probe.moved += share * seconds;
            self.probed += share * seconds;
        }
        let rates = match self.world.sender {
            Sender::Strict => strict(&self.weights, &free),
            Sender::Filling => free.clone(),
            Sender::Light => free.iter().map(|rate| rate / 5.0).collect(),
        };
        for (i, rate) in rates.iter().enumerate() {
            self.delivered[i] += rate * seconds;
            self.full_steps[i] += usize::from(*rate >= 0.99 * free[i]);
        }
        let ended = self.probe.take_if(|probe| probe.until <= now + DT);
        if let Some(probe) = &ended {
            let mbps = probe.moved * 1e3 / (probe.until - probe.begun) as f64;
            let result = ProbeResult {
                access: name(probe.link),
                direction: Direction::Down,
                bytes: (probe.moved * 125_000.0) as u64,
                rate: Some(Rate::from_mbps(mbps)),
            };
            self.recorder.observe(now + DT, What::ProbeResult(result));
        }
        ended.is_some()
    }

    fn sample(&mut self, now: u64) {
        for (i, megabits) in self.delivered.iter().enumerate() {
            let limited_by = match std::mem::take(&mut self.full_steps[i]) {
                full if full > STEPS_PER_SAMPLE / 2 => LimitedBy::Nothing,
                _ if self.world.sender == Sender::Light => LimitedBy::Application,
                _ => LimitedBy::Scheduler,
            };
            self.recorder
                .observe(now, path_sample(i, *megabits, limited_by));
        }
    }

    fn decide(&mut self, now: u64) {
        if let Some(decision) = self.recorder.decide(now) {
            let accesses = decision.steering.accesses.values();
            self.pending = Some((now + 30, accesses.map(|a| a.weight.down).collect()));
        }
        if self.probe.is_some() {
            return;
        }
        let Some(order) = self.recorder.control.next_probe(ms(now)) else {
            return;
        };
        if order.direction == Direction::Down {
            let link = (0..self.weights.len()).find(|i| name(*i) == order.access);
            self.probe = Some(RunningProbe {
                link: link.unwrap(),
                begun: now,
                until: now + order.duration_ms,
                moved: 0.0,
            });
        } else {
            // Uplinks carry nothing in this model.
            let failed = ProbeResult {
                access: order.access,
                direction: Direction::Up,
                bytes: 0,
                rate: None,
            };
            self.recorder.observe(now + 1, What::ProbeResult(failed));
            self.recorder.decide(now + 1);
        }
    }

    fn finish(self) -> Run {
        let (header, entries) = self.recorder.finish();
        Run {
            delivered: self.delivered.iter().sum::<f64>() / self.capacity,
            fit: self.fit / self.capacity,
            probes: self.probed / self.capacity,
            weights: self.changes,
            entries,
            header,
        }
    }
}

fn path_sample(link: usize, megabits: f64, limited_by: LimitedBy) -> What {
    What::PathSample(PathMetrics {
        access: name(link),
        path: 1,
        direction: Direction::Down,
        began: ms(0),
        delivered_bytes: (megabits * 125_000.0) as u64,
        lost_bytes: 0,
        in_flight_bytes: 0,
        queued_bytes: 0,
        limited_by,
        delivery_rate: None,
        srtt_us: None,
        min_rtt_us: None,
    })
}

/// A loop with its journal.
struct Recorder {
    control: ControlLoop,
    journal: Writer<Vec<u8>>,
}

impl Recorder {
    fn new(seed: u64) -> Self {
        let header = Header {
            version: VERSION,
            program: "closed loop".to_owned(),
            role: Role::Proxy,
            engine: Engine::Mpquic,
            seed,
        };
        Self {
            control: ControlLoop::new(seed),
            journal: Writer::new(Vec::new(), header).unwrap(),
        }
    }

    fn observe(&mut self, at_ms: u64, what: What) {
        let at = ms(at_ms);
        let observation = Observation { at, what };
        self.control.observe(&observation).unwrap();
        self.journal.observation(observation).unwrap();
    }

    fn decide(&mut self, at_ms: u64) -> Option<Decision> {
        let decision = self.control.decide(ms(at_ms))?;
        self.journal.decision(decision.clone()).unwrap();
        Some(decision)
    }

    fn finish(self) -> (Header, Vec<Entry>) {
        let text = self.journal.finish().unwrap();
        let reader = Reader::new(&text[..]).unwrap();
        let header = reader.header().clone();
        (header, reader.map(Result::unwrap).collect())
    }
}

impl Run {
    /// Returns when, after `step_s`, the first link's share of the first two has come within a
    /// tenth of `share`, seconds later.
    fn followed(&self, step_s: f64, share: f64) -> f64 {
        let near = |w: &[f64]| (w[0] / (w[0] + w[1]) / share - 1.0).abs() < 0.1;
        let after = self.weights.iter().find(|(t, w)| *t >= step_s && near(w));
        after.map_or(f64::INFINITY, |(t, _)| t - step_s)
    }
}

/// Falls by ten times at 10 s and rises at 20 s.
fn step(t: f64) -> f64 {
    if (10.0..20.0).contains(&t) {
        50.0
    } else {
        500.0
    }
}

/// Two links that cross smoothly twice, between 0 and 600 Mbit/s, over 60 s.
const WALK: [Capacity; 2] = [
    |t| 300.0 * (1.0 + (std::f64::consts::TAU * t / 60.0).cos()),
    |t| 300.0 * (1.0 - (std::f64::consts::TAU * t / 60.0).cos()),
];

const STEPS: [Capacity; 3] = [step, |_| 200.0, |_| 30.0];

/// Runs a world with seeds 1 to 5.
fn seeds(world: impl Fn(u64) -> World) -> impl Iterator<Item = (u64, Run)> {
    (1..=5).map(move |seed| (seed, world(seed).run()))
}

fn probing(mut world: World) -> World {
    world.estimators = ["probe", "passive"].map(str::to_owned).into();
    world
}

fn unsteered(mut world: World) -> World {
    world.policy = "static";
    world
}

/// A strict sender holds back all links but one, so that its rise is found by raises alone.
#[test]
fn weights_follow_a_step_of_ten_times_within_a_second() {
    for sender in [Sender::Filling, Sender::Strict] {
        for (seed, run) in seeds(|seed| World::new(&STEPS, sender, 30, seed)) {
            let fall = run.followed(10.0, 50.0 / 250.0);
            let rise = run.followed(20.0, 500.0 / 700.0);
            assert!(fall <= 1.0, "{sender:?}, seed {seed}: {fall} s");
            assert!(rise <= 1.0, "{sender:?}, seed {seed}: {rise} s");
            // 0.95 to 0.96, and 0.91 to 0.92 with what raises cost.
            assert!(run.fit >= 0.9, "{sender:?}, seed {seed}: {}", run.fit);
        }
    }
}

/// A filling sender delivers everything whatever its weights are; their fit is what they are
/// judged by. A strict one delivers what fits: 0.89 to 0.90. It loses most where a link of few
/// Mbit/s falls, because a weight that is late by 0.2 s holds back the other link.
#[test]
fn passive_follows_a_walk() {
    for (seed, run) in seeds(|seed| World::new(&WALK, Sender::Filling, 60, seed)) {
        assert!(run.delivered >= 0.95, "seed {seed}: {}", run.delivered);
        assert!(run.fit >= 0.92, "seed {seed}: {}", run.fit);
    }
    for (seed, run) in seeds(|seed| World::new(&WALK, Sender::Strict, 60, seed)) {
        assert!(run.delivered >= 0.87, "seed {seed}: {}", run.delivered);
        let still = unsteered(World::new(&WALK, Sender::Strict, 60, seed)).run();
        assert!(still.delivered < 0.4, "seed {seed}: {}", still.delivered);
    }
}

/// Probes of 0.5 s every 5 s per direction take 8 to 10 % of this capacity.
#[test]
fn probes_follow_a_walk_at_a_cost() {
    for (seed, run) in seeds(|seed| probing(World::new(&WALK, Sender::Light, 60, seed))) {
        assert!(run.probes > 0.05, "seed {seed}: {}", run.probes);
        assert!(run.fit >= 0.6, "seed {seed}: {}", run.fit);
    }
}

/// Traffic that fills the links tells more than probes, which it would pay for.
#[test]
fn traffic_takes_the_place_of_probes() {
    for (seed, run) in seeds(|seed| probing(World::new(&WALK, Sender::Filling, 60, seed))) {
        assert_eq!(run.probes, 0.0, "seed {seed}");
        assert!(run.delivered >= 0.95, "seed {seed}: {}", run.delivered);
        assert!(run.fit >= 0.9, "seed {seed}: {}", run.fit);
    }
}

#[test]
fn a_run_is_replayed_without_a_difference_and_another_policy_shows_where_it_parts() {
    for sender in [Sender::Filling, Sender::Strict] {
        let run = World::new(&STEPS, sender, 30, 1).run();
        assert_eq!(run.entries, World::new(&STEPS, sender, 30, 1).run().entries);
        let decisions = |e: &&Entry| matches!(e, Entry::Decision(_));
        let decided = run.entries.iter().filter(decisions).count();
        assert!(decided > 10, "{decided}");
        assert_eq!(replay(&run.header, &run.entries, None).unwrap(), vec![]);
        let differences = replay(&run.header, &run.entries, Some("static")).unwrap();
        // Their first decisions agree; from the first estimate on they do not.
        assert_eq!(differences.len(), decided - 1);
        let first = &differences[0];
        let (recorded, replayed) = (first.recorded.as_ref(), first.replayed.as_ref());
        assert!(
            recorded.unwrap().accesses["link0"].weight.down > 10.0,
            "{first:?}"
        );
        assert_eq!(replayed.unwrap().accesses["link0"].weight.down, 1.0);
    }
    let run = World::new(&STEPS, Sender::Filling, 1, 1).run();
    let error = replay(&run.header, &run.entries, Some("statc")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("expected one of static, capacity")
    );
}
