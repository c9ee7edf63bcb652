//! wVegas: one step at the end of a round trip.

use braid_core::cc::{Facts, Round, RoundState, Rule, Wvegas};
use braid_core::seed;
use rand::RngExt;
use serde_json::Value;

use crate::{ONE, ask, spread, vectors};

struct VegasCase {
    what: String,
    round: Round,
    siblings: f64,
    total: f64,
}

fn vegas_vectors() -> Vec<VegasCase> {
    let f = |v: &Value| v.as_f64().unwrap();
    let case = |v: &Value| {
        let s = &v["state"];
        let state = RoundState {
            window: f(&s["cwnd"]),
            ssthresh: f(&s["ssthresh"]),
            alpha: f(&s["alpha"]["value"]),
            queue_delay: f(&s["queue_delay_us"]),
            rate: 0.0,
        };
        VegasCase {
            what: v["name"].to_string(),
            round: Round {
                state,
                base_rtt: f(&s["base_rtt_us"]),
                rtt: f(&s["rtt_us"]),
            },
            siblings: s["sibling_rates"]
                .as_array()
                .unwrap()
                .iter()
                .map(|r| f(&r["value"]))
                .sum(),
            total: f(&s["total_alpha"]),
        }
    };
    vectors("wvegas").iter().map(case).collect()
}

fn vegas_random(count: usize) -> Vec<VegasCase> {
    let mut rng = seed::stream(3, "kernel vegas");
    (0..count)
        .map(|k| {
            let window = spread(&mut rng, 2.0, 1_048_576.9).floor();
            let base = spread(&mut rng, 10.0, 10_000_000.0).floor();
            let over = spread(&mut rng, 0.001, 100.0);
            let rtt = (base * (1.0 + over)).min(1e7).floor();
            let state = RoundState {
                window,
                ssthresh: if k % 4 == 0 {
                    window + 7.0
                } else {
                    (window / 2.0).floor()
                },
                alpha: (1.0 + rng.random::<f64>() * 9.0).floor(),
                queue_delay: ((rtt - base) * rng.random::<f64>() * 1.5).floor(),
                rate: 0.0,
            };
            let siblings = if k % 3 == 0 {
                0.0
            } else {
                spread(&mut rng, 1e-7, 1e5)
            };
            let what = format!("{state:?}, base {base}, rtt {rtt}, siblings {siblings}");
            let round = Round {
                state,
                base_rtt: base,
                rtt,
            };
            VegasCase {
                what,
                round,
                siblings,
                total: 10.0,
            }
        })
        .collect()
}

#[test]
fn kernel_wvegas_follows_the_vectors_and_the_domain() {
    let mut cases = vegas_vectors();
    cases.extend(vegas_random(20_000));
    let lines: Vec<String> = cases
        .iter()
        .map(|c| {
            let s = &c.round.state;
            format!(
                "wvegas {} {} {} {} {} {} {} {}",
                s.window,
                s.ssthresh,
                (s.alpha * 65_536.0).round(),
                s.queue_delay,
                c.round.base_rtt,
                c.round.rtt,
                (c.siblings * ONE).round(),
                c.total
            )
        })
        .collect();
    let Some(answers) = ask(&lines) else { return };
    let mut compared = 0;
    for (c, got) in cases.iter().zip(answers) {
        let s = c.round.state;
        let paths = [
            Facts::new(s.window, c.round.rtt),
            Facts {
                rate: c.siblings,
                ..Facts::new(1.0, 1.0)
            },
        ];
        let rule = Wvegas {
            total_alpha: c.total,
        };
        let want = rule.end_of_round(&paths, 0, &c.round).unwrap();
        let diff = s.window * (c.round.rtt - c.round.base_rtt) / c.round.rtt;
        // Where diff and alpha meet within the stated error, either may win.
        let near = |alpha: f64| diff != alpha && (diff - alpha).abs() < 1e-3;
        if near(s.alpha) || near(want.alpha) {
            continue;
        }
        compared += 1;
        let what = &c.what;
        let got: Vec<f64> = got.iter().map(|&v| v as f64).collect();
        assert_eq!(got[0], want.window.floor().max(2.0), "window: {what}");
        assert_eq!(got[1], want.ssthresh, "threshold: {what}");
        let slack = want.alpha / 32_768.0 + 1.0 / 32_768.0;
        assert!(
            (got[2] / 65_536.0 - want.alpha).abs() <= slack,
            "alpha: {what}"
        );
        assert_eq!(got[3], want.queue_delay, "queue: {what}");
        let rate = got[4] / ONE;
        assert!(
            (rate - want.rate).abs() <= want.rate / 32_768.0,
            "rate: {what}"
        );
    }
    assert!(
        compared > cases.len() * 9 / 10,
        "{compared} of {}",
        cases.len()
    );
}

#[test]
fn what_hosts_add_to_a_round_trip_is_left_out() {
    let mut rng = seed::stream(5, "kernel vegas, hosts");
    let of = |_| {
        let base = spread(&mut rng, 10.0, 5_000_000.0) as u64;
        (base, base + spread(&mut rng, 1.0, 1e6) as u64 - 1)
    };
    let mut cases: Vec<_> = (0..5_000).map(of).collect();
    cases.extend([
        (2_500, 2_500),
        (2_500, 2_750),
        (2_500, 2_751),
        (80, 90),
        (80, 91),
    ]);
    let lines: Vec<_> = cases
        .iter()
        .map(|(b, r)| format!("network {b} {r}"))
        .collect();
    let Some(answers) = ask(&lines) else { return };
    for ((base, rtt), got) in cases.into_iter().zip(answers) {
        let most = (base / 8).min(250);
        let want = rtt.saturating_sub(most).max(base);
        assert_eq!(got[0], i128::from(want), "{base} {rtt}");
    }
}

/// At 10 Mbit/s a packet takes 1.2 ms. State and round: window, queue, round trip; then
/// what comes of the first two.
#[test]
fn only_a_queue_that_has_doubled_is_drained() {
    let rounds = [
        // Less than 250 us is no queue, and none is not the least there has been.
        ([25, 0, 30_100], [26, 0]),
        ([25, 1_200, 30_000], [26, 0]),
        // So the first packet that waits is no twice as long queue.
        ([25, 0, 31_450], [26, 1_200]),
        ([26, 1_200, 32_600], [27, 1_200]),
        ([26, 1_200, 32_650], [12, 0]),
        // Nor is one of less than twice what hosts may take.
        ([26, 100, 30_749], [27, 250]),
        ([26, 100, 30_750], [13, 0]),
    ];
    let lines: Vec<_> = rounds
        .iter()
        .map(|([window, queue, rtt], _)| {
            format!("hosts {window} 12 {} {queue} 30000 {rtt} 0 10", 10 << 16)
        })
        .collect();
    let Some(answers) = ask(&lines) else { return };
    for ((round, want), got) in rounds.into_iter().zip(answers) {
        assert_eq!([got[0], got[3]], want, "{round:?}");
    }
    // What 30 ms of the path take is half of 58 packets: slow start ends 10 above that.
    let line = format!("hosts 58 57 {} 1200 30000 60250 0 10", 10 << 16);
    let Some(answers) = ask(&[line]) else { return };
    assert_eq!(answers[0][..2], [14, 39]);
}
