//! Links whose queue a medium serves.

use std::collections::BTreeMap;

use super::super::{
    DelaySpec, InFlight, LinkChange, LossSpec, Medium, MediumStats, QueueSpec, StationLink,
    Stations,
};
use super::*;

/// Stations in turn send frames of up to three packets, each frame taking
/// 54 ms divided by the rate in Mbit/s. A garbled packet is given up.
#[derive(Default)]
struct Turns {
    free: Time,
    next: usize,
    stations: usize,
    air: Option<Frame>,
    rounds: u64,
}

#[derive(Clone, Copy)]
struct Frame {
    s: usize,
    receiver: u32,
    packets: u32,
    end: Time,
}

impl Turns {
    fn start(&self, s: usize, stations: &dyn Stations) -> Option<Time> {
        Some(stations.head(s)?.arrival.max(self.free))
    }
}

impl Medium for Turns {
    fn next_event(&self, stations: &dyn Stations) -> Option<Time> {
        let starts = || {
            (0..self.stations)
                .filter_map(|s| self.start(s, stations))
                .min()
        };
        self.air.map(|f| f.end).or_else(starts)
    }

    fn advance(&mut self, now: Time, stations: &mut dyn Stations) {
        while let Some(at) = self.next_event(stations).filter(|at| *at <= now) {
            if let Some(f) = self.air.take() {
                self.free = f.end;
                // Packets of one frame are garbled together.
                if f.packets > 0 && stations.garbled(f.s, f.receiver, at) {
                    stations.gave_up(f.s, f.receiver, f.packets, at);
                } else if f.packets > 0 {
                    stations.sent(f.s, f.receiver, f.packets, at);
                }
                continue;
            }
            let order = (0..self.stations).map(|i| (self.next + i) % self.stations);
            let ready = order
                .filter(|&s| self.start(s, stations).is_some_and(|t| t <= at))
                .find_map(|s| Some((s, stations.head(s)?)));
            let Some((s, head)) = ready else { return };
            let mut packets = 0;
            stations.waiting(s, head.receiver, at, &mut |bytes| {
                assert!(bytes > 0);
                packets += 1;
                packets < 3
            });
            stations.take(s, head.receiver, packets, at);
            self.next = s + 1;
            self.rounds += 1;
            self.air = Some(Frame {
                s,
                receiver: head.receiver,
                packets,
                end: at + MS.mul_f64(54.0 / head.phy_mbps.unwrap_or(54.0)),
            });
        }
    }

    fn forget(&mut self, s: usize, receiver: u32) {
        if let Some(f) = self
            .air
            .as_mut()
            .filter(|f| (f.s, f.receiver) == (s, receiver))
        {
            f.packets = 0;
        }
    }

    fn stats(&self) -> MediumStats {
        MediumStats {
            rounds: self.rounds,
            ..MediumStats::default()
        }
    }
}

/// An access point with two links, the second twice as fast, and one station
/// with one link.
fn cell(spec: &LinkSpec) -> (Network, [LinkId; 3], Log) {
    let mut net = Network::new(1);
    let links = ["down 0", "down 1", "up 0"].map(|name| net.add_link(name, spec));
    let at = |i: usize, phy_mbps| StationLink {
        link: links[i],
        phy_mbps,
    };
    let stations = vec![vec![at(0, None), at(1, Some(108.0))], vec![at(2, None)]];
    let medium = Turns {
        stations: 2,
        ..Turns::default()
    };
    net.add_medium("cell", Box::new(medium), stations);
    (net, links, Log::default())
}

fn slow() -> LinkSpec {
    LinkSpec {
        // Not heeded on a medium.
        rate: RateSpec::Constant(Rate::from_bps(1)),
        delay: DelaySpec::Constant(10 * MS),
        ..LinkSpec::default()
    }
}

