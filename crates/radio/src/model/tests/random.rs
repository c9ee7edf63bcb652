//! Properties of any network under any load, changes and outages.

use std::collections::HashMap;

use proptest::prelude::*;

use super::super::wifi::Dcf;
use super::super::{
    DelaySpec, InFlight, JitterSpec, LinkChange, LinkStats, LossSpec, QueueSpec, StationLink,
};
use super::*;

const LINKS: usize = 3;

#[derive(Clone, Debug)]
enum Op {
    Enqueue(Train),
    Change(LinkChange),
}

/// At a time in nanoseconds, on a link.
type Step = (u64, usize, Op);

fn rates() -> impl Strategy<Value = RateSpec> {
    let bps = prop_oneof![1 => Just(0), 5 => 100_000u64..2_000_000_000];
    let points = prop::collection::vec((0u64..20_000_000, bps.clone()), 1..5);
    let steps = (points, prop::option::of(20_000_000u64..30_000_000)).prop_map(|(points, p)| {
        RateSpec::Steps {
            points: points
                .into_iter()
                .map(|(t, r)| (Duration::from_nanos(t), Rate::from_bps(r)))
                .collect(),
            period: p.map(Duration::from_nanos),
        }
    });
    let ms = prop::collection::vec(0u64..20, 1..30);
    prop_oneof![
        Just(RateSpec::Unlimited),
        bps.prop_map(|r| RateSpec::Constant(Rate::from_bps(r))),
        steps,
        ms.prop_map(|ms| RateSpec::Opportunities {
            ms,
            packet_bytes: 1504
        }),
    ]
}

fn delays() -> impl Strategy<Value = DelaySpec> {
    let ns = 0u64..20_000_000;
    let points = prop::collection::vec((0u64..20_000_000, ns.clone()), 1..4);
    prop_oneof![
        ns.prop_map(|d| DelaySpec::Constant(Duration::from_nanos(d))),
        points.prop_map(|points| DelaySpec::Steps {
            points: points
                .into_iter()
                .map(|(t, d)| (Duration::from_nanos(t), Duration::from_nanos(d)))
                .collect(),
            period: None,
        }),
    ]
}

fn jitters(reorder: bool) -> impl Strategy<Value = Option<JitterSpec>> {
    prop::option::of((0u64..5_000_000).prop_map(move |d| JitterSpec {
        deviation: Duration::from_nanos(d),
        reorder,
    }))
}

fn losses() -> impl Strategy<Value = LossSpec> {
    prop_oneof![
        Just(LossSpec::None),
        (0.0..1.0).prop_map(LossSpec::Bernoulli),
        (0.0..1.0, 0.0..1.0, 1u64..20_000, 1u64..20_000).prop_map(|(a, b, at, rest)| {
            LossSpec::Steps {
                points: vec![(Duration::ZERO, a), (Duration::from_micros(at), b)],
                period: Some(Duration::from_micros(at + rest)),
            }
        }),
        (0.0..1.0, 0.0..1.0, 0.0..0.1, 0.0..1.0).prop_map(
            |(good_to_bad, bad_to_good, loss_good, loss_bad)| LossSpec::GilbertElliott {
                good_to_bad,
                bad_to_good,
                loss_good,
                loss_bad,
            }
        ),
    ]
}

fn queues() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        (0u64..200_000).prop_map(QueueSpec::Bytes),
        (0u32..200).prop_map(QueueSpec::Packets),
        (0u64..20_000).prop_map(|us| QueueSpec::Time(Duration::from_micros(us))),
        (1u64..5000, 1u64..20_000, 1u32..200).prop_map(|(target, interval, limit_packets)| {
            QueueSpec::Codel {
                target: Duration::from_micros(target),
                interval: Duration::from_micros(interval),
                limit_packets,
            }
        }),
    ]
}

fn mtus() -> impl Strategy<Value = Option<u32>> {
    prop_oneof![3 => Just(None), 1 => (68u32..1600).prop_map(Some)]
}

