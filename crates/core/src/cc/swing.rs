//! Swing: CUBIC for links whose rate swings.
//!
//! CUBIC (RFC 9438) remembers the window at which packets were lost, and takes seconds to get
//! beyond it. The rate of a radio rises tenfold within one second, and what it loses now and then
//! by chance keeps such a window small for ever. Swing is CUBIC with two additions, both by the
//! queue that a path shows: the least round-trip time of a round less the least in a minute.
//!
//! - **Probing**: a round trip in which the window was in full use and no queue showed says that
//!   the path carries more. The window grows by a quarter in the next one, by a half in the one
//!   after, and doubles from then on, until a queue shows; CUBIC goes on from there. A window that
//!   is no larger than what filled the path when congestion was met says nothing of the kind:
//!   behind a short queue all flows together leave room after a loss, and CUBIC shares it.
//! - **Chance**: a loss while no queue stands takes a fifth of the window only, as TCP Veno has
//!   it (Fu and Liew, IEEE JSAC 21(2), 2003), until more than a 64th of the window is lost. What
//!   was lost of the window is regained by probing.
//!
//! Slow start ends when a queue shows (HyStart, RFC 9406). Beside flows that keep a queue,
//! nothing is left of the additions.

use super::cubic::{BETA, Cubic};

/// First window, packets (RFC 6928).
const INITIAL: f64 = 10.0;
/// Least window, packets.
const MIN: f64 = 2.0;
/// Part of the least round-trip time from which on a queue shows; and the least such queue,
/// seconds: what bursts and a busy host add.
const QUEUE: f64 = 0.125;
const MIN_QUEUE: f64 = 0.002;
/// Least queue that ends slow start, seconds, and the least window that it ends at, packets (RFC
/// 9406 4.3, without its upper bound of the queue).
const MIN_SLOW_START_QUEUE: f64 = 0.004;
const MIN_SLOW_START: f64 = 16.0;
/// Round-trip times that show a queue (RFC 9406 4.3), and the part of a round that they come from:
/// more than a burst.
const SAMPLES: u32 = 8;
const PART: f64 = 0.25;
/// Growth in the first, second and further round trips without a queue.
const GROWTH: [f64; 3] = [1.25, 1.5, 2.0];
/// Multiple of the window of the round that a probe ends with, of what it has grown to.
const OVERSHOOT: f64 = 1.5;
/// Multiple of the window that was too much without a queue, from which on a queue shows unless
/// the path carries more by now.
const RISE: f64 = 1.0 + QUEUE;
/// Part of the window that is left after a loss by chance.
const CHANCE: f64 = 0.8;
/// Part of the window that may be lost by chance, and packets at least.
const CHANCE_LOST: f64 = 1.0 / 64.0;
const CHANCE_PACKETS: f64 = 4.0;
/// A least round-trip time counts for so long, seconds, and up to twice as long.
const MIN_RTT_LIFETIME: f64 = 30.0;

/// Round-trip times from when one packet is acknowledged until one that left then is.
#[derive(Clone, Copy, Debug)]
struct Round {
    began: f64,
    /// Window when it began, packets.
    window: f64,
    min_rtt: f64,
    samples: u32,
    /// Whether the window was in full use all the time.
    full: bool,
}

/// Least round-trip time of the last 30 to 60 s, seconds.
#[derive(Clone, Copy, Debug)]
struct MinRtt {
    began: f64,
    before: f64,
    now: f64,
}

impl MinRtt {
    fn update(&mut self, rtt: f64, now: f64) {
        if now - self.began > MIN_RTT_LIFETIME {
            *self = Self {
                began: now,
                before: self.now,
                now: rtt,
            };
        }
        self.now = self.now.min(rtt);
    }

    fn get(&self) -> f64 {
        self.now.min(self.before)
    }
}

/// A congestion event that was taken for chance, while packets of that window are lost.
#[derive(Clone, Copy, Debug)]
struct Chance {
    /// Window before, packets.
    window: f64,
    lost: f64,
}

