mod queue;
mod responder;
mod tcp_probe;

use super::*;
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn address(k: u8) -> IpAddr {
    IpAddr::from([10, 77, k, 2])
}

/// A path as the network has it.
#[derive(Clone, Debug)]
struct Link {
    rtt: Duration,
    /// Delay that a queue adds to the round trip.
    queue: Duration,
    /// Data or acknowledgements come this often, if at all.
    flow: Option<Duration>,
    /// Nothing passes from, to.
    dead: Option<(u64, u64)>,
    /// Every so many probes one is lost.
    lose: u32,
}

impl Link {
    fn new(rtt_ms: u64, flow_ms: Option<u64>) -> Self {
        Self {
            rtt: ms(rtt_ms),
            queue: Duration::ZERO,
            flow: flow_ms.map(ms),
            dead: None,
            lose: 0,
        }
    }

    fn passes(&self, t: Duration) -> bool {
        self.dead.is_none_or(|(a, b)| t < ms(a) || t >= ms(b))
    }
}

/// Runs the detector over links; times are from the start.
struct Simulation {
    links: Vec<Link>,
    answers: bool,
    /// The whole host sleeps from, for.
    pause: Option<(u64, u64)>,
    /// Silent and alive: what, which link, when.
    found: Vec<(bool, u8, u64)>,
    probes: u32,
}

impl Simulation {
    fn run(links: Vec<Link>, answers: bool, pause: Option<(u64, u64)>, until_ms: u64) -> Self {
        let mut s = Self {
            links,
            answers,
            pause,
            found: vec![],
            probes: 0,
        };
        s.go(until_ms);
        s
    }

    fn go(&mut self, until_ms: u64) {
        let n = self.links.len() as u8;
        let all: BTreeSet<_> = (0..n).map(address).collect();
        let mut d = Detector::default();
        // Far from zero, as a real clock.
        let start = Time::from_nanos(1_000_000_000_000);
        d.watch(&all, start);
        let mut answers: Vec<(Time, u8, u32)> = vec![];
        let mut last_in = vec![start; n.into()];
        let mut t = start;
        while t.since(start) < ms(until_ms) {
            let mut next = d.due().max(t);
            if let Some(a) = answers.iter().map(|a| a.0).min() {
                next = next.min(a);
            }
            let mut at = next.since(start);
            if let Some((from, length)) = self.pause
                && at >= ms(from)
                && at < ms(from + length)
            {
                at = ms(from + length);
            }
            t = start + at;
            let due: Vec<_> = answers.extract_if(.., |a| a.0 <= t).collect();
            for (_, k, number) in due {
                d.answer(address(k), number, t);
            }
            if t < d.due() {
                continue;
            }
            let mut samples = BTreeMap::new();
            for (k, link) in self.links.iter().enumerate() {
                let asleep = self
                    .pause
                    .is_some_and(|(f, l)| at >= ms(f) && at <= ms(f + l));
                if let Some(every) = link.flow
                    && !asleep
                {
                    // The last sign of life that got through.
                    let end = match link.dead {
                        Some((a, b)) if at >= ms(a) && at < ms(b) + link.rtt => ms(a),
                        _ => at,
                    };
                    let since = ms((end.as_millis() % every.as_millis()) as u64);
                    last_in[k] = last_in[k].max(start + end - since);
                }
                samples.insert(
                    address(k as u8),
                    Sample {
                        subflows: 1,
                        quiet: t.since(last_in[k]),
                        unacked: false,
                        // That of the handshake, before there was a queue.
                        min_rtt: Some(link.rtt),
                        ..Sample::default()
                    },
                );
            }
            d.sample(&samples, t);
            for o in d.tick(t) {
                match o {
                    Outcome::Probe { address: a, number } => {
                        self.probes += 1;
                        let k = (0..n).find(|k| address(*k) == a).unwrap();
                        let link = &self.links[usize::from(k)];
                        let back = at + link.rtt + link.queue;
                        let lost = link.lose > 0 && number % link.lose == 0;
                        if self.answers && link.passes(at) && link.passes(back) && !lost {
                            let mut when = start + back;
                            if let Some((f, l)) = self.pause
                                && back >= ms(f)
                                && back < ms(f + l)
                            {
                                when = start + ms(f + l);
                            }
                            answers.push((when, k, number));
                        }
                    }
                    Outcome::TcpProbe { .. } => panic!("a TCP probe where nothing leads anywhere"),
                    Outcome::Silent { address: a } => self.note(true, a, at),
                    Outcome::Alive { address: a } => self.note(false, a, at),
                }
            }
        }
    }