fn specs(reorder: bool) -> impl Strategy<Value = LinkSpec> {
    (
        rates(),
        delays(),
        jitters(reorder),
        losses(),
        queues(),
        prop_oneof![Just(0u32), Just(38)],
        any::<bool>(),
        mtus(),
    )
        .prop_map(
            |(rate, delay, jitter, loss, queue, overhead_bytes, held, mtu)| LinkSpec {
                rate,
                delay,
                jitter,
                loss,
                queue,
                overhead_bytes,
                outage: if held { InFlight::Held } else { InFlight::Lost },
                mtu,
            },
        )
}

fn changes(reorder: bool) -> impl Strategy<Value = LinkChange> {
    prop_oneof![
        rates().prop_map(LinkChange::Rate),
        delays().prop_map(LinkChange::Delay),
        jitters(reorder).prop_map(LinkChange::Jitter),
        losses().prop_map(LinkChange::Loss),
        queues().prop_map(LinkChange::Queue),
        mtus().prop_map(LinkChange::Mtu),
        Just(LinkChange::Down),
        Just(LinkChange::Up),
        Just(LinkChange::Up),
    ]
}

fn steps(reorder: bool) -> impl Strategy<Value = Vec<Step>> {
    let train = (1u32..50, 40u32..1500, 40u32..1500).prop_map(|(packets, full, last)| {
        let last = if packets == 1 { full } else { last.min(full) };
        Op::Enqueue(Train {
            id: 0,
            packets,
            full_bytes: full,
            last_bytes: last,
        })
    });
    let op = prop_oneof![5 => train, 1 => changes(reorder).prop_map(Op::Change)];
    prop::collection::vec((0u64..2_000_000, 0..LINKS, op), 1..60).prop_map(|mut steps| {
        let mut at = 0;
        for (id, (gap, _, op)) in steps.iter_mut().enumerate() {
            at += std::mem::replace(gap, at);
            if let Op::Enqueue(train) = op {
                train.id = id as u32;
            }
        }
        steps
    })
}

/// How the network is told of the time between steps.
#[derive(Clone, Copy, Debug)]
enum Polls {
    /// Not at all.
    Late,
    /// At every [`Network::next_event`].
    Exact,
    /// Every so many nanoseconds.
    Every(u64),
}

fn poll(net: &mut Network, polls: Polls, from: u64, to: u64, log: &mut Log) {
    match polls {
        Polls::Late => {}
        Polls::Every(ns) => {
            for t in (from..to).step_by(ns as usize).skip(1).take(1000) {
                net.advance(Time::from_nanos(t), log);
            }
        }
        Polls::Exact => {
            while let Some(at) = net.next_event().filter(|at| at.as_nanos() < to) {
                let n = log.delivered.len();
                net.advance(at, log);
                assert!(log.delivered[n..].iter().all(|(due, _)| *due == at));
                assert!(net.next_event().is_none_or(|next| next > at), "no progress");
            }
        }
    }
}

fn balance(s: &LinkStats) -> u64 {
    s.queue_packets + s.in_flight_packets + s.out_packets + s.drops.total()
}

/// Resource that the links share.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Common {
    Nothing,
    /// Wi-Fi, the last link up.
    Wifi,
    /// The first two go through one line.
    Backhaul,
}

fn common() -> impl Strategy<Value = Common> {
    prop_oneof![
        Just(Common::Nothing),
        Just(Common::Wifi),
        Just(Common::Backhaul)
    ]
}