impl Chance {
    /// Returns whether more is lost than chance would take.
    fn is_over(&self) -> bool {
        self.lost > (self.window * CHANCE_LOST).max(CHANCE_PACKETS)
    }
}

/// State of one path. Windows are in packets, times in seconds since any moment.
#[derive(Clone, Debug)]
pub struct Swing {
    window: f64,
    ssthresh: f64,
    /// Congestion avoidance; none in the first slow start.
    cubic: Option<Cubic>,
    min_rtt: MinRtt,
    latest_rtt: f64,
    round: Option<Round>,
    /// Round trips in a row, until now, that filled the window and showed no queue.
    empty_rounds: usize,
    /// Packets that fill the path without a queue, as far as the last queue told.
    fills: f64,
    /// Window before losses by chance, which is to be regained; 0 for none.
    regain: f64,
    /// Time of the last congestion event: what left before tells nothing new.
    recovered: f64,
    chance: Option<Chance>,
}

impl Default for Swing {
    /// The first window, in slow start.
    fn default() -> Self {
        let min_rtt = MinRtt {
            began: f64::NEG_INFINITY,
            before: f64::INFINITY,
            now: f64::INFINITY,
        };
        Self {
            window: INITIAL,
            ssthresh: f64::INFINITY,
            cubic: None,
            min_rtt,
            latest_rtt: f64::INFINITY,
            round: None,
            empty_rounds: 0,
            fills: 0.0,
            regain: 0.0,
            recovered: f64::NEG_INFINITY,
            chance: None,
        }
    }
}

impl Swing {
    /// Returns the congestion window, packets.
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Returns the slow-start threshold, packets; infinite before the first congestion event.
    pub fn ssthresh(&self) -> f64 {
        self.ssthresh
    }

    /// Whether a path of this round-trip time shows a queue, of `least` at least, seconds.
    fn shows(&self, rtt: f64, least: f64) -> bool {
        let min = self.min_rtt.get();
        rtt - min >= (min * QUEUE).max(least)
    }

    fn shows_queue(&self, rtt: f64) -> bool {
        self.shows(rtt, MIN_QUEUE)
    }

    /// Handles the acknowledgement of `acked` packets, the last of which left at `sent`; `full`
    /// says whether the window was in full use then, and `srtt` is the smoothed round-trip time.
    pub fn on_ack(&mut self, acked: f64, sent: f64, srtt: f64, full: bool, now: f64) {
        let rtt = now - sent;
        self.min_rtt.update(rtt, now);
        self.latest_rtt = rtt;
        if sent > self.recovered {
            self.chance = None;
        }
        let window = self.window;
        let round = self.round.get_or_insert(Round {
            began: now,
            window,
            min_rtt: rtt,
            samples: 0,
            full: true,
        });
        round.min_rtt = round.min_rtt.min(rtt);
        round.samples += 1;
        round.full &= full;
        let round = *round;
        // A queue that shows is believed early where the window grows fast.
        let fast = self.empty_rounds > 0 || self.window < self.ssthresh;
        let some = round.samples >= SAMPLES && now - round.began >= PART * self.min_rtt.get();
        let early = fast && some && self.shows_queue(round.min_rtt);
        if sent >= round.began || early {
            self.round = None;
            self.end_round(round, now);
        }
        if full && sent > self.recovered {
            self.grow(acked, srtt, now);
        }
    }

    fn end_round(&mut self, round: Round, now: f64) {
        let queue = self.shows_queue(round.min_rtt);
        if self.window < self.ssthresh {
            let long = self.shows(round.min_rtt, MIN_SLOW_START_QUEUE);
            if self.ssthresh.is_infinite() && long && self.window >= MIN_SLOW_START {
                self.avoid_from(self.window, now);
            }
            return;
        }
        if queue {
            self.regain = 0.0;
            self.learn(round.window, round.min_rtt);
        }
        let room = self.window < self.regain || self.window >= RISE * self.fills;
        if round.full && !queue && room {
            self.empty_rounds += 1;
            return;
        }
        if self.empty_rounds > 0 && queue {
            // What it has grown to since is more than the path carries.
            let window = self.window.min(round.window.max(self.window / OVERSHOOT));
            self.avoid_from(window, now);
        }
        self.empty_rounds = 0;
    }