#[test]
fn stations_share_the_medium_and_links_their_station() {
    let (mut net, [a, b, up], mut log) = cell(&slow());
    for (id, link) in [(0, a), (1, b), (2, up)] {
        net.enqueue(link, Time::ZERO, train(id, 5, 1500), &mut log);
    }
    assert_eq!(net.next_event(), Some(at_us(1000)));
    net.advance(Time::from(100 * MS), &mut log);
    let got: Vec<(u64, u32, u32)> = log
        .delivered
        .iter()
        .map(|(at, s)| (at.as_nanos() / 1000 - 10_000, s.id, s.packets()))
        .collect();
    // The first frame left when only its own train had come.
    let want = [
        (1000, 0, 3),
        (2000, 2, 3),
        (2500, 1, 3),
        (3500, 2, 2),
        (4500, 0, 2),
        (5000, 1, 2),
    ];
    assert_eq!(got, want);
    assert_eq!(net.next_event(), None);
    assert_eq!(net.medium_stats()[0].0, "cell");
    assert_eq!(net.medium_stats()[0].1.rounds, 6);
    assert_eq!(net.stats(b).sent_bytes, 7500);
}

#[test]
fn the_link_s_loss_garbles_and_the_medium_gives_up() {
    let (mut net, [a, b, _], mut log) = cell(&slow());
    net.apply(
        b,
        Time::ZERO,
        &LinkChange::Loss(LossSpec::Bernoulli(1.0)),
        &mut log,
    );
    net.enqueue(a, Time::ZERO, train(0, 6, 1500), &mut log);
    net.enqueue(b, Time::ZERO, train(1, 6, 1500), &mut log);
    net.advance(Time::from(100 * MS), &mut log);
    assert_eq!((log.packets(), log.lost(DropCause::RetryLimit)), (6, 6));
    assert_eq!(net.stats(b).drops.retry_limit, 6);
    assert_eq!(net.stats(b).sent_packets, 0);
}

#[test]
fn an_outage_takes_what_the_medium_holds() {
    for outage in [InFlight::Lost, InFlight::Held] {
        let (mut net, [a, b, _], mut log) = cell(&LinkSpec { outage, ..slow() });
        net.enqueue(a, Time::ZERO, train(0, 6, 1500), &mut log);
        net.enqueue(b, Time::ZERO, train(1, 3, 1500), &mut log);
        // The first frame of three is on the air.
        net.apply(a, at_us(500), &LinkChange::Down, &mut log);
        net.advance(at_us(40_000), &mut log);
        net.apply(a, at_us(50_000), &LinkChange::Up, &mut log);
        net.advance(at_us(100_000), &mut log);
        let of = |id| -> Vec<(u64, u32)> {
            let spans = log.delivered.iter().filter(|(_, s)| s.id == id);
            spans
                .map(|(at, s)| (at.as_nanos() / 1000, s.packets()))
                .collect()
        };
        assert_eq!(of(1), [(11_500, 3)], "the other link goes on");
        if outage == InFlight::Lost {
            assert_eq!(log.lost(DropCause::LinkDown), 6);
            assert_eq!(of(0), []);
        } else {
            assert_eq!(of(0), [(11_000, 3), (61_000, 3)]);
        }
        let stats = net.stats(a);
        assert_eq!(stats.in_packets, stats.out_packets + stats.drops.total());
    }
}

#[test]
fn codel_works_where_a_medium_takes_packets() {
    let queue = QueueSpec::Codel {
        target: 5 * MS,
        interval: 20 * MS,
        limit_packets: 1000,
    };
    let (mut net, [a, ..], mut log) = cell(&LinkSpec { queue, ..slow() });
    // Four packets come for every three that go.
    for id in 0..500 {
        net.enqueue(a, Time::from(id * MS), train(id, 4, 1500), &mut log);
    }
    net.advance(Time::from(Duration::from_secs(3)), &mut log);
    let codel = log.lost(DropCause::Codel);
    assert!(codel > 50 && log.lost(DropCause::QueueFull) == 0, "{codel}");
    assert_eq!(log.packets() + codel, 2000);
    // In order, with holes.
    let mut per_train: BTreeMap<u32, u32> = BTreeMap::new();
    for (_, s) in &log.delivered {
        let end = per_train.entry(s.id).or_default();
        assert!(s.first >= *end);
        *end = s.end;
    }
    assert!(log.delivered.is_sorted_by_key(|(_, s)| (s.id, s.first)));
}
