//! Behaviour of the channel with single packets.

use proptest::prelude::*;

use super::*;

fn g() -> WifiSpec {
    WifiSpec::new(Standard::G)
}

/// SIFS and acknowledgement, DIFS, slot of 802.11g, and a full packet at 54 Mbit/s.
const G_REPLY: Duration = Duration::from_micros(10 + 34);
const G_DIFS: Duration = Duration::from_micros(28);
const G_SLOT: Duration = Duration::from_micros(9);
const G_AIR: Duration = Duration::from_micros(254);

#[test]
fn an_idle_channel_is_used_at_once() {
    let mut queues = Queues::new(1, 1);
    let mut dcf = Dcf::new(&g(), 1, 1).unwrap();
    let mut latency = Duration::ZERO;
    for k in 0..1000u64 {
        let arrival = Time::from_nanos(k * 10_000_000 + k * 137);
        dcf.advance(arrival, &mut queues);
        queues.push(0, 0, arrival, IP_BYTES);
        let end = dcf.next_event(&queues).unwrap() + G_AIR;
        dcf.advance(end, &mut queues);
        let got = queues.delivered.pop().unwrap();
        // The channel has been idle for DIFS long since: only a slot boundary
        // stands between arrival and transmission.
        let took = got.at.since(arrival);
        assert!(took > G_AIR && took <= G_AIR + G_SLOT, "{took:?}");
        latency += took;
    }
    let mean = latency.as_secs_f64() / 1000.0;
    assert!(
        (mean - (G_AIR + G_SLOT / 2).as_secs_f64()).abs() < 1e-6,
        "{mean}"
    );
    assert_eq!(dcf.stats().busy, (G_AIR + G_REPLY) * 1000);
}

#[test]
fn a_busy_channel_is_used_after_a_uniform_backoff() {
    let mut starts = [0u32; 16];
    for seed in 0..3200 {
        let mut queues = Queues::new(2, 1);
        let mut dcf = Dcf::new(&g(), 2, seed).unwrap();
        queues.push(0, 0, Time::from_nanos(1), IP_BYTES);
        dcf.advance(time(100e-6), &mut queues);
        // The other one is on the air.
        queues.push(1, 0, time(100e-6), IP_BYTES);
        dcf.advance(time(1.0), &mut queues);
        let [first, second] = queues.delivered[..] else {
            panic!()
        };
        let idle = second.at.since(first.at) - G_REPLY - G_DIFS - G_AIR;
        assert_eq!(idle.as_nanos() % G_SLOT.as_nanos(), 0);
        starts[(idle.as_nanos() / G_SLOT.as_nanos()) as usize] += 1;
    }
    // 200 each in the mean, with a standard deviation of 13.7.
    assert!(starts.iter().all(|n| (140..260).contains(n)), "{starts:?}");
}

#[test]
fn packets_are_given_up_at_the_retry_limit() {
    let (stats, queues) = saturated(&g(), &[None], 1.0, 10.0);
    let only = &stats.stations[0];
    assert_eq!((only.delivered_packets, queues.delivered.len()), (0, 0));
    assert_eq!(only.dropped_packets, only.attempts / 7);
    assert_eq!(only.dropped_packets, queues.dropped);
    // Windows of 15, 31, ... 1023: 1012.5 slots in the mean for seven tries.
    let cycle = 7.0 * (G_AIR + G_REPLY + G_DIFS).as_secs_f64() + 1012.5 * G_SLOT.as_secs_f64();
    let cycles = only.dropped_packets as f64 * cycle;
    assert!((cycles - 10.0).abs() < 0.3, "{cycles}");

    let (stats, _) = saturated(
        &WifiSpec {
            retry_limit: 3,
            ..g()
        },
        &[None],
        0.5,
        20.0,
    );
    let StationStats {
        delivered_packets: got,
        dropped_packets: lost,
        ..
    } = stats.stations[0];
    let share = lost as f64 / (got + lost) as f64;
    assert!((share - 0.125).abs() < 0.01, "{share}");
}

