//! Times and limits that can be told in advance.

use super::super::{DelaySpec, InFlight, JitterSpec, LinkChange, LossSpec, QueueSpec};
use super::*;

#[test]
fn a_train_arrives_in_chunks_of_200_us_after_the_delay() {
    let spec = LinkSpec {
        rate: mbps(120),
        delay: DelaySpec::Constant(10 * MS),
        ..LinkSpec::default()
    };
    let (mut net, link, mut log) = one(&spec);
    // 100 us per packet: two per chunk.
    net.enqueue(link, at_us(1000), train(7, 5, 1500), &mut log);
    assert_eq!(net.next_event(), Some(at_us(11_200)));
    net.advance(at_us(11_199), &mut log);
    assert_eq!(log.delivered, []);
    net.advance(at_us(50_000), &mut log);
    let span = |first, end| Span { id: 7, first, end };
    let want = [
        (at_us(11_200), span(0, 2)),
        (at_us(11_400), span(2, 4)),
        (at_us(11_500), span(4, 5)),
    ];
    assert_eq!(log.delivered, want);
    assert_eq!(net.next_event(), None);
}

#[test]
fn unlimited_passes_whole_trains_at_once() {
    let (mut net, link, mut log) = one(&LinkSpec {
        queue: QueueSpec::Packets(1),
        ..LinkSpec::default()
    });
    for id in 0..3 {
        net.enqueue(link, at_us(5), train(id, 44, 1500), &mut log);
    }
    net.advance(at_us(5), &mut log);
    assert_eq!(log.packets(), 132);
    assert_eq!(log.delivered.len(), 3);
}

#[test]
fn what_is_longer_than_the_mtu_takes_its_time_and_does_not_arrive() {
    let spec = LinkSpec {
        rate: mbps(12),
        mtu: Some(1400),
        ..LinkSpec::default()
    };
    let (mut net, link, mut log) = one(&spec);
    let last_short = Train {
        last_bytes: 750,
        ..train(1, 3, 1500)
    };
    net.enqueue(link, Time::ZERO, last_short, &mut log);
    net.enqueue(link, Time::ZERO, train(2, 2, 1400), &mut log);
    net.advance(at_us(10_000), &mut log);
    // Three packets of 1500, 1500 and 750 bytes took 2.5 ms.
    assert_eq!((log.packets(), log.lost(DropCause::TooLong)), (3, 2));
    assert_eq!(
        log.delivered[0],
        (
            at_us(2500),
            Span {
                id: 1,
                first: 2,
                end: 3
            }
        )
    );
    net.apply(link, at_us(10_000), &LinkChange::Mtu(None), &mut log);
    net.enqueue(link, at_us(10_000), train(3, 2, 1500), &mut log);
    net.advance(at_us(20_000), &mut log);
    assert_eq!((log.packets(), net.stats(link).drops.too_long), (5, 2));
}

#[test]
fn an_outage_loses_what_is_queued_served_and_under_way() {
    let spec = LinkSpec {
        rate: mbps(12),
        delay: DelaySpec::Constant(10 * MS),
        ..LinkSpec::default()
    };
    let (mut net, link, mut log) = one(&spec);
    // One packet per ms: at 15.5 ms five have arrived.
    net.enqueue(link, Time::ZERO, train(1, 50, 1500), &mut log);
    net.apply(link, at_us(15_500), &LinkChange::Down, &mut log);
    assert_eq!((log.packets(), log.lost(DropCause::LinkDown)), (5, 45));
    net.enqueue(link, at_us(16_000), train(2, 3, 1500), &mut log);
    assert_eq!(log.lost(DropCause::LinkDown), 48);
    net.apply(link, at_us(20_000), &LinkChange::Up, &mut log);
    net.enqueue(link, at_us(20_000), train(3, 1, 1500), &mut log);
    net.advance(at_us(60_000), &mut log);
    let last = (
        at_us(31_000),
        Span {
            id: 3,
            first: 0,
            end: 1,
        },
    );
    assert_eq!(log.delivered.last(), Some(&last));
    assert_eq!(
        net.capacity_bits(link, Time::ZERO, at_us(30_000)),
        12e6 * 25.5e-3
    );
}

