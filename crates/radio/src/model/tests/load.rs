//! Links under sustained load.

use proptest::prelude::*;

use super::super::{DelaySpec, LossSpec, QueueSpec};
use super::*;

const ALL: QueueSpec = QueueSpec::Packets(u32::MAX);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn ten_seconds_take_ten_seconds(
        bps in 100_000u64..2_000_000_000, bytes in 300u32..1500, delay_ns in 0u64..100_000_000,
    ) {
        let (mut net, link, mut log) = one(&LinkSpec {
            rate: RateSpec::Constant(Rate::from_bps(bps)),
            delay: DelaySpec::Constant(Duration::from_nanos(delay_ns)),
            queue: ALL,
            ..LinkSpec::default()
        });
        let packets = (bps * 10 / 8 / u64::from(bytes)).max(1);
        let mut left = packets;
        while left > 0 {
            let n = left.min(44) as u32;
            net.enqueue(link, Time::ZERO, train(left as u32, n, bytes), &mut log);
            left -= u64::from(n);
        }
        net.advance(Time::from(Duration::from_secs(20)), &mut log);
        prop_assert_eq!(log.packets(), packets);
        // Not a nanosecond off, however many chunks it was.
        let bits = u128::from(packets) * u128::from(bytes) * 8;
        let took = (bits * 1_000_000_000).div_ceil(bps.into()) as u64;
        prop_assert_eq!(log.delivered.last().unwrap().0, Time::from_nanos(took + delay_ns));
        // And at every moment within a chunk.
        let mut sent = 0;
        for (at, span) in &log.delivered {
            sent += u64::from(span.packets()) * u64::from(bytes);
            let want = sent as f64 * 8e9 / bps as f64 + delay_ns as f64;
            prop_assert!((at.as_nanos() as f64 - want).abs() < 2.0);
        }
    }

    #[test]
    fn trains_are_dropped_like_the_packets_they_stand_for(
        steps in prop::collection::vec((0u64..3000, 1u32..40), 1..30),
        limit in 1u32..60, kind in 0..3,
    ) {
        let spec = LinkSpec {
            rate: mbps(120),
            queue: match kind {
                0 => QueueSpec::Packets(limit),
                1 => QueueSpec::Bytes(u64::from(limit) * 1500 + 700),
                _ => QueueSpec::Time(Duration::from_micros(u64::from(limit) * 100)),
            },
            ..LinkSpec::default()
        };
        let (mut trains, a, mut log_a) = one(&spec);
        let (mut singles, b, mut log_b) = one(&spec);
        let mut us = 0;
        for (gap, n) in steps {
            us += gap;
            // Never just when a packet's service begins.
            let now = at_us(us * 7) + Duration::from_nanos(500);
            trains.enqueue(a, now, train(0, n, 1500), &mut log_a);
            for _ in 0..n {
                singles.enqueue(b, now, train(0, 1, 1500), &mut log_b);
            }
            prop_assert_eq!(log_a.lost(DropCause::QueueFull), log_b.lost(DropCause::QueueFull));
        }
        trains.advance(Time::MAX, &mut log_a);
        singles.advance(Time::MAX, &mut log_b);
        prop_assert_eq!(log_a.packets(), log_b.packets());
        prop_assert_eq!(log_a.delivered.last().unwrap().0, log_b.delivered.last().unwrap().0);
    }
}

#[test]
fn loss_on_a_link_is_within_three_sigma() {
    for p in [1e-4, 1e-3, 1e-2] {
        let (mut net, link, mut log) = one(&LinkSpec {
            loss: LossSpec::Bernoulli(p),
            ..LinkSpec::default()
        });
        let trains = 20_000;
        for id in 0..trains {
            net.enqueue(link, at_us(id.into()), train(id, 44, 1500), &mut log);
            net.advance(at_us(id.into()), &mut log);
        }
        let n = f64::from(trains) * 44.0;
        let lost = log.lost(DropCause::Loss) as f64;
        assert!(
            (lost - n * p).abs() < 3.0 * (n * p * (1.0 - p)).sqrt(),
            "{p}: {lost}"
        );
        assert_eq!(log.packets() + lost as u64, n as u64);
        assert_eq!(net.stats(link).sent_packets, n as u64);
        assert_eq!(net.stats(link).out_packets, log.packets());
    }
}

/// Opportunities at or before each millisecond, written out one by one.
fn offered(ms: &[u64], until_ms: u64) -> u64 {
    let period = *ms.last().unwrap();
    (0..)
        .map(|cycle| cycle * period)
        .take_while(|base| *base <= until_ms)
        .map(|base| ms.iter().filter(|m| base + **m <= until_ms).count() as u64)
        .sum()
}

