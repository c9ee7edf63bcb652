//! A download over an access point, against others who send (Pasca et al.,
//! "A framework for integrating MPTCP over LWA", WiNTECH 2018, section 5.2):
//! 802.11g, 80 ms behind it, laptops that send 1.5 Mbit/s of UDP each.
//!
//! Stations: 0 the access point, 1 the device that downloads, then the laptops.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::*;

const SEGMENT: u32 = 1500;
/// IP and TCP headers with timestamps and a data acknowledgement of MPTCP.
const ACK: u32 = 20 + 20 + 12 + 12;
const MSS: f64 = (SEGMENT - 20 - 32 - 24) as f64;
/// iperf's datagrams, 1470 bytes of payload: one each 7.84 ms.
const DATAGRAM: u32 = 1470 + 28;
const GAP: Duration = Duration::from_nanos(1470 * 8_000_000 / 1500);
const BACKHAUL: Duration = Duration::from_millis(80);
const LTE: Duration = Duration::from_millis(15);
/// Twice what the channel carries in the time of the backhaul.
const WINDOW: u32 = 512;

/// Where the device's acknowledgements go.
#[derive(Clone, Copy, PartialEq)]
enum Uplink {
    /// Back over Wi-Fi, as MPTCP subflows do.
    Wifi,
    /// Over LTE, as LWA does.
    Lte,
}

struct Outcome {
    tcp_mbps: f64,
    udp_mbps: f64,
    busy: f64,
    collisions: f64,
    /// Mean time on the way from the device or a laptop to the access point, ms.
    ack_ms: f64,
    udp_ms: f64,
}

/// Arrival from outside.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Arrival {
    Segments(u32),
    Datagram(usize),
}

fn download(uplink: Option<Uplink>, laptops: usize, laptop_mbps: f64, seconds: f64) -> Outcome {
    let stations = 2 + laptops;
    let mut queues = Queues::new(stations, 1);
    let mut dcf = Dcf::new(&WifiSpec::new(Standard::G), stations, 3).unwrap();
    let mut arrivals = BinaryHeap::new();
    if uplink.is_some() {
        (0..WINDOW).for_each(|k| {
            arrivals.push(Reverse((time(1e-5 * f64::from(k)), Arrival::Segments(1))))
        });
    }
    for laptop in 2..stations {
        queues.channel(laptop, 0, 0.0, Some(laptop_mbps));
        arrivals.push(Reverse((
            time(1e-3 * laptop as f64),
            Arrival::Datagram(laptop),
        )));
    }
    let end = time(seconds);
    let (mut segments, mut datagrams, mut acks) = (0u32, 0u32, 0u32);
    let (mut ack_time, mut udp_time) = (Duration::ZERO, Duration::ZERO);
    loop {
        let event = dcf.next_event(&queues).unwrap_or(Time::MAX);
        let arrival = arrivals.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
        let now = event.min(arrival);
        if now > end {
            break;
        }
        dcf.advance(now, &mut queues);
        while arrivals.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            match arrivals.pop() {
                Some(Reverse((_, Arrival::Segments(n)))) => {
                    (0..n).for_each(|_| queues.push(0, 0, now, SEGMENT));
                }
                Some(Reverse((_, Arrival::Datagram(laptop)))) => {
                    queues.push(laptop, 0, now, DATAGRAM);
                    arrivals.push(Reverse((now + GAP, Arrival::Datagram(laptop))));
                }
                None => {}
            }
        }
        for got in std::mem::take(&mut queues.delivered) {
            let took = got.at.since(got.arrival);
            match (got.station, uplink) {
                (0, Some(way)) => {
                    segments += 1;
                    // Every second segment is acknowledged (RFC 9293 3.8.6.3).
                    if segments.is_multiple_of(2) && way == Uplink::Wifi {
                        queues.push(1, 0, got.at, ACK);
                    } else if segments.is_multiple_of(2) {
                        arrivals.push(Reverse((got.at + LTE + BACKHAUL, Arrival::Segments(2))));
                    }
                }
                (1, _) => {
                    (acks, ack_time) = (acks + 1, ack_time + took);
                    arrivals.push(Reverse((got.at + BACKHAUL, Arrival::Segments(2))));
                }
                _ => (datagrams, udp_time) = (datagrams + 1, udp_time + took),
            }
        }
    }
    let stats = dcf.stats();
    let mean_ms = |sum: Duration, n: u32| sum.as_secs_f64() * 1e3 / f64::from(n.max(1));
    Outcome {
        tcp_mbps: f64::from(segments) * MSS * 8.0 / seconds / 1e6,
        udp_mbps: f64::from(datagrams) * 1470.0 * 8.0 / seconds / 1e6,
        busy: stats.busy.as_secs_f64() / seconds,
        collisions: stats.collisions as f64 / stats.rounds.max(1) as f64,
        ack_ms: mean_ms(ack_time, acks),
        udp_ms: mean_ms(udp_time, datagrams),
    }
}