#[test]
fn an_aggregate_repeats_only_what_was_garbled() {
    // Frames of 802.11n at 65 Mbit/s have 28 packets. Those of 802.11ac have 64,
    // all that a BlockAck covers: until a garbled one has come through, the next
    // frames are as much shorter as packets behind it were received already.
    for (standard, expected) in [(Standard::N, 0.88..0.905), (Standard::Ac, 0.81..0.86)] {
        let spec = WifiSpec::new(standard);
        let (clean, _) = saturated(&spec, &[None], 0.0, 5.0);
        let (lossy, queues) = saturated(&spec, &[None], 0.1, 5.0);
        let efficiency = total_mbps(&lossy, 5.0) / total_mbps(&clean, 5.0);
        assert!(expected.contains(&efficiency), "{standard}: {efficiency}");
        let sent = &lossy.stations[0];
        assert_eq!(sent.delivered_packets, queues.delivered.len() as u64);
        assert!(
            queues
                .delivered
                .windows(2)
                .all(|w| w[1].number == w[0].number + 1)
        );
        let garbled = sent.garbled_packets as f64;
        let share = garbled / (garbled + sent.delivered_packets as f64);
        assert!((share - 0.1).abs() < 0.01, "{share}");
        assert_eq!(sent.dropped_packets, 0, "0.1^7 for each");
    }
}

#[test]
fn an_access_point_serves_its_receivers_in_turn() {
    let mut queues = Queues::new(1, 3);
    for (receiver, garbled) in [(0, 0.0), (1, 0.05), (2, 0.0)] {
        queues.saturate(0, receiver, IP_BYTES);
        queues.channel(
            0,
            receiver,
            garbled,
            Some(if receiver == 2 { 6.5 } else { 65.0 }),
        );
    }
    let mut dcf = Dcf::new(&WifiSpec::new(Standard::N), 1, 5).unwrap();
    dcf.advance(time(10.0), &mut queues);
    let of = |r| queues.delivered.iter().filter(move |d| d.receiver == r);
    let [a, b, c] = [0, 1, 2].map(|r| of(r).count() as f64);
    // Turns are frames: equally many for all; less comes through at the second,
    // and less fits into one of the third, which goes on for the longest time.
    assert!((b / a - 0.95).abs() < 0.02, "{a} {b} {c}");
    assert!((c / a - 2.0 / 28.0).abs() < 0.01, "{a} {b} {c}");
    for r in 0..3 {
        let numbers: Vec<u64> = of(r).map(|d| d.number).collect();
        assert!(numbers.is_sorted());
    }
}

#[test]
fn forgotten_packets_are_not_settled() {
    let mut queues = Queues::new(1, 3);
    let mut dcf = Dcf::new(&g(), 1, 5).unwrap();
    queues.push(0, 0, Time::from_nanos(5), IP_BYTES);
    dcf.advance(time(100e-6), &mut queues);
    assert_eq!(dcf.stats().stations[0].attempts, 1);
    dcf.forget(0, 0);
    let mut empty = Queues::new(1, 3);
    dcf.advance(time(1.0), &mut empty);
    assert!(empty.delivered.is_empty());
    assert_eq!(dcf.next_event(&empty), None);
    assert_eq!(dcf.stats().stations[0].delivered_packets, 0);
    // And the channel works on.
    empty.push(0, 0, time(1.0), IP_BYTES);
    dcf.advance(time(2.0), &mut empty);
    assert_eq!(empty.delivered.len(), 1);
}

#[test]
fn the_seed_decides() {
    let run = |seed| {
        let mut queues = Queues::new(5, 1);
        (0..5).for_each(|s| queues.saturate(s, 0, IP_BYTES));
        let mut dcf = Dcf::new(&g(), 5, seed).unwrap();
        dcf.advance(time(1.0), &mut queues);
        (dcf.stats(), queues.delivered)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).0, run(2).0);
}

/// Arrivals: station, receiver, gap to the one before (microseconds), bytes.
type Arrivals = Vec<(usize, u32, u64, u32)>;

const STATIONS: usize = 4;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![0..60u64, 0..2000u64];
    prop::collection::vec((0..STATIONS, 0..3u32, gap, 20..1500u32), 1..80)
}

fn specs() -> impl Strategy<Value = WifiSpec> {
    let standard = prop::sample::select(vec![Standard::B, Standard::G, Standard::N, Standard::Ac]);
    (standard, 1..8u32, 0..5u32).prop_map(|(standard, retry_limit, cw)| WifiSpec {
        retry_limit,
        cw_min: Some((1 << cw) - 1),
        ..WifiSpec::new(standard)
    })
}

/// Feeds `arrivals`, telling the channel the time at each of them and at `ticks`.
fn feed(spec: &WifiSpec, arrivals: &Arrivals, garbled: f64, ticks: &[Time]) -> (Dcf, Queues) {
    let mut queues = Queues::new(STATIONS, 1);
    let mut dcf = Dcf::new(spec, STATIONS, 2).unwrap();
    for s in 0..STATIONS {
        (0..3).for_each(|r| queues.channel(s, r, garbled, None));
    }
    let (mut now, mut tick) = (0, 0);
    for &(s, r, gap, bytes) in arrivals {
        now += gap * 1000;
        let arrival = Time::from_nanos(now);
        while tick < ticks.len() && ticks[tick] < arrival {
            dcf.advance(ticks[tick], &mut queues);
            tick += 1;
        }
        dcf.advance(arrival, &mut queues);
        queues.push(s, r, arrival, bytes);
    }
    (dcf, queues)
}