    /// Goes on with congestion avoidance from this window.
    fn avoid_from(&mut self, window: f64, now: f64) {
        (self.window, self.ssthresh) = (window, self.ssthresh.min(window));
        self.cubic = Some(Cubic::new(window, window, now));
    }

    fn grow(&mut self, acked: f64, srtt: f64, now: f64) {
        let window = self.window;
        if window < self.ssthresh {
            self.window += acked;
        } else if self.empty_rounds > 0 {
            let growth = GROWTH[self.empty_rounds.min(GROWTH.len()) - 1];
            self.window += acked * (growth - 1.0);
            if window < self.regain && self.window >= self.regain {
                // Beyond that only as any other.
                self.window = self.regain;
                (self.empty_rounds, self.regain) = (0, 0.0);
                self.cubic = Some(Cubic::new(self.window, self.window, now));
            }
        } else {
            let new = || Cubic::new(window, window, now);
            let cubic = self.cubic.get_or_insert_with(new);
            self.window = cubic.grown(window, acked, srtt, now);
        }
    }

    /// Handles a congestion event of a packet that left at `sent`: the loss of `lost` packets
    /// so far, or a mark (RFC 3168) where that is 0.
    pub fn on_congestion(&mut self, sent: f64, lost: f64, now: f64) {
        if sent <= self.recovered {
            return;
        }
        self.recovered = now;
        self.empty_rounds = 0;
        let window = self.window;
        let chance = Chance { window, lost };
        if lost == 0.0 || chance.is_over() || self.shows_queue(self.latest_rtt) {
            self.shrink(window, now);
            return;
        }
        self.chance = Some(chance);
        self.regain = self.regain.max(window);
        self.window = (window * CHANCE).max(MIN);
        self.ssthresh = self.window;
        self.cubic = Some(Cubic::new(self.window, window, now));
    }

    /// Handles the loss of a packet of which no congestion event has told.
    pub fn on_loss(&mut self, now: f64) {
        let Some(chance) = &mut self.chance else {
            return;
        };
        chance.lost += 1.0;
        if chance.is_over() {
            let window = chance.window;
            self.shrink(window, now);
        }
    }

    /// Handles persistent congestion (RFC 9002 7.6), or a retransmission timeout: begins again,
    /// in slow start up to where it may have been.
    pub fn on_persistent_congestion(&mut self, now: f64) {
        self.shrink(self.window, now);
        (self.window, self.recovered) = (MIN, f64::NEG_INFINITY);
    }

    /// Notes that a queue shows with this window at this round-trip time.
    fn learn(&mut self, window: f64, rtt: f64) {
        self.fills = window * (self.min_rtt.get() / rtt).min(1.0);
    }

