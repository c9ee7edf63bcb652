//! The rules of weighted round robin by pacing rates (`bpf/wrr_rate.h`), compiled
//! with the host's C compiler, on their own and in a loop with a path. Skips with
//! a reason where there is no compiler.

mod debts;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;

const IDLE: u8 = 0;
const BUSY: u8 = 1;
const FULL: u8 = 2;
/// Bytes a second: 64 kbit/s and 100 Gbit/s, between which rates are kept.
const RATES: std::ops::RangeInclusive<f64> = 8e3..=12.5e9;
const MOST: u64 = 12_500_000_000 << 16;
const TICK_NS: u64 = 10_000_000;

static HARNESS: LazyLock<Option<String>> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/wrr_rate/harness.c");
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrr_rate");
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let built = Command::new(&cc)
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .args([&out, &source])
        .output();
    match built {
        Err(e) => {
            eprintln!("skipped: no C compiler: {cc}: {e}");
            None
        }
        Ok(o) => {
            let said = String::from_utf8_lossy(&o.stderr);
            assert!(o.status.success(), "{cc} {}: {said}", source.display());
            Some(out.display().to_string())
        }
    }
});

/// The rules, as a process to ask.
struct Rules {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Rules {
    fn new() -> Option<Self> {
        let mut child = Command::new(HARNESS.as_ref()?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Some(Self {
            ask: child.stdin.take().unwrap(),
            answers: BufReader::new(child.stdout.take().unwrap()),
            child,
        })
    }

    fn ask(&mut self, rule: &str, numbers: &[u64]) -> Vec<u64> {
        let numbers: Vec<_> = numbers.iter().map(u64::to_string).collect();
        writeln!(self.ask, "{rule} {}", numbers.join(" ")).unwrap();
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line.split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect()
    }

    fn one(&mut self, rule: &str, a: u64, b: u64, c: u64) -> u64 {
        self.ask(rule, &[a, b, c])[0]
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The time, and that since the last step, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Now {
    now: u64,
    since: u64,
}

/// A search for a rate.
#[derive(Clone, Copy, Debug)]
struct Search {
    rate: u64,
    good: u64,
    hold: u64,
}

impl Search {
    fn step(&mut self, rules: &mut Rules, seen: u8, carried: u64, queue_us: u64, now: Now) {
        let shows = 50_000_000.max(2 * now.since);
        let numbers = [
            self.rate,
            self.good,
            self.hold,
            u64::from(seen),
            carried,
            queue_us,
            now.now,
            now.since,
            shows,
        ];
        let after = rules.ask("step", &numbers);
        (self.rate, self.good, self.hold) = (after[0], after[1], after[2]);
    }
}

/// A path behind the search: what does not fit through it queues, up to 60 ms.
struct Path1 {
    capacity: f64,
    /// The unit of the rate, of which a byte a second has so many: R, or a path's own.
    unit: f64,
    queue_us: f64,
    /// Queue in the last ticks, µs, so that it is seen as late as in real life.
    seen: [f64; 4],
    now: u64,
    /// From one step to the next, in ticks.
    ticks: u64,
}

impl Path1 {
    fn new(capacity: f64) -> Self {
        Self {
            capacity,
            unit: 65536.0,
            queue_us: 0.0,
            seen: [0.0; 4],
            now: 1_000_000_000,
            ticks: 1,
        }
    }

    /// Runs for `ms`; the mean rate over it.
    fn run(&mut self, rules: &mut Rules, s: &mut Search, ms: u64) -> f64 {
        let mut sum = 0.0;
        for tick in 1..=ms / 10 {
            let offered = s.rate as f64 / self.unit;
            let grown = self.queue_us + (offered / self.capacity - 1.0) * 10_000.0;
            self.queue_us = grown.clamp(0.0, 60_000.0);
            self.seen.rotate_left(1);
            self.seen[3] = self.queue_us;
            let stands = self.seen.iter().fold(f64::MAX, |a, &b| a.min(b));
            let full = stands > 6000.0;
            let carried = if self.queue_us > 0.0 {
                self.capacity
            } else {
                offered
            };
            let carried = (carried * self.unit) as u64;
            let seen = if full { FULL } else { BUSY };
            if tick % self.ticks == 0 {
                let now = Now {
                    now: self.now,
                    since: self.ticks * TICK_NS,
                };
                s.step(rules, seen, carried, stands as u64, now);
            }
            self.now += TICK_NS;
            sum += offered;
        }
        sum / (ms / 10) as f64
    }
}

fn rate() -> impl Strategy<Value = f64> {
    (RATES.start().ln()..RATES.end().ln()).prop_map(f64::exp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Up to a capacity from far below, and again when it has changed.
    #[test]
    fn the_rate_finds_the_capacity(
        first in 2e5..1e9f64,
        below in 2.0..300.0f64,
        change in prop_oneof![0.1..0.8f64, 1.3..10.0f64],
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let mut path = Path1::new(first);
        let start = rules.one("unit", (first / below) as u64, 1, 0);
        let mut s = Search { rate: start, good: 0, hold: 0 };
        for capacity in [first, first * change] {
            path.capacity = capacity;
            path.run(&mut rules, &mut s, 3000);
            let mean = path.run(&mut rules, &mut s, 3000) / capacity;
            prop_assert!((0.93..1.02).contains(&mean), "{mean} of {capacity}");
            prop_assert!(path.queue_us < 30_000.0, "{} us", path.queue_us);
        }
    }

    /// A path's own rate is in whole bytes a second, of which slow ones have few.
    #[test]
    fn a_path_finds_its_own_capacity_too(capacity in 2e4..1e9f64, below in 2.0..30.0f64) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let mut path = Path1::new(capacity);
        path.unit = 1.0;
        let mut s = Search { rate: (capacity / below) as u64, good: 0, hold: 0 };
        path.run(&mut rules, &mut s, 3000);
        let mean = path.run(&mut rules, &mut s, 3000) / capacity;
        prop_assert!((0.93..1.02).contains(&mean), "{mean} of {capacity}");
    }

    /// A host that pauses makes a path look full and slow: that is made good
    /// within seconds, also where a measurement takes long.
    #[test]
    fn what_was_taken_for_full_is_found_again(
        capacity in 2e5..1e9f64,
        ticks in 1u64..=7,
        falls in prop::collection::vec(0.3..1.0f64, 1..4),
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let mut path = Path1::new(capacity);
        path.ticks = ticks;
        let start = rules.one("unit", (capacity / 2.0) as u64, 1, 0);
        let mut s = Search { rate: start, good: 0, hold: 0 };
        path.run(&mut rules, &mut s, 3000);
        for fall in falls {
            let carried = (s.rate as f64 * fall) as u64;
            let now = Now { now: path.now.max(s.hold), since: TICK_NS };
            s.step(&mut rules, FULL, carried, 20_000, now);
            path.run(&mut rules, &mut s, 300);
        }
        path.run(&mut rules, &mut s, 2500);
        let mean = path.run(&mut rules, &mut s, 2000) / capacity;
        prop_assert!((0.9..1.05).contains(&mean), "{mean} of {capacity}");
    }

    /// A radio that pauses: what waited comes at the path's own rate, and that is
    /// where the search goes on.
    #[test]
    fn what_came_after_a_pause_tells_the_rate(
        capacity in 2e5..1e9f64,
        pause in 0.0..0.5f64,
        after in 0.7..1.0f64,
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let mut path = Path1::new(capacity);
        let start = rules.one("unit", (capacity / 2.0) as u64, 1, 0);
        let mut s = Search { rate: start, good: 0, hold: 0 };
        path.run(&mut rules, &mut s, 3000);
        let rate = s.rate as f64;
        let now = Now { now: path.now.max(s.hold), since: TICK_NS };
        s.step(&mut rules, FULL, (rate * pause) as u64, 50_000, now);
        prop_assert!((s.rate as f64) < 0.5 * rate);
        let now = Now { now: now.now + TICK_NS, since: TICK_NS };
        s.step(&mut rules, FULL, (rate * after) as u64, 20_000, now);
        for _ in 0..2 {
            let now = Now { now: s.hold, since: TICK_NS };
            s.step(&mut rules, BUSY, s.rate, 0, now);
        }
        let found = s.rate as f64 / rate;
        prop_assert!((0.9 * after..1.0).contains(&found), "{found}");
    }

    /// Whatever is seen, a rate stays one that can be paced.
    #[test]
    fn a_rate_stays_within_its_bounds(
        seen in prop::collection::vec((0u8..=2, rate(), 0u64..1 << 32), 1..200),
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let start = rules.one("unit", 10_000_000, 1, 0);
        let mut s = Search { rate: start, good: 0, hold: 0 };
        for (i, (seen, carried, queue_us)) in seen.into_iter().enumerate() {
            let carried = rules.one("unit", carried as u64, 1, 0);
            let since = TICK_NS * 100;
            let now = i as u64 * since;
            s.step(&mut rules, seen, carried, queue_us, Now { now, since });
            prop_assert!(s.rate <= MOST && s.good <= MOST, "{s:?}");
            let share = rules.one("share", s.rate, 1, 0);
            prop_assert!(RATES.contains(&(share as f64)), "{share}");
        }
    }

    /// Nothing waits: the rate comes down to what is carried and a tenth, so
    /// that shares show in what an application sends.
    #[test]
    fn an_idle_rate_follows_what_is_carried(carried in 1e5..1e9f64, above in 1.2..1e3f64) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let carried = rules.one("unit", carried as u64, 1, 0);
        let start = ((carried as f64 * above) as u64).min(MOST);
        let mut s = Search { rate: start, good: 0, hold: 0 };
        for i in 0..100 {
            let now = Now { now: i * TICK_NS, since: TICK_NS };
            s.step(&mut rules, IDLE, carried, 0, now);
        }
        let times = s.rate as f64 / carried as f64;
        prop_assert!((1.0999..1.12).contains(&times), "{times}");
    }

    /// A rate for each unit of weight, times the weight, is the rate again.
    #[test]
    fn shares_undo_units(rate in rate(), weight in 1u64..=65535) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let unit = rules.one("unit", rate as u64, weight, 0);
        let back = rules.one("share", unit, weight, 0) as f64;
        prop_assert!((back / rate - 1.0).abs() < 1e-3, "{back} of {rate}");
    }

    /// Any numbers give a window and a stretch that can be worked with.
    #[test]
    fn windows_and_stretches_are_bounded(rate in rate(), a: u32, b: u32, mss in 0u64..65536) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let window = rules.one("window", rate as u64, u64::from(a % 60_000_000), mss);
        prop_assert!((8..=1 << 20).contains(&window), "{window}");
        let late = rules.one("window-late", rate as u64, u64::from(a % 60_000_000), mss);
        prop_assert!((window..=1 << 20).contains(&late), "{late}, not late {window}");
        let stretch = rules.one("stretch", u64::from(a), u64::from(b), 0);
        prop_assert!((256..=64 * 256).contains(&stretch), "{stretch}");
    }