/// Sends over the trace for `seconds` without a pause, and holds every
/// millisecond's bytes against what the trace offered by then.
fn saturate_opportunities(ms: &[u64], bytes: u32, seconds: u64) {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: RateSpec::Opportunities {
            ms: ms.to_vec(),
            packet_bytes: 1504,
        },
        queue: ALL,
        ..LinkSpec::default()
    });
    let packets = offered(ms, seconds * 1000) * 1504 / u64::from(bytes) + 44;
    for id in 0..=packets / 44 {
        net.enqueue(link, Time::ZERO, train(id as u32, 44, bytes), &mut log);
    }
    for now in (1..=seconds * 10).map(|n| n * 100) {
        net.advance(at_us(now * 1000), &mut log);
        let whole = offered(ms, now) * 1504 / u64::from(bytes);
        assert_eq!(net.stats(link).out_packets, whole, "after {now} ms");
    }
}

#[test]
fn mahimahi_opportunities_are_used_to_the_byte() {
    let uneven = [0, 0, 1, 5, 5, 5, 40, 41, 300, 300, 301];
    saturate_opportunities(&uneven, 1504, 5);
    saturate_opportunities(&uneven, 1500, 5);
    saturate_opportunities(&uneven, 97, 5);
}

#[test]
fn a_recorded_mahimahi_trace_is_used_to_the_byte() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let path = format!("{root}/../shared/data/mahimahi/ATT-LTE-driving-2016.down");
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {path} is not there");
        return;
    };
    let ms: Vec<u64> = text.lines().map(|l| l.trim().parse().unwrap()).collect();
    saturate_opportunities(&ms, 1500, 20);
}

/// Sojourn times in ms of the packets that left in each second, and drops.
fn overload(queue: QueueSpec, load: f64, seconds: u64) -> (Vec<Vec<f64>>, u64) {
    // One packet per ms.
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(12),
        queue,
        ..LinkSpec::default()
    });
    let mut arrivals = Vec::new();
    loop {
        let at = arrivals.len() as f64 * 1e6 / load;
        if at > seconds as f64 * 1e9 {
            break;
        }
        let now = Time::from_nanos(at as u64);
        net.enqueue(link, now, train(arrivals.len() as u32, 1, 1500), &mut log);
        net.advance(now, &mut log);
        arrivals.push(now);
    }
    let mut sojourn = vec![Vec::new(); seconds as usize];
    for (at, span) in &log.delivered {
        let second = (at.as_secs_f64() as usize).min(sojourn.len() - 1);
        let ms = at.since(arrivals[span.id as usize]).as_secs_f64() * 1e3;
        // Less its own millisecond of service.
        sojourn[second].push(ms - 1.0);
    }
    (sojourn, log.lost(DropCause::Codel))
}

#[test]
fn codel_keeps_the_standing_queue_short() {
    let codel = QueueSpec::Codel {
        target: 5 * MS,
        interval: 100 * MS,
        limit_packets: 1000,
    };
    let mean = |v: &[f64]| v.iter().sum::<f64>() / v.len() as f64;
    let (with, drops) = overload(codel, 1.02, 60);
    let (without, _) = overload(QueueSpec::Packets(1000), 1.02, 60);
    let settled: Vec<f64> = with[20..].concat();
    println!(
        "CoDel {:.2} ms, drop-tail {:.2} ms, {drops} drops",
        mean(&settled),
        mean(&without[59])
    );
    assert!(
        mean(&without[59]) > 900.0,
        "the load is one that fills a queue"
    );
    assert!(mean(&settled) < 20.0);
    // It drops what is too much and no more: the link never idles.
    assert!((1190..=1250).contains(&drops), "{drops}");
    assert!(with[20..].iter().all(|s| s.len() >= 999));
    // Below capacity it drops nothing.
    assert_eq!(overload(codel, 0.99, 20).1, 0);
}

#[test]
fn codel_judges_single_packets_of_trains() {
    let (mut net, link, mut log) = one(&LinkSpec {
        rate: mbps(120),
        queue: QueueSpec::Codel {
            target: 5 * MS,
            interval: 20 * MS,
            limit_packets: 2000,
        },
        ..LinkSpec::default()
    });
    // 40 packets every 4 ms, 4.0 ms of work each, onto a queue of 20 ms.
    net.enqueue(link, Time::ZERO, train(1000, 200, 1500), &mut log);
    for id in 0..100 {
        net.enqueue(link, Time::from(id * 4 * MS), train(id, 40, 1500), &mut log);
    }
    net.advance(Time::from(Duration::from_secs(2)), &mut log);
    assert!(log.lost(DropCause::Codel) > 10);
    assert!(log.dropped.iter().all(|(s, _)| s.packets() == 1));
    // Chunks all the same: two packets of 100 us each.
    let pairs = log
        .delivered
        .iter()
        .filter(|(_, s)| s.packets() == 2)
        .count();
    assert!(
        pairs * 2 > log.delivered.len(),
        "{pairs} of {}",
        log.delivered.len()
    );
    assert_eq!(log.packets() + log.lost(DropCause::Codel), 4200);
}
