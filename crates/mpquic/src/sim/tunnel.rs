//! Packets of flows as messages: what they find of a tunnel over several links.

use std::collections::BTreeMap;
use std::time::Duration;

use braid_core::Time;
use braid_core::sched::WrrMode;
use bytes::Bytes;

use super::app::App;
use super::shares::{options, radio};
use super::world::{Radio, World, at};
use crate::lane::Packet;
use crate::{Connection, Lane, Options};

/// Bytes of a full packet.
const FULL: usize = 1400;

fn unmarked(_: &Bytes) -> Option<Bytes> {
    None
}

fn packet(flow: u32, sequence: u64, len: usize) -> Packet {
    let mut data = vec![flow as u8; len];
    data[..8].copy_from_slice(&sequence.to_be_bytes());
    Packet {
        class: 0,
        flow,
        ordered: true,
        data: data.into(),
        mark: unmarked,
    }
}

fn sequence(data: &Bytes) -> u64 {
    u64::from_be_bytes(data[..8].try_into().expect("a packet of ours"))
}

/// Inner sender with CUBIC (RFC 9438), three packets of patience and no pacing, as a QUIC of the
/// plainest kind: a packet that is overtaken by three is lost, and cuts the window.
#[derive(Debug)]
struct Cubic {
    next: u64,
    under_way: BTreeMap<u64, Time>,
    window: f64,
    threshold: f64,
    /// First packet after the last reduction.
    recovered: u64,
    /// Window of the last reduction, and when that was.
    greatest: f64,
    since: Time,
    /// Window that Reno would have since then.
    reno: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self {
            next: 0,
            under_way: BTreeMap::new(),
            window: 10.0,
            threshold: f64::INFINITY,
            recovered: 0,
            greatest: 0.0,
            since: Time::ZERO,
            reno: 0.0,
        }
    }
}

impl Cubic {
    fn acknowledged(&mut self, acknowledged: u64, now: Time) {
        if self.under_way.remove(&acknowledged).is_some() {
            if self.window < self.threshold {
                self.window += 1.0;
            } else {
                // RFC 9438 4.2, 4.3: C is 0.4, beta 0.7.
                let k = (self.greatest * 0.3 / 0.4).cbrt();
                let t = now.since(self.since).as_secs_f64() - k;
                let wanted = 0.4 * t * t * t + self.greatest;
                self.reno += 3.0 * 0.3 / 1.7 / self.window;
                let grows = ((wanted - self.window) / self.window).max(0.01 / self.window);
                self.window = (self.window + grows).max(self.reno);
            }
        }
        let before = acknowledged.saturating_sub(3);
        let overtaken: Vec<_> = self.under_way.range(..before).map(|(n, _)| *n).collect();
        self.lose(&overtaken, now);
    }

    fn lose(&mut self, overtaken: &[u64], now: Time) {
        for n in overtaken {
            self.under_way.remove(n);
            if *n >= self.recovered {
                self.greatest = self.window;
                self.window = (self.window * 0.7).max(2.0);
                (self.threshold, self.reno) = (self.window, self.window);
                (self.recovered, self.since) = (self.next, now);
            }
        }
    }

    /// Sends what the window has room for; what is under way for a second is lost.
    fn send(&mut self, now: Time, mut send: impl FnMut(u64)) {
        let late = |t: &Time| now.since(*t) > Duration::from_secs(1);
        let late: Vec<_> = self
            .under_way
            .iter()
            .filter(|(_, t)| late(t))
            .map(|(n, _)| *n)
            .collect();
        self.lose(&late, now);
        while (self.under_way.len() as f64) < self.window {
            send(self.next);
            self.under_way.insert(self.next, now);
            self.next += 1;
        }
    }
}

/// Result of a run.
#[derive(Debug, Default)]
struct Outcome {
    /// Packets that came, by flow.
    came: BTreeMap<u8, u64>,
    /// Packets that came behind a later one of their flow.
    behind: u64,
    /// Delays of a small flow's packets, ms.
    delays: Vec<f64>,
}

impl Outcome {
    fn mbps(&self, flow: u8, seconds: u64) -> f64 {
        let came = self.came.get(&flow).copied().unwrap_or(0);
        (came * FULL as u64 * 8) as f64 / seconds as f64 / 1e6
    }

    fn delay(&mut self, percent: usize) -> f64 {
        self.delays.sort_by(f64::total_cmp);
        self.delays[(self.delays.len() - 1) * percent / 100]
    }
}

/// Traffic from the proxy to the device.
struct Traffic {
    /// Flows 1, 2, ... with congestion control.
    senders: Vec<Cubic>,
    /// Flow 100: a packet of 200 bytes every 20 ms.
    voice: bool,
    /// Flow 101: full packets at a constant rate, Mbit/s.
    constant: f64,
}

