//! Debts to a path: what it is owed of its share, and how that is paid.

use proptest::prelude::*;

use super::{Rules, rate};

/// 10 ms of one path; rates are bytes a second.
struct Tick {
    rate: f64,
    due: f64,
    got: f64,
    slowest_us: u64,
    idle: bool,
}

impl Tick {
    fn owed(&self, rules: &mut Rules, owed: i32) -> i32 {
        let bytes = |rate: f64| (rate / 100.0) as u64;
        let (due, got) = (bytes(self.due), bytes(self.got));
        let (owed, idle) = (u64::from(owed as u32), u64::from(self.idle));
        let numbers = [owed, self.rate as u64, due, got, self.slowest_us, idle];
        rules.ask("owed", &numbers)[0] as u32 as i32
    }
}

proptest! {
    /// Shares that come out wrong by the way they are set are put right by debts.
    #[test]
    fn debts_are_paid(
        weights in prop::collection::vec(1.0..100.0f64, 2..4),
        wrong in prop::collection::vec(0.75..1.3f64, 4),
        total in 1e5..1e9f64,
        delay in 1..40usize,
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let slowest_us = delay as u64 * 10_000;
        let settled = 300.max(25 * delay);
        let sum: f64 = weights.iter().sum();
        let due: Vec<f64> = weights.iter().map(|w| total * w / sum).collect();
        let mut owed = vec![0i32; weights.len()];
        let mut paced = std::collections::VecDeque::from(vec![due.clone(); delay]);
        let (mut carried, mut first) = (vec![0.0; weights.len()], vec![]);
        for n in 0..settled + 500 {
            // What is paced now shows some ticks later.
            let paces: Vec<f64> = (0..weights.len())
                .map(|i| rules.one("pay", due[i] as u64, owed[i] as u32 as u64, slowest_us) as f64)
                .collect();
            paced.push_back(paces);
            let pulls = paced.pop_front().unwrap();
            let pulls: Vec<f64> = pulls.iter().zip(&wrong).map(|(p, w)| p * w).collect();
            let pulled: f64 = pulls.iter().sum();
            for i in 0..weights.len() {
                let got = total * pulls[i] / pulled;
                let tick = Tick { rate: due[i], due: due[i], got, slowest_us, idle: true };
                owed[i] = tick.owed(&mut rules, owed[i]);
                if n == 0 {
                    first.push(got);
                }
                if n >= settled {
                    carried[i] += got / 500.0;
                }
            }
        }
        for i in 0..weights.len() {
            let (before, after) = ((first[i] - due[i]).abs(), (carried[i] - due[i]).abs());
            prop_assert!(
                after < before / 3.0 + total * 0.003,
                "{i}: off by {before} of {total}, then by {after}"
            );
        }
    }

    /// One path is full below its share, which a machine that is busy otherwise does not
    /// see: the other does not get ahead of it.
    #[test]
    fn who_is_ahead_waits_for_who_can_do_no_more(
        weight in 0.1..10.0f64,
        full in 1e5..1e8f64,
        above in 1.0..1.7f64,
        delay in 1..10usize,
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let (slowest_us, pace) = (delay as u64 * 10_000, (full * above * weight) as u64);
        let mut under_way = std::collections::VecDeque::from(vec![pace as f64; delay]);
        let (mut owed, mut carried) = (0i32, 0.0);
        for n in 0..1500 {
            let debt = u64::from(owed as u32);
            under_way.push_back(rules.one("wait", pace, debt, slowest_us) as f64);
            let got = under_way.pop_front().unwrap();
            let due = (got + full) * weight / (1.0 + weight);
            let rate = pace as f64;
            let tick = Tick { rate, due, got, slowest_us, idle: false };
            owed = tick.owed(&mut rules, owed);
            if n >= 1000 {
                carried += got / 500.0;
            }
        }
        let times = carried / (full * weight);
        let most = 1.02 + (above - 1.0) * 0.2;
        prop_assert!((0.98..most).contains(&times), "{times} times, {above} before");
    }

    /// Whatever is owed, a path is paced between half its rate and half more.
    #[test]
    fn debts_are_bounded(
        rate in rate(),
        owed: u32,
        due: u64,
        carried: u32,
        slowest_us: u32,
        idle: bool,
    ) {
        let Some(mut rules) = Rules::new() else { return Ok(()) };
        let rate = rate as u64;
        let paid = rules.one("pay", rate, u64::from(owed), u64::from(slowest_us));
        prop_assert!((rate / 2..=rate + rate / 2).contains(&paid), "{paid}");
        let waiting = rules.one("wait", rate, u64::from(owed), u64::from(slowest_us));
        prop_assert!((rate / 2..=rate).contains(&waiting), "{waiting}");
        let (owed, carried) = (u64::from(owed), u64::from(carried));
        let numbers = [owed, rate, due, carried, u64::from(slowest_us), u64::from(idle)];
        let now = rules.ask("owed", &numbers)[0] as u32 as i32;
        prop_assert!(now.unsigned_abs() <= 1 << 30, "{now}");
    }
}