proptest! {
    #[test]
    fn nothing_depends_on_when_the_time_is_told(
        spec in specs(),
        arrivals in arrivals(),
        garbled in prop::sample::select(vec![0.0, 0.3]),
        ticks in prop::collection::vec(0..60_000_000u64, 0..200),
    ) {
        let mut ticks: Vec<Time> = ticks.into_iter().map(Time::from_nanos).collect();
        ticks.sort();
        let end = time(20.0);
        let (mut a, mut at_arrivals) = feed(&spec, &arrivals, garbled, &[]);
        let (mut b, mut at_ticks) = feed(&spec, &arrivals, garbled, &ticks);
        let (mut c, mut at_events) = feed(&spec, &arrivals, garbled, &[]);
        a.advance(end, &mut at_arrivals);
        b.advance(end, &mut at_ticks);
        while let Some(next) = c.next_event(&at_events) {
            prop_assert!(next <= end);
            c.advance(next, &mut at_events);
        }
        for (dcf, queues) in [(&b, &at_ticks), (&c, &at_events)] {
            prop_assert_eq!(&a.stats(), &dcf.stats());
            prop_assert_eq!(&at_arrivals.delivered, &queues.delivered);
        }
    }

    #[test]
    fn packets_may_be_queued_before_the_time_is_told(
        spec in specs(),
        mut arrivals in arrivals(),
    ) {
        // With one receiver a station: otherwise turns depend on who is there.
        arrivals.iter_mut().for_each(|a| a.1 = 0);
        let (mut a, mut in_turn) = feed(&spec, &arrivals, 0.3, &[]);
        a.advance(time(20.0), &mut in_turn);
        let mut b = Dcf::new(&spec, STATIONS, 2).unwrap();
        let mut at_once = Queues::new(STATIONS, 1);
        let mut now = 0;
        for &(s, r, gap, bytes) in &arrivals {
            now += gap * 1000;
            at_once.channel(s, r, 0.3, None);
            at_once.push(s, r, Time::from_nanos(now), bytes);
        }
        b.advance(time(20.0), &mut at_once);
        prop_assert_eq!(a.stats(), b.stats());
        prop_assert_eq!(in_turn.delivered, at_once.delivered);
    }

    #[test]
    fn packets_are_received_given_up_or_waiting(
        spec in specs(),
        arrivals in arrivals(),
        garbled in 0.0..1.0f64,
        until in 0..200u64,
    ) {
        let (mut dcf, mut queues) = feed(&spec, &arrivals, garbled, &[]);
        dcf.advance(Time::from_nanos(until * 1_000_000), &mut queues);
        let waiting: usize = (0..STATIONS).map(|s| queues.backlog(s)).sum();
        prop_assert_eq!(queues.delivered.len() + queues.dropped as usize + waiting, arrivals.len());
        let stats = dcf.stats();
        let sum = |f: fn(&StationStats) -> u64| stats.stations.iter().map(f).sum::<u64>();
        prop_assert_eq!(sum(|s| s.delivered_packets), queues.delivered.len() as u64);
        prop_assert_eq!(sum(|s| s.dropped_packets), queues.dropped);
        let bytes: u64 = queues.delivered.iter().map(|d| u64::from(d.bytes)).sum();
        prop_assert_eq!(sum(|s| s.delivered_bytes), bytes);
        prop_assert!(queues.delivered.is_sorted_by_key(|d| d.at));
        for s in 0..STATIONS {
            for r in 0..3 {
                let of = queues.delivered.iter().filter(|d| (d.station, d.receiver) == (s, r));
                prop_assert!(of.map(|d| d.number).collect::<Vec<_>>().is_sorted_by(|a, b| a < b));
            }
        }
        let on_air = |s: &StationStats| -> Duration {
            s.receivers.iter().map(|r| r.airtime + r.collided_airtime).sum()
        };
        // A frame counts for its receiver when it has ended.
        prop_assert!(stats.stations.iter().all(|s| on_air(s) <= s.airtime));
        dcf.advance(time(60.0), &mut queues);
        prop_assert!(dcf.stats().stations.iter().all(|s| on_air(s) == s.airtime));
    }
}