    fn note(&mut self, silent: bool, a: IpAddr, at: Duration) {
        let k = (0..9).find(|k| address(*k) == a).unwrap();
        self.found.push((silent, k, at.as_millis() as u64));
    }
}

#[test]
fn a_path_that_dies_is_found_within_the_bound_and_comes_back() {
    for rtt in [1, 20, 80] {
        let mut dead = Link::new(rtt, Some(2));
        dead.dead = Some((5_000, 9_000));
        let s = Simulation::run(vec![Link::new(10, Some(2)), dead], true, None, 12_000);
        let [(true, 1, died), (false, 1, back)] = s.found[..] else {
            panic!("rtt {rtt}: {:?}", s.found);
        };
        // Some ms are left to take it out.
        let bound = 3 * rtt + 100;
        assert!(
            (5_000 + bound - 15..=5_000 + bound - 5).contains(&died),
            "rtt {rtt}: died at {died}"
        );
        assert!(
            (9_000..=9_000 + 2 * rtt + 70).contains(&back),
            "rtt {rtt}: back at {back}"
        );
    }
}

#[test]
fn an_idle_path_is_asked_seldom_and_still_found() {
    let mut idle = Link::new(20, None);
    idle.dead = Some((5_000, 20_000));
    let s = Simulation::run(vec![idle], true, None, 10_000);
    let [(true, 0, at)] = s.found[..] else {
        panic!("{:?}", s.found);
    };
    assert!((5_100..6_300).contains(&at), "{at}");
    let quiet = Simulation::run(vec![Link::new(20, None)], true, None, 60_000);
    assert!(
        quiet.found.is_empty() && quiet.probes < 80,
        "{}",
        quiet.probes
    );
}

#[test]
fn one_that_dies_again_and_again_needs_more_answers() {
    let gap = |rounds: u64| {
        let mut d = Detector::default();
        let all = BTreeSet::from([address(0)]);
        let start = Time::from_nanos(1_000_000_000_000);
        d.watch(&all, start);
        let mut t = start;
        let (mut dead, mut deaths) = (false, 0);
        let mut died = start;
        let mut longest = Duration::ZERO;
        while deaths < rounds {
            let sample = Sample {
                subflows: 1,
                quiet: if dead { t.since(died) } else { ms(1) },
                ..Sample::default()
            };
            d.sample(&BTreeMap::from([(address(0), sample)]), t);
            for o in d.tick(t) {
                match o {
                    Outcome::Probe { number, .. } if !dead || !d.silent().is_empty() => {
                        d.answer(address(0), number, t + ms(1));
                    }
                    Outcome::Alive { .. } => {
                        longest = t.since(died);
                        deaths += 1;
                        dead = false;
                    }
                    _ => {}
                }
            }
            // It dies soon after every return.
            if !dead && t.since(died) > ms(1500) {
                (dead, died) = (true, t);
            }
            t = d.due().max(t + ms(1));
        }
        longest
    };
    assert!(gap(6) > gap(1) + ms(500), "{:?} {:?}", gap(6), gap(1));
    assert!(gap(12) < ms(2500), "not bounded: {:?}", gap(12));
}

#[test]
fn without_answers_the_kernels_timer_decides_and_the_path_is_tried_again() {
    let mut d = Detector::default();
    let start = Time::from_nanos(1_000_000_000_000);
    d.watch(&BTreeSet::from([address(0)]), start);
    let mut seen = vec![];
    let mut t = start;
    while t.since(start) < ms(4_000) {
        let at = t.since(start);
        let dead = at > ms(1_000);
        let sample = Sample {
            subflows: 1,
            quiet: if dead { at - ms(1_000) } else { ms(1) },
            unacked: true,
            // An acknowledgement may be 200 ms late: the timer passes after that.
            timeouts: u8::from(at > ms(1_230)),
            min_rtt: Some(ms(10)),
            remote: None,
        };
        d.sample(&BTreeMap::from([(address(0), sample)]), t);
        for o in d.tick(t) {
            match o {
                Outcome::Silent { .. } => seen.push((true, at)),
                Outcome::Alive { .. } => seen.push((false, at)),
                Outcome::Probe { .. } | Outcome::TcpProbe { .. } => {}
            }
        }
        t = d.due();
    }
    assert!(
        seen[0].0 && seen[0].1 > ms(1_230) && seen[0].1 < ms(1_500),
        "{seen:?}"
    );
    assert!(!seen[1].0 && seen[1].1 >= seen[0].1 + ms(1_000), "{seen:?}");
}