#[test]
fn contention_takes_from_the_download() {
    println!(
        "\n| laptops | at Mbit/s | download, ACKs over | TCP Mbit/s | 32 MB beside LTE, s | UDP Mbit/s | channel busy | collisions | ACK ms | UDP ms |"
    );
    println!("|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|");
    let show = |n: usize, rate: f64, uplink: Option<Uplink>| {
        let o = download(uplink, n, rate, 10.0);
        let name = match uplink {
            None => "none",
            Some(Uplink::Wifi) => "Wi-Fi",
            Some(Uplink::Lte) => "LTE",
        };
        // 17 Mbit/s of IP on LTE.
        let lte = 17.0 * MSS / f64::from(SEGMENT);
        println!(
            "| {n} | {rate} | {name} | {:.1} | {:.1} | {:.2} | {:.0} % | {:.1} % | {:.2} | {:.2} |",
            o.tcp_mbps,
            32.0 * 8.388608 / (o.tcp_mbps + lte),
            o.udp_mbps,
            o.busy * 100.0,
            o.collisions * 100.0,
            o.ack_ms,
            o.udp_ms,
        );
        o
    };
    for rate in [54.0, 12.0] {
        for n in [0, 2, 4] {
            let idle = show(n, rate, None);
            let wifi = show(n, rate, Some(Uplink::Wifi));
            let lte = show(n, rate, Some(Uplink::Lte));
            // Without a download: what the laptops' frames take, as given by their length.
            let frame = if rate == 54.0 {
                254e-6 + 44e-6
            } else {
                1054e-6 + 48e-6
            };
            let expected = n as f64 * frame / GAP.as_secs_f64();
            assert!(
                (idle.busy - expected).abs() < 0.02,
                "{n}: {}, {expected}",
                idle.busy
            );
            // The device's acknowledgements are one contender more.
            assert!(lte.tcp_mbps > 1.05 * wifi.tcp_mbps);
            assert!(lte.collisions < wifi.collisions);
            if rate == 54.0 {
                assert!(wifi.udp_mbps >= 0.99 * 1.5 * n as f64, "{}", wifi.udp_mbps);
            }
        }
    }
    let tcp = |n, rate| download(Some(Uplink::Wifi), n, rate, 10.0).tcp_mbps;
    let [none, two, four] = [0, 2, 4].map(|n| tcp(n, 54.0));
    assert!((20.0..26.0).contains(&none), "{none}");
    // A laptop's 128 datagrams a second take the place of about as many segments.
    assert!(
        (0.8..1.2).contains(&((none - two) / (none - four) * 2.0)),
        "{none} {two} {four}"
    );
    assert!((4.0..7.0).contains(&(none - four)), "{none} {four}");
    assert!(tcp(4, 12.0) < 0.5 * four, "slow laptops take the air");
}