/// Runs `steps`, then lets everything drain.
fn run(specs: &[LinkSpec], steps: &[Step], seed: u64, common: Common, polls: Polls) -> Log {
    let mut net = Network::new(seed);
    let links: Vec<LinkId> = specs
        .iter()
        .enumerate()
        .map(|(i, spec)| net.add_link(&format!("link {i}"), spec))
        .collect();
    if common == Common::Backhaul {
        net.add_backhaul(&mbps(20), &links[..2]);
    }
    if common == Common::Wifi {
        let spec = serde_json::from_str(r#"{"standard": "802.11n"}"#).unwrap();
        let at = |i: usize| StationLink {
            link: links[i],
            phy_mbps: [None, Some(6.5), Some(26.0)][i],
        };
        let dcf = Dcf::new(&spec, 2, seed).unwrap();
        net.add_medium("cell", Box::new(dcf), vec![vec![at(0), at(1)], vec![at(2)]]);
    }
    let mut log = Log::default();
    let mut last = 0;
    for (at, link, op) in steps {
        poll(&mut net, polls, last, *at, &mut log);
        last = *at;
        let now = Time::from_nanos(*at);
        match op {
            Op::Enqueue(train) => net.enqueue(links[*link], now, *train, &mut log),
            Op::Change(change) => net.apply(links[*link], now, change, &mut log),
        }
        for &l in &links {
            let stats = net.stats(l);
            assert_eq!(stats.in_packets, balance(&stats), "{stats:?}");
        }
    }
    let now = Time::from_nanos(last);
    for &l in &links {
        net.apply(l, now, &LinkChange::Up, &mut log);
        net.apply(l, now, &LinkChange::Rate(mbps(100)), &mut log);
    }
    net.advance(now + Duration::from_secs(100_000), &mut log);
    assert_eq!(net.next_event(), None);
    for &l in &links {
        let stats = net.stats(l);
        assert_eq!(
            (
                stats.queue_packets,
                stats.queue_bytes,
                stats.in_flight_packets
            ),
            (0, 0, 0)
        );
        assert_eq!(stats.in_packets, balance(&stats));
        assert!(stats.out_bytes <= stats.sent_bytes && stats.sent_bytes <= stats.in_bytes);
    }
    log
}

fn any_run(reorder: bool) -> impl Strategy<Value = (Vec<LinkSpec>, Vec<Step>)> {
    (prop::collection::vec(specs(reorder), LINKS), steps(reorder))
}

/// Log entries in an order that does not depend on ties between links, nor on
/// when drops were told.
fn sorted(mut log: Log) -> Log {
    log.delivered.sort_by_key(|(at, s)| (*at, s.id, s.first));
    log.dropped.sort_by_key(|(s, _)| (s.id, s.first));
    log
}

proptest! {
    #[test]
    fn every_packet_comes_out_once((specs, steps) in any_run(true), seed: u64, common in common()) {
        let log = run(&specs, &steps, seed, common, Polls::Every(777_777));
        let mut seen: HashMap<u32, Vec<(u32, u32)>> = HashMap::new();
        let dropped = log.dropped.iter().map(|(s, _)| s);
        for s in log.delivered.iter().map(|(_, s)| s).chain(dropped) {
            seen.entry(s.id).or_default().push((s.first, s.end));
        }
        for (_, _, op) in &steps {
            let Op::Enqueue(train) = op else { continue };
            let mut spans = seen.remove(&train.id).unwrap_or_default();
            spans.sort_unstable();
            let mut next = 0;
            for (first, end) in spans {
                prop_assert_eq!(first, next);
                prop_assert!(end > first);
                next = end;
            }
            prop_assert_eq!(next, train.packets);
        }
        prop_assert!(seen.is_empty());
        prop_assert!(log.delivered.is_sorted_by_key(|(at, _)| *at));
    }

    #[test]
    fn packets_stay_in_order((specs, steps) in any_run(false), seed: u64, common in common()) {
        let log = run(&specs, &steps, seed, common, Polls::Late);
        let link_of: HashMap<u32, usize> = steps
            .iter()
            .filter_map(|(_, link, op)| match op {
                Op::Enqueue(train) => Some((train.id, *link)),
                Op::Change(_) => None,
            })
            .collect();
        for link in 0..LINKS {
            let of_link = log.delivered.iter().filter(|(_, s)| link_of[&s.id] == link);
            prop_assert!(of_link.is_sorted_by_key(|(_, s)| (s.id, s.first)));
        }
    }

    #[test]
    fn the_outcome_does_not_depend_on_when_it_is_asked_for(
        (specs, steps) in any_run(true), seed: u64, common in common(), every in 1000u64..3_000_000,
    ) {
        let late = sorted(run(&specs, &steps, seed, common, Polls::Late));
        let exact = sorted(run(&specs, &steps, seed, common, Polls::Exact));
        prop_assert_eq!(&late, &exact);
        prop_assert_eq!(&late, &sorted(run(&specs, &steps, seed, common, Polls::Every(every))));
    }
}
