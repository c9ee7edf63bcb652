//! Downloads from a host that answers no probes, but TCP.

use super::*;

/// A path of a download.
#[derive(Clone, Copy)]
struct Down {
    rtt: u64,
    /// Data comes this often from, until; also once [`Down::dead`] is over.
    flow: (u64, u64, u64),
    /// Nothing passes from, to.
    dead: (u64, u64),
    /// Delay that a queue, or a radio that wakes up, adds to the round trip, ms, and from when.
    queue: (u64, u64),
    /// No data, and a SYN that the kernel has to send again, from, to.
    gap: (u64, u64),
}

impl Down {
    const LIVES: (u64, u64) = (u64::MAX, u64::MAX);

    fn new(rtt: u64) -> Self {
        Self {
            rtt,
            flow: (2, 0, u64::MAX),
            dead: Self::LIVES,
            queue: (0, 0),
            gap: Self::LIVES,
        }
    }

    fn pauses(&self, at: u64) -> bool {
        (self.gap.0..self.gap.1).contains(&at)
    }

    fn passes(&self, at: u64) -> bool {
        !(self.dead.0..self.dead.1).contains(&at)
    }

    /// Data comes in this millisecond.
    fn comes(&self, at: u64) -> bool {
        let (every, from, until) = self.flow;
        let flows = (from..until).contains(&at) && at.is_multiple_of(every);
        flows && self.passes(at) && !self.pauses(at)
    }
}

#[derive(Default)]
struct Seen {
    /// Silent or alive, which path, when.
    found: Vec<(bool, u8, u64)>,
    /// By which path, when.
    tcp_probes: Vec<(u8, u64)>,
}

/// Nothing is ever unacknowledged. The host answers TCP unless it is `deaf`; every so many
/// questions one is lost.
fn run(paths: &[Down], deaf: bool, lose: u32, until: u64) -> Seen {
    let mut d = Detector::default();
    let n = paths.len() as u8;
    let start = Time::from_nanos(1_000_000_000_000);
    d.watch(&(0..n).map(address).collect(), start);
    type Coming = (u64, u8, u32, Option<Duration>);
    let (mut seen, mut coming): (_, Vec<Coming>) = (Seen::default(), vec![]);
    let mut life = vec![start; paths.len()];
    let mut out = vec![false; paths.len()];
    let mut asked = 0;
    for at in 0..until {
        let t = start + ms(at);
        for (k, p) in paths.iter().enumerate() {
            // What is taken out has no subflow that data could come on.
            if p.comes(at) && !out[k] {
                life[k] = t;
            }
        }
        for (_, k, number, rtt) in coming.extract_if(.., |(when, ..)| *when <= at) {
            d.accepted(address(k), number, rtt, t);
        }
        if t < d.due() {
            continue;
        }
        let sample = |k: usize| Sample {
            subflows: 1,
            // In jiffies of 4 ms, as the kernel counts.
            quiet: ms(at / 4 * 4)
                .saturating_sub(ms(life[k].since(start).as_millis() as u64 / 4 * 4)),
            min_rtt: Some(ms(paths[k].rtt)),
            remote: Some(SocketAddr::from(([10, 77, 0, 1], 443))),
            ..Sample::default()
        };
        let samples = (0..paths.len()).filter(|k| !out[*k]);
        d.sample(&samples.map(|k| (address(k as u8), sample(k))).collect(), t);
        for o in d.tick(t) {
            let of = |a| (0..n).find(|k| address(*k) == a).unwrap();
            match o {
                Outcome::Probe { .. } => {}
                Outcome::TcpProbe {
                    address: a, number, ..
                } => {
                    let k = of(a);
                    let path = paths[usize::from(k)];
                    let (queue, from) = path.queue;
                    let again = if path.pauses(at) { 1_000 } else { 0 };
                    let rtt = path.rtt + if at < from { 0 } else { queue };
                    let back = at + again + rtt;
                    // The kernel has asked twice, without timestamps.
                    let known = (again + rtt < 1_000).then(|| ms(rtt));
                    seen.tcp_probes.push((k, at));
                    asked += 1;
                    let lost = lose > 0 && asked % lose == 0;
                    if !deaf && !lost && path.passes(at) && path.passes(back) {
                        coming.push((back, k, number, known));
                    }
                }
                Outcome::Silent { address: a } => {
                    out[usize::from(of(a))] = true;
                    seen.found.push((true, of(a), at));
                }
                Outcome::Alive { address: a } => {
                    let k = usize::from(of(a));
                    (out[k], life[k]) = (false, t);
                    seen.found.push((false, of(a), at));
                }
            }
        }
    }
    seen
}

#[test]
fn a_download_that_dies_is_found_within_the_bound_and_comes_back() {
    for rtt in [1, 20, 80, 300] {
        let mut dead = Down::new(rtt);
        dead.dead = (5_000, 15_000);
        let seen = run(&[Down::new(10), dead], false, 0, 25_000);
        let [(true, 1, died), (false, 1, back)] = seen.found[..] else {
            panic!("rtt {rtt}: {:?}", seen.found);
        };
        let bound = 5_000 + 3 * rtt + 100;
        assert!(
            (bound - 10..=bound + 10).contains(&died),
            "rtt {rtt}: died at {died} {:?}",
            seen.tcp_probes
        );
        assert!(
            (15_000..16_300 + 2 * rtt).contains(&back),
            "rtt {rtt}: back at {back}"
        );
        // Until it is found, each second after that, and those in its place.
        assert!(
            seen.tcp_probes.len() < 25,
            "rtt {rtt}: {:?}",
            seen.tcp_probes
        );
    }
}