#[test]
fn a_held_outage_keeps_the_queue_and_lets_the_line_run_out() {
    let spec = LinkSpec {
        rate: mbps(12),
        delay: DelaySpec::Constant(10 * MS),
        queue: QueueSpec::Packets(6),
        outage: InFlight::Held,
        ..LinkSpec::default()
    };
    let (mut net, link, mut log) = one(&spec);
    net.enqueue(link, Time::ZERO, train(1, 4, 1500), &mut log);
    // At 1.5 ms one is under way and one in service; two wait.
    net.apply(link, at_us(1_500), &LinkChange::Down, &mut log);
    net.enqueue(link, at_us(3_000), train(2, 10, 1500), &mut log);
    assert_eq!(log.lost(DropCause::QueueFull), 6);
    net.advance(at_us(19_999), &mut log);
    assert_eq!(log.packets(), 2);
    assert_eq!(net.stats(link).queue_packets, 6);
    net.apply(link, at_us(20_000), &LinkChange::Up, &mut log);
    net.advance(at_us(100_000), &mut log);
    let times: Vec<Time> = log.delivered.iter().map(|(at, _)| *at).collect();
    let want = [
        11_000, 12_000, 31_000, 32_000, 33_000, 34_000, 35_000, 36_000,
    ];
    assert_eq!(times, want.map(at_us));
}

#[test]
fn a_new_rate_holds_from_the_next_service_on() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(12),
        ..LinkSpec::default()
    });
    net.enqueue(link, Time::ZERO, train(1, 3, 1500), &mut log);
    net.apply(link, at_us(1_500), &LinkChange::Rate(mbps(6)), &mut log);
    net.advance(at_us(10_000), &mut log);
    let times: Vec<Time> = log.delivered.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [1_000, 2_000, 4_000].map(at_us));
    // 12 Mbit/s for 1.5 ms, 6 for 2.5 ms.
    let bits = net.capacity_bits(link, Time::ZERO, at_us(4_000));
    assert_eq!(bits, 18_000.0 + 15_000.0);
}

#[test]
fn capacity_follows_changes_and_outages() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(10),
        ..LinkSpec::default()
    });
    let at = |ms: u32| Time::from(ms * MS);
    let faster = RateSpec::Steps {
        // On the run's clock, not from the change on.
        points: vec![
            (Duration::ZERO, Rate::from_bps(1_000_000)),
            (250 * MS, Rate::from_bps(20_000_000)),
        ],
        period: None,
    };
    net.apply(link, at(100), &LinkChange::Down, &mut log);
    net.apply(link, at(150), &LinkChange::Rate(faster), &mut log);
    net.apply(link, at(200), &LinkChange::Up, &mut log);
    net.apply(
        link,
        at(300),
        &LinkChange::Rate(RateSpec::Unlimited),
        &mut log,
    );
    let bits = |a, b| net.capacity_bits(link, at(a), at(b));
    assert_eq!(bits(0, 100), 1e6);
    assert_eq!(bits(0, 200), 1e6);
    assert_eq!(bits(50, 250), 0.5e6 + 0.05e6);
    assert_eq!(bits(0, 300), 1e6 + 0.05e6 + 1e6);
    assert_eq!(bits(120, 160), 0.0);
    assert_eq!(bits(0, 301), f64::INFINITY);
    assert_eq!(bits(200, 100), 0.0);
}

#[test]
fn a_smaller_queue_is_trimmed_from_the_tail() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(12),
        ..LinkSpec::default()
    });
    net.enqueue(link, Time::ZERO, train(1, 20, 1500), &mut log);
    net.enqueue(link, Time::ZERO, train(2, 20, 1500), &mut log);
    // One is in service at 0.5 ms.
    let smaller = LinkChange::Queue(QueueSpec::Bytes(15_000));
    net.apply(link, at_us(500), &smaller, &mut log);
    assert_eq!(log.lost(DropCause::QueueFull), 29);
    net.advance(at_us(100_000), &mut log);
    assert!(log.delivered.iter().all(|(_, s)| s.id == 1 && s.end <= 11));
    assert_eq!(log.packets(), 11);
}

