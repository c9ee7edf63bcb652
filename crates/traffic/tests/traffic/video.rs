//! Video sessions: playing through, climbing the ladder, stalling.

use std::thread;
use std::time::Duration;

use braid_core::Rate;
use braid_traffic::{Kind, TrafficSpec, Transport, Video};

use super::Test;
use super::middle::{self, silent_server};
use super::pair::{client, run, server, spec};

pub(crate) const TESTS: &[Test] = &[
    ("video::plays_through", plays_through),
    ("video::climbs_the_ladder", climbs_the_ladder),
    (
        "video::stalls_when_the_path_does",
        stalls_when_the_path_does,
    ),
    ("video::nothing_arrives", nothing_arrives),
];

fn video(mbps: &[f64]) -> TrafficSpec {
    let ms = Duration::from_millis;
    let mut s = spec(Kind::Video(Video {
        bitrates: mbps.iter().map(|r| Rate::from_mbps(*r)).collect(),
        segment: ms(100),
        buffer: ms(500),
        startup: ms(200),
    }));
    s.duration = ms(1500);
    s
}

fn plays_through() {
    for transport in [Transport::Tcp, Transport::Mptcp] {
        let mut s = video(&[4.0]);
        s.transport = transport;
        let (client, server) = run(&s);
        let v = client.video.unwrap();
        assert!(
            v.startup_s.is_some() && v.stalls == 0 && v.stalled_s == 0.0,
            "{v:#?}"
        );
        assert_eq!((v.mean_bitrate_mbps, v.switches), (4.0, 0));
        // 1.5 s played and at most a full buffer.
        assert!((10..=20).contains(&v.segments.len()), "{v:#?}");
        assert!(
            v.segments
                .iter()
                .all(|s| s.bytes == 50_000 && s.buffer_s <= 0.5)
        );
        assert!(server.bytes_sent >= client.bytes_received);
        assert!(server.gap_ms.is_none() && client.gap_ms.is_some());
    }
}

fn climbs_the_ladder() {
    let (client, _) = run(&video(&[1.0, 2.0, 4.0, 8.0]));
    let v = client.video.unwrap();
    let rates: Vec<f64> = v.segments.iter().map(|s| s.bitrate_mbps).collect();
    assert_eq!(rates[0], 1.0);
    assert!(rates.contains(&8.0) && v.switches > 0, "{rates:?}");
    assert!(v.mean_bitrate_mbps > 1.0 && v.mean_bitrate_mbps < 8.0);
}

fn stalls_when_the_path_does() {
    let s = video(&[4.0]);
    let (server, address) = server(&s);
    let mut paused = false;
    let (address, job) = middle::tcp(address, move |offset, _| {
        if offset > 300_000 && !paused {
            paused = true;
            thread::sleep(Duration::from_millis(800));
        }
    });
    let (report, status) = client(&s, address).end();
    let v = report.video.unwrap();
    assert_eq!((status, v.stalls), (0, 1), "{v:#?}");
    // The pause less a full buffer, and the time until it plays again.
    assert!(v.stalled_s > 0.25 && v.stalled_s < 1.0, "{v:#?}");
    assert!(report.gap_ms.unwrap() > 700.0);
    drop(server);
    job.join().unwrap();
}

fn nothing_arrives() {
    let (address, job) = silent_server();
    let (report, status) = client(&video(&[4.0]), address).end();
    assert_eq!(status, 1);
    assert!(
        report.errors[0].contains("no segment arrived"),
        "{report:?}"
    );
    let v = report.video.unwrap();
    assert_eq!((v.startup_s, v.stalls), (None, 0));
    job.join().unwrap();
}
