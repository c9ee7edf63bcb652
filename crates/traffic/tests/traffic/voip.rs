//! Calls: what each end hears.

use std::time::Duration;

use braid_traffic::{Direction, Kind, TrafficReport, TrafficSpec, Transport, VoiceCodec, Voip};

use super::Test;
use super::middle;
use super::pair::{client, run, server, spec};

pub(crate) const TESTS: &[Test] = &[
    ("voip::both_ends_hear", both_ends_hear),
    ("voip::what_is_lost_is_heard", what_is_lost_is_heard),
    (
        "voip::what_comes_late_is_not_played",
        what_comes_late_is_not_played,
    ),
];

/// 50 packets a second, for as long.
fn call(seconds: u64, codec: VoiceCodec) -> TrafficSpec {
    let jitter_buffer_ms = 100;
    let mut s = spec(Kind::Voip(Voip {
        codec,
        jitter_buffer_ms,
    }));
    s.transport = Transport::Udp;
    s.direction = Direction::Both;
    s.warmup = Duration::ZERO;
    s.duration = Duration::from_secs(seconds);
    s
}

fn both_ends_hear() {
    for codec in VoiceCodec::ALL {
        for direction in [Direction::Down, Direction::Up, Direction::Both] {
            let s = TrafficSpec {
                direction,
                ..call(1, codec)
            };
            let (client, server) = run(&s);
            let hears = [direction != Direction::Up, direction != Direction::Down];
            for (end, hears) in [client, server].into_iter().zip(hears) {
                assert_eq!(end.voice.is_some(), hears, "{end:#?}");
                let Some(v) = end.voice else { continue };
                assert_eq!(v.unplayed, 0, "{end:#?}");
                assert_eq!(end.messages.unwrap().received, 50);
                let best = if codec == VoiceCodec::G729 { 3.9 } else { 4.3 };
                assert!(v.mos > best && v.mouth_to_ear_ms > 120.0, "{v:#?}");
            }
        }
    }
}

fn through(edit: impl FnMut(usize, Vec<u8>) -> Vec<Vec<u8>> + Send + 'static) -> TrafficReport {
    let s = TrafficSpec {
        direction: Direction::Down,
        ..call(2, VoiceCodec::G711)
    };
    let (_server, address) = server(&s);
    let (address, _middle) = middle::udp(address, 0, edit);
    let (report, status) = client(&s, address).end();
    assert_eq!(status, 0, "{report:#?}");
    report
}

fn what_is_lost_is_heard() {
    let report = through(|number, datagram| match number % 10 {
        3 => Vec::new(),
        _ => vec![datagram],
    });
    let v = report.voice.unwrap();
    assert_eq!((v.unplayed, v.late), (10, 0), "{report:#?}");
    assert!(v.mos < 3.0, "a tenth is missing: {v:#?}");
}

fn what_comes_late_is_not_played() {
    // Each tenth waits for the tenth packet after it.
    let mut held = None;
    let report = through(move |number, datagram| match number % 10 {
        3 => held.replace(datagram).into_iter().collect(),
        _ => vec![datagram],
    });
    let (v, m) = (report.voice.unwrap(), report.messages.unwrap());
    assert_eq!((m.lost, m.reordered), (1, 9), "{report:#?}");
    assert_eq!((v.unplayed, v.late), (10, 9), "{report:#?}");
}
