//! Links behind one line.

use proptest::prelude::*;

use super::super::{DelaySpec, QueueSpec};
use super::*;

fn spec(rate: &RateSpec, queue: QueueSpec, delay: Duration) -> LinkSpec {
    LinkSpec {
        rate: rate.clone(),
        delay: DelaySpec::Constant(delay),
        queue,
        ..LinkSpec::default()
    }
}

/// Sends the trains of `packets` after the gaps between them over one link, or
/// in turn as told over three links with these delays behind one backhaul.
/// Returns when each part left the line.
fn run(
    rate: &RateSpec,
    queue: QueueSpec,
    trains: &[(u64, usize, u32)],
    delays: Option<[u64; 3]>,
) -> (Vec<(Time, Span)>, Vec<Span>) {
    let mut net = Network::new(1);
    let n = if delays.is_some() { 3 } else { 1 };
    let delay = |i: usize| Duration::from_micros(delays.map_or(0, |d| d[i]));
    let links: Vec<LinkId> = (0..n)
        .map(|i| net.add_link(&i.to_string(), &spec(rate, queue, delay(i))))
        .collect();
    if delays.is_some() {
        net.add_backhaul(rate, &links);
    }
    let mut log = Log::default();
    let mut now = Time::ZERO;
    for (id, &(gap, link, packets)) in trains.iter().enumerate() {
        now += Duration::from_nanos(gap);
        net.advance(now, &mut log);
        let train = train(id as u32, packets, 1500);
        net.enqueue(links[link % n], now, train, &mut log);
    }
    net.advance(now + Duration::from_secs(1000), &mut log);
    let left = |(at, span): &(Time, Span)| {
        let delay = delay(trains[span.id as usize].1 % n).as_nanos() as u64;
        (Time::from_nanos(at.as_nanos() - delay), *span)
    };
    let mut out: Vec<_> = log.delivered.iter().map(left).collect();
    out.sort_by_key(|(at, s)| (*at, s.id, s.first));
    let mut dropped: Vec<Span> = log.dropped.iter().map(|d| d.0).collect();
    dropped.sort_by_key(|s| (s.id, s.first));
    (out, dropped)
}

fn queues() -> impl Strategy<Value = QueueSpec> {
    prop_oneof![
        (1u64..100_000).prop_map(QueueSpec::Bytes),
        (1u32..60).prop_map(QueueSpec::Packets),
        (1u64..10_000).prop_map(|us| QueueSpec::Time(Duration::from_micros(us))),
        (1u64..5000, 1u64..20_000, 1u32..200).prop_map(|(target, interval, limit_packets)| {
            QueueSpec::Codel {
                target: Duration::from_micros(target),
                interval: Duration::from_micros(interval),
                limit_packets,
            }
        }),
    ]
}

proptest! {
    /// To the nanosecond and the packet: as if all came over one link.
    #[test]
    fn several_links_behind_a_line_fare_as_one(
        rate in 1u64..1000,
        queue in queues(),
        trains in prop::collection::vec((1u64..2_000_000, 0usize..3, 1u32..40), 1..80),
        delays in prop::array::uniform3(0u64..30_000),
    ) {
        // Under CoDel packets go one by one; slow enough, chunks do too.
        let codel = matches!(queue, QueueSpec::Codel { .. });
        let rate = mbps(if codel { 1 + rate % 59 } else { rate });
        let one = run(&rate, queue, &trains, None);
        let all = run(&rate, queue, &trains, Some(delays));
        prop_assert_eq!(one, all);
    }
}

#[test]
fn a_link_that_is_down_keeps_the_line_free_for_the_others() {
    let rate = mbps(12);
    let mut net = Network::new(1);
    let spec = LinkSpec {
        outage: super::super::InFlight::Held,
        ..spec(&rate, QueueSpec::Packets(100), Duration::ZERO)
    };
    let links = ["a", "b"].map(|name| net.add_link(name, &spec));
    net.add_backhaul(&rate, &links);
    let mut log = Log::default();
    net.apply(
        links[0],
        at_us(0),
        &super::super::LinkChange::Down,
        &mut log,
    );
    net.enqueue(links[0], at_us(10), train(1, 3, 1500), &mut log);
    net.enqueue(links[1], at_us(20), train(2, 1, 1500), &mut log);
    net.advance(at_us(5000), &mut log);
    assert_eq!(log.packets(), 1);
    assert_eq!(log.delivered[0].0, at_us(1020));
    net.apply(
        links[0],
        at_us(6000),
        &super::super::LinkChange::Up,
        &mut log,
    );
    net.advance(at_us(20_000), &mut log);
    assert_eq!(log.packets(), 4);
    assert_eq!(log.delivered[3].0, at_us(9000));
}
