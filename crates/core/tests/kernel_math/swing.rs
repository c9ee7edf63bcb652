//! Additions of `cc_math_swing.h` to the kernel's CUBIC, against [`Swing`].

use braid_core::cc::Swing;
use braid_core::seed;
use rand::RngExt;

use super::ask;

const RTT: f64 = 0.05;

/// A round trip: the queue in it, us; whether the window is in full use; packets lost at its begin.
type Round = (u32, bool, u32);

/// A path that acknowledges each window, in a hundred parts, after a round trip.
struct Path {
    swing: Swing,
    now: f64,
    queue: f64,
}

impl Path {
    fn round(&mut self, (queue, full, lost): Round) {
        let queue = f64::from(queue) / 1e6;
        // Nothing is overtaken.
        self.now += (self.queue - queue).max(0.0);
        self.queue = queue;
        if lost > 0 {
            let at = self.now + queue;
            self.swing.on_congestion(at, f64::from(lost), at + RTT);
            self.now += RTT;
        }
        let (window, began) = (self.swing.window(), self.now);
        for i in 1..=100 {
            let sent = began + RTT * f64::from(i) / 100.0;
            let now = sent + RTT + queue;
            self.swing.on_ack(window / 100.0, sent, RTT, full, now);
        }
        self.now = began + RTT;
    }

    /// A window in congestion avoidance, on a path with a queue of 20 ms until now.
    fn avoiding() -> Self {
        let mut path = Self {
            swing: Swing::default(),
            now: 0.0,
            queue: 0.0,
        };
        (0..4).for_each(|_| path.round((0, true, 0)));
        path.round((20_000, true, 0));
        // The kernel's begins here, with its first round.
        path.now += 1.0;
        for round in LEAD {
            path.round(round);
        }
        assert!(path.swing.ssthresh().is_finite());
        path
    }
}

/// Rounds by which both know the path.
const LEAD: [Round; 2] = [(0, false, 0), (20_000, true, 0)];

/// Windows of the kernel's form after each of these rounds, from this one on.
fn of_kernel(window: f64, rounds: &[Round]) -> Option<Vec<f64>> {
    let all = [&LEAD[..], rounds].concat();
    let told = all
        .iter()
        .map(|(queue, full, lost)| format!("{queue} {} {lost}", u8::from(*full)));
    let told: Vec<_> = told.collect();
    let line = format!("swing {} {} {}", window.round(), all.len(), told.join(" "));
    let answer = ask(&[line])?;
    let windows = answer[0][LEAD.len()..].iter().map(|w| *w as f64);
    Some(windows.collect())
}

#[test]
fn the_kernels_swing_probes_as_this_one() {
    let mut rng = seed::stream(37, "swing");
    let (mut probed, mut apart) = (0, 0);
    for _ in 0..300 {
        let rounds: Vec<Round> = (0..8)
            .map(|_| {
                let queue = [0, 1500, 5000, 7000, 20_000, 60_000][rng.random_range(0..6)];
                let queue = if rng.random_bool(0.6) { 0 } else { queue };
                (queue, rng.random_bool(0.9), 0)
            })
            .collect();
        let mut path = Path::avoiding();
        let began = path.swing.window();
        let Some(theirs) = of_kernel(began, &rounds) else {
            return;
        };
        for (round, theirs) in rounds.iter().zip(theirs) {
            path.round(*round);
            let ours = path.swing.window();
            apart += u32::from((theirs / ours - 1.0).abs() > 0.03);
            probed += u32::from(ours > 2.0 * began);
        }
    }
    // CUBIC stands still there, so that now and then one of them just sees what the other does not.
    assert!(probed > 100 && apart <= 8 * 300 / 100, "{probed} {apart}");
}

#[test]
fn the_kernels_swing_takes_losses_as_this_one() {
    for (queue, lost) in [(0, 1), (0, 4), (0, 30), (5000, 1), (7000, 1), (20_000, 2)] {
        let mut path = Path::avoiding();
        (0..2).for_each(|_| path.round((queue, true, 0)));
        let before = path.swing.window();
        let rounds = [(queue, true, 0), (queue, true, lost)];
        let Some(theirs) = of_kernel(before, &rounds) else {
            return;
        };
        let at = path.now + RTT;
        path.swing.on_congestion(path.now, f64::from(lost), at);
        let ours = path.swing.window() / before;
        let theirs = theirs[1] / theirs[0];
        assert!(
            (ours - theirs).abs() < 0.02,
            "{lost} lost behind {queue} us: {ours} {theirs}"
        );
    }
}

#[test]
fn the_kernels_swing_regains_what_was_lost_by_chance_and_no_more() {
    let path = Path::avoiding();
    let window = path.swing.window();
    // It was full with all of the window.
    let rounds = [&[(0, false, 30), (0, false, 1)], &[(0, true, 0); 5][..]].concat();
    let Some(windows) = of_kernel(window, &rounds) else {
        return;
    };
    assert!((windows[1] / windows[0] - 0.8).abs() < 0.01, "{windows:?}");
    assert_eq!(windows[6], windows[0], "{windows:?}");
}
