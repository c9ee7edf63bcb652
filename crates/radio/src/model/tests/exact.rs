//! Times and limits that can be told in advance.

use super::super::{DelaySpec, LinkChange, QueueSpec};
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