proptest! {
    /// Whatever lives is left alone: busy, idle, with a queue of half a second,
    /// with a lost probe now and then, over a pause of the whole host.
    #[test]
    fn what_lives_is_left_alone(
        rtt in 1u64..120,
        queue in prop_oneof![Just(0u64), Just(500)],
        flow in 1u64..35,
        idle in any::<bool>(),
        lose in prop_oneof![Just(0u32), 7u32..20],
        pause in prop::option::of((2_000u64..6_000, 30u64..3_000)),
    ) {
        // A queue that nothing of ours is in is seen by its first probe only
        // after the bound: that case is `queue::a_queue_of_others_is_learned`.
        let mut link = Link::new(rtt, (!idle || queue > 0).then_some(flow));
        link.queue = ms(queue);
        link.lose = lose;
        let s = Simulation::run(vec![link, Link::new(10, Some(3))], true, pause, 12_000);
        prop_assert!(s.found.is_empty(), "{:?}", s.found);
        // A probe is no flood.
        prop_assert!(s.probes < 12_000 / 40 * 2 + 50, "{}", s.probes);
    }

    #[test]
    fn any_death_of_a_used_path_is_found_in_time(rtt in 1u64..150, flow in 1u64..30, at in 2_000u64..5_000) {
        let mut link = Link::new(rtt, Some(flow));
        link.dead = Some((at, 60_000));
        let s = Simulation::run(vec![Link::new(5, Some(3)), link], true, None, 8_000);
        prop_assert_eq!(s.found.len(), 1, "{:?}", s.found);
        let (silent, k, when) = s.found[0];
        prop_assert!(silent && k == 1);
        // From the last sign of life; a wake-up may be one round of asking late.
        prop_assert!(when <= at + 3 * rtt + 100 + 45, "{} after {}", when, at);
    }

    #[test]
    fn any_order_of_calls_is_taken(steps in prop::collection::vec((0u8..4, 0u8..3, 0u64..400), 0..200)) {
        let mut d = Detector::default();
        let mut t = Time::from_nanos(5_000_000_000);
        d.watch(&(0..3).map(address).collect(), t);
        for (what, k, n) in steps {
            t += ms(n);
            match what {
                0 => d.watch(&(0..=k).map(address).collect(), t),
                1 => d.sample(&BTreeMap::from([(address(k), Sample {
                    subflows: n as u32 % 3,
                    quiet: ms(n * 7),
                    unacked: n % 2 == 0,
                    timeouts: n as u8,
                    min_rtt: Some(ms(n)),
                    remote: (n % 3 > 0).then(|| SocketAddr::from(([10, 77, 0, k], 80))),
                })]), t),
                2 => { d.answer(address(k), n as u32, t); d.accepted(address(k), n as u32 + 1, (n % 2 == 0).then(|| ms(n % 900)), t); }
                _ => { d.tick(t); }
            }
            prop_assert!(d.silent().len() <= 3);
        }
    }
}