    /// Takes a window back for congestion.
    fn shrink(&mut self, window: f64, now: f64) {
        (self.chance, self.regain) = (None, 0.0);
        self.learn(window, self.latest_rtt);
        self.empty_rounds = 0;
        self.window = (window * BETA).max(MIN).min(self.window);
        self.ssthresh = self.window;
        self.cubic = Some(Cubic::after(self.cubic, window, self.window, now));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT: f64 = 0.05;

    /// A path that acknowledges each window, in a hundred parts, after a round trip.
    struct Path {
        swing: Swing,
        now: f64,
    }

    impl Path {
        fn new() -> Self {
            Self {
                swing: Swing::default(),
                now: 0.0,
            }
        }

        /// A round trip with a queue of so many seconds.
        fn round(&mut self, queue: f64, full: bool) {
            self.round_to(f64::INFINITY, queue, full);
        }

        /// One that ends at a window of `limit` packets.
        fn round_to(&mut self, limit: f64, queue: f64, full: bool) {
            let window = self.swing.window();
            let began = self.now;
            for i in 1..=100 {
                let sent = began + RTT * f64::from(i) / 100.0;
                self.now = sent + RTT + queue;
                self.swing.on_ack(window / 100.0, sent, RTT, full, self.now);
                if self.swing.window() >= limit {
                    break;
                }
            }
            self.now = began + RTT;
        }

        /// In congestion avoidance at some 100 packets, of a path with little queue until then.
        fn avoiding() -> Self {
            let mut path = Self::new();
            (0..3).for_each(|_| path.round(0.0, true));
            path.round(0.02, true);
            path.round(0.02, true);
            assert!(path.swing.ssthresh().is_finite());
            path
        }
    }

    #[test]
    fn slow_start_ends_when_a_queue_shows() {
        let mut path = Path::new();
        (0..5).for_each(|_| path.round(0.0, true));
        let window = path.swing.window();
        assert!((window - 320.0).abs() < 1e-6, "{window}");
        // Longer by less than 4 ms, and by an eighth.
        path.round(0.003, true);
        assert!(path.swing.ssthresh().is_infinite());
        path.round(0.007, true);
        let window = path.swing.window();
        assert!(
            path.swing.ssthresh() <= window && window < 1400.0,
            "{window}"
        );
    }

    #[test]
    fn an_empty_path_is_probed_ever_faster_until_a_queue_shows() {
        let mut path = Path::avoiding();
        let mut windows = vec![path.swing.window()];
        for _ in 0..6 {
            path.round(0.0, true);
            windows.push(path.swing.window());
        }
        let grown = windows[6] / windows[0];
        assert!((8.0..40.0).contains(&grown), "{windows:?}");
        let full = path.swing.window();
        // The round that goes on had no queue yet.
        (0..2).for_each(|_| path.round(0.02, true));
        let after = path.swing.window();
        assert!(
            after < 2.3 * full && after >= full / OVERSHOOT,
            "{full} {after}"
        );
        path.round(0.02, true);
        assert!(path.swing.window() < after * 1.05);
    }

    #[test]
    fn a_window_that_is_not_used_is_not_probed() {
        let mut path = Path::avoiding();
        let window = path.swing.window();
        (0..20).for_each(|_| path.round(0.0, false));
        assert_eq!(path.swing.window(), window);
    }

    /// Window after a congestion event with so many packets lost, behind a queue, over before.
    fn left(lost: f64, queue: f64) -> f64 {
        let mut path = Path::avoiding();
        path.round(queue, true);
        let before = path.swing.window();
        path.swing.on_congestion(path.now, lost, path.now + RTT);
        path.swing.window() / before
    }

    #[test]
    fn a_loss_without_a_queue_is_taken_for_chance() {
        assert!((left(1.0, 0.0) - CHANCE).abs() < 1e-9);
        // Many are not, nor a mark, nor one behind a queue.
        for (lost, queue) in [(20.0, 0.0), (0.0, 0.0), (1.0, 0.02)] {
            assert!((left(lost, queue) - BETA).abs() < 1e-9, "{lost} {queue}");
        }
    }

    #[test]
    fn what_was_taken_for_chance_is_congestion_once_much_is_lost() {
        let mut path = Path::avoiding();
        path.round(0.0, true);
        let before = path.swing.window();
        path.swing.on_congestion(path.now, 1.0, path.now + RTT);
        (0..20).for_each(|_| path.swing.on_loss(path.now + RTT));
        assert!((path.swing.window() / before - BETA).abs() < 1e-9);
        // Once.
        let window = path.swing.window();
        path.swing.on_loss(path.now + RTT);
        path.swing.on_congestion(path.now, 5.0, path.now + RTT);
        assert_eq!(path.swing.window(), window);
    }

    /// Rounds without a queue until the window is as large as before, after a congestion event
    /// behind a queue of so many seconds.
    fn rounds_until_back(queue: f64) -> u32 {
        let mut path = Path::avoiding();
        (0..3).for_each(|_| path.round(queue, true));
        let met = path.swing.window();
        path.swing.on_congestion(path.now, 30.0, path.now);
        let mut rounds = 0;
        while path.swing.window() < met {
            path.round(0.0, true);
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn a_path_is_probed_where_a_queue_would_be_left() {
        // Of 100 packets 70 are left: at 80 ms the path was full with 63, at 57 with 88.
        assert!(rounds_until_back(0.03) < 8, "{}", rounds_until_back(0.03));
        assert!(
            rounds_until_back(0.007) > 20,
            "{}",
            rounds_until_back(0.007)
        );
    }

    #[test]
    fn what_is_lost_by_chance_is_regained_at_once_and_no_more() {
        let mut path = Path::avoiding();
        // It was full with more.
        path.swing.fills = 1000.0;
        (0..2).for_each(|_| path.round(0.0, true));
        path.swing.fills = 1000.0;
        let before = path.swing.window();
        path.swing.on_congestion(path.now, 1.0, path.now + RTT);
        path.now += RTT;
        (0..5).for_each(|_| path.round(0.0, true));
        let after = path.swing.window() / before;
        assert!((1.0..1.1).contains(&after), "{after}");
    }

    #[test]
    fn persistent_congestion_begins_again() {
        let mut path = Path::avoiding();
        let before = path.swing.window();
        path.swing.on_persistent_congestion(path.now);
        assert_eq!(path.swing.window(), MIN);
        assert!((path.swing.ssthresh() / before - BETA).abs() < 1e-9);
        path.round(0.0, true);
        assert!(path.swing.window() > 1.9 * MIN);
    }

    #[test]
    fn the_least_round_trip_time_is_that_of_a_minute() {
        let mut path = Path::avoiding();
        // The route is 20 ms longer from now on.
        while path.now < 70.0 {
            path.round(0.02, true);
        }
        assert!((path.swing.min_rtt.get() - 0.07).abs() < 1e-9);
        assert!(!path.swing.shows_queue(0.07));
    }

    proptest! {
        /// Beside flows that keep a queue it is CUBIC, to the bit.
        #[test]
        fn behind_a_queue_it_is_cubic(rounds in 1_usize..200, queue in 0.01_f64..0.5) {
            let mut path = Path::avoiding();
            path.swing.on_congestion(path.now, 30.0, path.now);
            let (mut window, mut cubic) = (path.swing.window(), path.swing.cubic.unwrap());
            let met = path.swing.recovered;
            for _ in 0..rounds {
                let (began, all) = (path.now, window);
                path.round(queue, true);
                for i in 1..=100 {
                    let sent = began + RTT * f64::from(i) / 100.0;
                    if sent > met {
                        window = cubic.grown(window, all / 100.0, RTT, sent + RTT + queue);
                    }
                }
                prop_assert_eq!(path.swing.window(), window);
            }
        }

        #[test]
        fn a_window_is_finite_and_two_packets_at_least(events in prop::collection::vec(
            (0_u8..6, 0.0_f64..0.4), 1..400,
        )) {
            let mut path = Path::new();
            for (what, x) in events {
                match what {
                    0 => path.swing.on_congestion(path.now - x, 100.0 * x, path.now),
                    1 => path.swing.on_persistent_congestion(path.now),
                    2 => path.swing.on_loss(path.now),
                    3 => path.round(x, false),
                    _ => path.round(x / 10.0, true),
                }
                let window = path.swing.window();
                prop_assert!((MIN..1e300).contains(&window), "{window}");
                prop_assert!(path.swing.ssthresh() >= MIN);
            }
        }
    }
}