    /// A path begins with its first window each round trip, or each millisecond.
    #[test]
    fn the_first_rate_is_a_window_each_round_trip(bytes: u32, rtt: u32) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let rate = rules.one("first", bytes.into(), rtt.into(), 0) as f64;
        let expected = f64::from(bytes) / (f64::from(rtt) * 1e-6).max(1e-3);
        prop_assert!(rate <= expected && expected - rate < 1.0 + expected * 1e-9, "{rate}");
    }

    /// A burst lasts for 2 ms at most, but for two packets, and is never nothing.
    #[test]
    fn bursts_are_short(rate: u64, mss in 0u64..65536) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let packets = rules.one("burst", rate, mss, 0);
        let most = (rate as f64).clamp(*RATES.start(), *RATES.end()) * 2e-3 / mss.max(1) as f64;
        prop_assert!((2..=65535).contains(&packets) && packets as f64 <= most.max(2.0), "{packets}");
        prop_assert!(packets as f64 > most.min(65535.0) - 1.0, "{packets} of {most}");
    }

    /// While ACKs come by the receiver's timer of 40 ms, nothing stops for want of one.
    #[test]
    fn a_late_ack_does_not_stop_the_path(rate in rate(), rtt in 0u64..200_000) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let mss = 1420;
        let packets = rules.one("window-late", rate as u64, rtt, mss);
        let sent = rate * (rtt + 40_000) as f64 / 1e6 / mss as f64;
        prop_assert!(packets as f64 >= sent.min((1 << 20) as f64), "{packets} of {sent}");
    }

    /// One ACK for most of what was under way, and only after a silence: trains of ACKs
    /// tell of each packet or two, and a radio that pauses goes on with a train.
    #[test]
    fn late_is_who_tells_of_most_at_once(silent in 0u64..10_000, acked: u32, more: u32) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let under_way = u64::from(acked.max(more));
        let late = rules.one("late", silent, u64::from(acked), under_way);
        prop_assert_eq!(late == 1, silent > 25 && u64::from(acked) > under_way / 2);
    }
}