#[test]
fn steps_that_take_long_are_no_sleep() {
    // How long it sleeps, and then works, when it is to look.
    let silent_at = |sleep: u64, work: u64| {
        let mut d = Detector::default();
        let start = Time::from_nanos(5_000_000_000);
        d.watch(&BTreeSet::from([address(0)]), start);
        let (mut t, died) = (start, ms(3_000));
        loop {
            let at = t.since(start);
            assert!(at < ms(5_000), "never found");
            let sample = Sample {
                subflows: 1,
                quiet: at.saturating_sub(died),
                min_rtt: Some(ms(10)),
                ..Sample::default()
            };
            d.sample(&BTreeMap::from([(address(0), sample)]), t);
            for o in d.tick(t) {
                match o {
                    Outcome::Probe { number, .. } if at < died => {
                        d.answer(address(0), number, t + ms(5));
                    }
                    Outcome::Silent { .. } => return at - died,
                    _ => {}
                }
            }
            t = d.due();
            // Another access is taken out, 80 ms after this one died.
            if at > died + ms(40) && at < died + ms(100) {
                let from = t + ms(sleep);
                t = from + ms(work);
                d.worked(from, t);
            }
        }
    };
    let (slept, worked, both) = (silent_at(40, 0), silent_at(0, 40), silent_at(30, 10));
    assert!(worked <= ms(3 * 5 + 92 + 45), "{worked:?}");
    for slept in [slept, both] {
        assert!(slept > worked + ms(40), "{slept:?}, {worked:?}");
    }
}

/// Counts the probes of a path at rest, from 2 s after data flowed last on to 60 s, and those of the
/// 2 s that follow, in which data flows again. All are answered.
fn asked_at_rest(every: Option<Duration>) -> (usize, usize) {
    let start = Time::from_nanos(1_000_000_000_000);
    let mut d = Detector::default();
    d.watch(&BTreeSet::from([address(0)]), start);
    d.rest(|_| every);
    let mut asked = (0, 0);
    for tick in 0..6_200 {
        let now = start + ms(10 * tick);
        let flows = tick >= 6_000;
        let sample = Sample {
            subflows: 1,
            quiet: if flows { Duration::ZERO } else { ms(10 * tick) },
            min_rtt: Some(ms(20)),
            ..Sample::default()
        };
        d.sample(&BTreeMap::from([(address(0), sample)]), now);
        for outcome in d.tick(now) {
            match outcome {
                Outcome::Probe { address, number } => {
                    d.answer(address, number, now + ms(5));
                    match flows {
                        true => asked.1 += 1,
                        false => asked.0 += usize::from(tick >= 200),
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
    asked
}

#[test]
fn a_path_at_rest_is_asked_as_often_as_it_is_set() {
    let (at_rest, in_use) = asked_at_rest(Some(ms(1000)));
    assert!(
        (56..=59).contains(&at_rest) && in_use > 0,
        "{at_rest} {in_use}"
    );
    let (at_rest, _) = asked_at_rest(Some(ms(30_000)));
    assert!((1..=2).contains(&at_rest), "{at_rest}");
    // The radio may sleep until data flows.
    let (at_rest, in_use) = asked_at_rest(None);
    assert!(at_rest == 0 && in_use > 0, "{at_rest} {in_use}");
}

#[test]
fn a_path_on_which_nothing_has_come_back_is_asked_without_connections() {
    let start = Time::from_nanos(1);
    let mut d = Detector::default();
    d.watch(&[address(1), address(2)].into(), start);
    let asked = |d: &mut Detector, from: u64, until: u64| -> Vec<(u64, IpAddr, u32)> {
        let mut all = vec![];
        for s in from..until {
            for outcome in d.tick(start + Duration::from_secs(s)) {
                if let Outcome::Probe { address, number } = outcome {
                    all.push((s, address, number));
                }
            }
        }
        all
    };
    assert!(asked(&mut d, 0, 5).is_empty(), "nobody has asked for it");
    // A backup rests.
    d.first_contact(|_| true);
    d.rest(|a| (a == address(1)).then_some(ms(1000)));
    let first = asked(&mut d, 5, 8);
    assert!(first.iter().all(|(_, a, _)| *a == address(1)), "{first:?}");
    assert_eq!(first.len(), 3, "one a second: {first:?}");
    assert_eq!(d.silent(), BTreeMap::new());
    // Later more seldom, and not at all once something has come back.
    let later = asked(&mut d, 8, 100);
    assert_eq!(later.len(), 27 + 13, "{later:?}");
    let (_, a, number) = later[later.len() - 1];
    assert!(
        d.answer(a, number, start + Duration::from_secs(100))
            .is_some()
    );
    assert!(asked(&mut d, 101, 130).is_empty());
    d.unheard();
    assert!(!asked(&mut d, 130, 140).is_empty());
    d.heard(address(1));
    assert!(asked(&mut d, 140, 160).is_empty());
    assert_eq!(d.silent(), BTreeMap::new());
}