fn over(radios: &[Radio], mut traffic: Traffic, begin: u64, end: u64) -> Outcome {
    let options = Options {
        ..options(Lane::Datagram, "minrtt", WrrMode::WorkConserving, "swing")
    };
    let weights = vec![1.0; radios.len()];
    let mut world = World::new(1, radios, &options, &weights, vec![], App::renewed());
    world.rest(at(500));
    let (mut outcome, mut highest) = (Outcome::default(), BTreeMap::<u8, u64>::new());
    let (mut voice, mut constant, mut sent_at) = (0, 0, BTreeMap::new());
    for tick in 500 * 2..end * 2 {
        let time = Time::from_nanos(tick * 500_000);
        world.rest(time);
        let (now, instant) = (world.now(), world.instant());
        let counts = tick >= begin * 2;
        // Acknowledgements come back by a way of their own, in the time of the faster path.
        let won = world.dial.connection().expect("a session");
        let c = world.device.connection(won).expect("it lasts");
        let lane = c.lane().expect("the lane of datagrams");
        let mut acknowledged = vec![];
        while let Some(data) = lane.next_message() {
            let (flow, n) = (data[8], sequence(&data));
            let highest = highest.entry(flow).or_default();
            if counts {
                *outcome.came.entry(flow).or_default() += 1;
                outcome.behind += u64::from(n < *highest);
                if flow == 100 {
                    let sent: &Time = &sent_at[&n];
                    outcome.delays.push(now.since(*sent).as_secs_f64() * 1e3);
                }
            }
            *highest = n.max(*highest);
            acknowledged.push((flow, n));
        }
        for (flow, n) in acknowledged {
            if let Some(sender) = traffic.senders.get_mut(usize::from(flow) - 1) {
                sender.acknowledged(n, now);
            }
        }
        let proxy = world.proxy.as_mut().expect("it runs");
        let handle = proxy.handles()[0];
        let c: &mut Connection = proxy.connection(handle).expect("it lasts");
        let lane = c.lane().expect("the lane of datagrams");
        for (flow, sender) in (1..).zip(&mut traffic.senders) {
            sender.send(now, |n| {
                lane.send_packet(packet(flow, n, FULL), instant);
            });
        }
        if traffic.voice && tick.is_multiple_of(40) {
            sent_at.insert(voice, now);
            lane.send_packet(packet(100, voice, 200), instant);
            voice += 1;
        }
        let due = traffic.constant * 1e6 / 8.0 / FULL as f64 * time.as_secs_f64();
        while (constant as f64) < due {
            lane.send_packet(packet(101, constant, FULL), instant);
            constant += 1;
        }
    }
    outcome
}

fn senders(n: usize) -> Traffic {
    Traffic {
        senders: (0..n).map(|_| Cubic::default()).collect(),
        voice: false,
        constant: 0.0,
    }
}

/// Fibre and LTE, at a fifth of 300 and 30 Mbit/s, and two others of the issue.
fn pairs() -> [(&'static str, [Radio; 2], f64, f64); 3] {
    [
        (
            "fibre and LTE",
            [radio(60.0, 4.0, 40), radio(6.0, 20.0, 80)],
            60.0,
            66.0,
        ),
        (
            "100 to 10",
            [radio(50.0, 5.0, 40), radio(5.0, 5.0, 40)],
            50.0,
            55.0,
        ),
        (
            "50 ms more",
            [radio(30.0, 5.0, 40), radio(30.0, 30.0, 60)],
            30.0,
            60.0,
        ),
    ]
}

#[test]
fn one_flow_with_congestion_control_has_the_sum_of_unequal_paths() {
    for (name, radios, best, sum) in pairs() {
        let outcome = over(&radios, senders(1), 3_000, 10_000);
        let mbps = outcome.mbps(1, 7);
        println!(
            "{name}: {mbps:.1} of {best} and {sum} Mbit/s, {} behind",
            outcome.behind
        );
        assert!(mbps > best && mbps > 0.85 * sum, "{name}: {mbps} of {sum}");
    }
}

#[test]
fn a_flow_of_constant_rate_comes_in_order() {
    for (name, radios, _, sum) in pairs() {
        let mut traffic = senders(0);
        traffic.constant = 0.85 * sum;
        let outcome = over(&radios, traffic, 3_000, 10_000);
        let mbps = outcome.mbps(101, 7);
        let all: u64 = outcome.came.values().sum();
        println!(
            "{name}: {mbps:.1} of {:.1} Mbit/s, {} of {all} behind",
            0.85 * sum,
            outcome.behind
        );
        assert!(mbps > 0.98 * 0.85 * sum, "{name}: {mbps}");
        assert!(
            outcome.behind * 1000 < all,
            "{name}: {} of {all}",
            outcome.behind
        );
    }
}

#[test]
fn a_small_flow_does_not_wait_for_a_large_one() {
    for (name, radios, ..) in pairs() {
        let mut alone = senders(0);
        alone.voice = true;
        let mut alone = over(&radios, alone, 3_000, 10_000);
        let mut beside = senders(2);
        beside.voice = true;
        let mut beside = over(&radios, beside, 3_000, 10_000);
        let (before, after) = (alone.delay(95), beside.delay(95));
        let mbps = [1, 2].map(|flow| beside.mbps(flow, 7));
        println!("{name}: p95 {before:.1} ms alone, {after:.1} ms beside {mbps:.1?} Mbit/s");
        assert!(after < before + 12.0, "{name}: {before} and {after} ms");
        assert!(
            (0.6..1.6).contains(&(mbps[0] / mbps[1])),
            "{name}: {mbps:?}"
        );
    }
}
