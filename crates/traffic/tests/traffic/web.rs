//! Web pages: their times, and what happens where none comes.

use std::time::Duration;

use braid_traffic::{Kind, TrafficSpec, Transport, Web};

use super::Test;
use super::middle::silent_server;
use super::pair::{client, run, spec};

pub(crate) const TESTS: &[Test] = &[
    (
        "web::pages_come_one_after_another",
        pages_come_one_after_another,
    ),
    ("web::nothing_arrives", nothing_arrives),
];

fn web(objects: u32) -> TrafficSpec {
    let ms = Duration::from_millis;
    let mut s = spec(Kind::Web(Web {
        document_bytes: 20_000,
        objects,
        object_bytes: 4_000,
        pause: ms(50),
    }));
    s.duration = ms(1500);
    s
}

fn pages_come_one_after_another() {
    for (transport, objects) in [
        (Transport::Tcp, 40),
        (Transport::Mptcp, 40),
        (Transport::Tcp, 0),
    ] {
        let mut s = web(objects);
        s.transport = transport;
        let (client, server) = run(&s);
        let w = client.web.unwrap();
        // Each takes its pause, and some time.
        assert!((2..=30).contains(&w.pages), "{w:#?}");
        let (first, page) = (w.first_byte_ms.unwrap(), w.page_ms.unwrap());
        assert!(first.mean <= page.mean && first.max <= page.max, "{w:#?}");
        assert!(w.bytes >= w.pages * 20_000 && w.bytes <= client.bytes_received);
        assert!(server.bytes_sent >= client.bytes_received);
        assert!(client.intact && server.web.is_none());
    }
}

fn nothing_arrives() {
    let (address, job) = silent_server();
    let (report, status) = client(&web(3), address).end();
    assert_eq!(status, 1);
    assert!(report.errors[0].contains("no page arrived"), "{report:?}");
    let w = report.web.unwrap();
    assert_eq!((w.pages, w.page_ms), (0, None));
    job.join().unwrap();
}