#[test]
fn a_queue_in_time_follows_the_rate_but_not_into_a_pause() {
    let rate = RateSpec::Steps {
        points: vec![
            (Duration::ZERO, Rate::from_bps(12_000_000)),
            (100 * MS, Rate::from_bps(24_000_000)),
            (200 * MS, Rate::ZERO),
        ],
        period: Some(300 * MS),
    };
    // On the wire a packet takes 1 ms at 12 Mbit/s.
    let spec = LinkSpec {
        rate,
        queue: QueueSpec::Time(10 * MS),
        overhead_bytes: 38,
        ..LinkSpec::default()
    };
    for (at, in_service, room) in [(0, 1, 10), (100, 1, 20), (250, 0, 20), (310, 1, 10)] {
        let (mut net, link, mut log) = one(&spec);
        net.enqueue(link, Time::from(at * MS), train(1, 50, 1462), &mut log);
        let kept = 50 - log.lost(DropCause::QueueFull);
        assert_eq!(kept, in_service + room, "at {at} ms");
    }
}

#[test]
fn jitter_with_reordering_splits_trains_and_loses_nothing() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(100),
        delay: DelaySpec::Constant(20 * MS),
        jitter: Some(JitterSpec {
            deviation: 2 * MS,
            reorder: true,
        }),
        ..LinkSpec::default()
    });
    net.enqueue(link, Time::ZERO, train(1, 40, 1500), &mut log);
    net.advance(Time::from(100 * MS), &mut log);
    assert_eq!((log.packets(), log.delivered.len()), (40, 40));
    assert!(log.delivered.is_sorted_by_key(|(at, _)| *at));
    assert!(!log.delivered.is_sorted_by_key(|(_, s)| s.first));
}

#[test]
fn what_is_not_there_is_ignored() {
    let mut net = Network::new(1);
    let mut log = Log::default();
    net.enqueue(LinkId(3), Time::ZERO, train(1, 4, 1500), &mut log);
    assert_eq!(log.lost(DropCause::LinkDown), 4);
    net.apply(LinkId(3), Time::ZERO, &LinkChange::Down, &mut log);
    net.advance(Time::MAX, &mut log);
    assert_eq!(net.next_event(), None);
    assert_eq!(net.stats(LinkId(3)).in_packets, 0);
}

#[test]
fn draws_follow_from_the_seed_and_the_name_of_the_link() {
    let spec = LinkSpec {
        loss: LossSpec::Bernoulli(0.1),
        jitter: Some(JitterSpec {
            deviation: MS,
            reorder: true,
        }),
        delay: DelaySpec::Constant(10 * MS),
        ..LinkSpec::default()
    };
    let run = |seed, before: &[&str], name| {
        let mut net = Network::new(seed);
        for other in before {
            let link = net.add_link(other, &spec);
            net.enqueue(link, Time::ZERO, train(9, 44, 1500), &mut Log::default());
            net.advance(Time::from(MS), &mut Log::default());
        }
        let link = net.add_link(name, &spec);
        let mut log = Log::default();
        net.enqueue(link, Time::from(MS), train(1, 500, 1500), &mut log);
        net.advance(Time::from(1000 * MS), &mut log);
        log.delivered.retain(|(_, s)| s.id == 1);
        log.dropped.retain(|(s, _)| s.id == 1);
        log
    };
    let first = run(1, &[], "nr");
    assert_eq!(run(1, &[], "nr"), first);
    assert_eq!(run(1, &["wifi"], "nr"), first);
    assert_ne!(run(2, &[], "nr"), first);
    assert_ne!(run(1, &[], "wifi"), first);
}

#[test]
fn a_network_can_move_to_another_thread() {
    fn send<T: Send>(_: T) {}
    send(Network::new(1));
}

#[test]
fn a_mark_notes_the_arrival_by_which_so_much_was_handed_over() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(12),
        ..LinkSpec::default()
    });
    let marked = |net: &Network| net.stats(link).marked_ns.map(Time::from_nanos);
    net.enqueue(link, at_us(1), train(1, 1, 1500), &mut log);
    assert_eq!(marked(&net), None, "nobody asked");
    net.mark(link, 1000);
    for (id, us) in [(2, 10), (3, 20), (4, 30)] {
        net.enqueue(link, at_us(us), train(id, 1, 600), &mut log);
    }
    assert_eq!(marked(&net), Some(at_us(20)), "not what came later");
    net.mark(link, 1000);
    assert_eq!(marked(&net), None, "a mark begins anew");
    // A link that is down is handed packets, too.
    net.apply(link, at_us(40), &LinkChange::Down, &mut log);
    net.enqueue(link, at_us(50), train(5, 2, 1500), &mut log);
    assert_eq!(marked(&net), Some(at_us(50)));
}