#[test]
fn a_host_that_answers_nobody_is_not_believed() {
    let mut dead = Down::new(20);
    dead.dead = (5_000, 60_000);
    let seen = run(&[Down::new(10), dead], true, 0, 60_000);
    assert_eq!(seen.found, []);
    assert!(seen.tcp_probes.len() < 12, "{:?}", seen.tcp_probes);
}

#[test]
fn a_queue_on_the_path_that_carries_hides_no_death() {
    let mut dead = Down::new(10);
    dead.dead = (5_000, 60_000);
    let mut full = Down::new(40);
    full.queue = (300, 0);
    let seen = run(&[full, dead], false, 0, 20_000);
    let [(true, 1, died)] = seen.found[..] else {
        panic!("{:?}", seen.found);
    };
    assert!(died < 5_450, "{died}");
}

#[test]
fn a_question_that_was_lost_is_no_queue() {
    let mut path = Down::new(20);
    path.gap = (2_000, 2_110);
    path.dead = (8_000, 60_000);
    let seen = run(&[Down::new(10), path], false, 0, 12_000);
    let asked = |k: &(u8, u64)| k.0 == 1 && k.1 < 2_110;
    assert!(seen.tcp_probes.iter().any(asked), "{:?}", seen.tcp_probes);
    let [(true, 1, died)] = seen.found[..] else {
        panic!("{:?}", seen.found);
    };
    assert!(died <= 8_000 + 3 * 20 + 100 + 10, "{died}");
}

#[test]
fn a_queue_of_others_longer_than_the_kernels_patience_keeps_no_path_out() {
    let mut path = Down::new(40);
    path.flow.0 = 600;
    path.queue = (1_100, 0);
    let seen = run(&[Down::new(10), path], false, 0, 120_000);
    let out: u64 = seen.found.chunks(2).map(|f| f[1].2 - f[0].2).sum();
    assert!(out < 10_000 && seen.found.len() <= 4, "{:?}", seen.found);
}

#[test]
fn a_radio_that_slept_is_left_alone() {
    let mut asleep = Down::new(45);
    asleep.flow = (2, 0, 3_000);
    asleep.queue = (300, 4_000);
    let seen = run(&[Down::new(10), asleep], false, 0, 200_000);
    assert_eq!(seen.found, []);
}

#[test]
fn a_path_that_is_only_not_used_is_asked_seldom_and_left_alone() {
    let mut unused = Down::new(20);
    unused.flow = (2, 0, 3_000);
    let seen = run(&[Down::new(10), unused], false, 0, 120_000);
    assert_eq!(seen.found, []);
    let asked = seen.tcp_probes.iter().filter(|(k, _)| *k == 1).count();
    assert!((5..15).contains(&asked), "{asked}");
    // And found once it dies.
    unused.dead = (60_000, u64::MAX);
    let seen = run(&[Down::new(10), unused], false, 0, 100_000);
    let [(true, 1, died)] = seen.found[..] else {
        panic!("{:?}", seen.found);
    };
    assert!((60_100..91_500).contains(&died), "{died}");
}

#[test]
fn who_pauses_altogether_asks_nobody() {
    let mut paused = Down::new(20);
    paused.flow = (2, 0, 3_000);
    let seen = run(&[paused, paused], false, 0, 20_000);
    assert_eq!((seen.found, seen.tcp_probes), (vec![], vec![]));
    // Nor where one pauses a little after the other, beyond a first question.
    let mut later = paused;
    later.flow.2 = 3_100;
    let seen = run(&[paused, later], false, 0, 60_000);
    assert_eq!(seen.found, []);
    assert!(
        seen.tcp_probes.iter().all(|(_, at)| *at < 4_200),
        "{:?}",
        seen.tcp_probes
    );
    // Nor does who has one path only.
    let seen = run(&[paused], false, 0, 20_000);
    assert_eq!((seen.found, seen.tcp_probes), (vec![], vec![]));
}

proptest! {
    /// Data in trains with gaps, and questions that are lost now and then.
    #[test]
    fn what_lives_is_left_alone(
        rtt in 1u64..150,
        every in 1u64..3_000,
        lose in prop_oneof![Just(0u32), 3u32..9],
    ) {
        let mut path = Down::new(rtt);
        path.flow.0 = every;
        let seen = run(&[path, Down::new(10)], false, lose, 60_000);
        prop_assert!(seen.found.is_empty(), "{:?}", seen.found);
        // No flood: each eighth second, at first more often, twice, and again what is lost.
        prop_assert!(seen.tcp_probes.len() < 60, "{}", seen.tcp_probes.len());
    }

    #[test]
    fn any_death_of_a_used_path_is_found_in_time(rtt in 1u64..150, at in 2_000u64..5_000) {
        let mut path = Down::new(rtt);
        path.dead = (at, 60_000);
        let seen = run(&[Down::new(5), path], false, 0, 8_000);
        let [(true, 1, when)] = seen.found[..] else {
            return Err(TestCaseError::fail(format!("{:?}", seen.found)));
        };
        prop_assert!(when <= at + 3 * rtt + 100 + 10, "{} after {}", when, at);
    }
}
