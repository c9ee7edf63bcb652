//! The emulator between real network stacks, in namespaces of its own.
//! Skipped, saying why, where namespaces or TUN devices are not to be had.

mod support;

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use braid_core::Rate;
use braid_radio::emulator::api::{CapacityQuery, Carrier, Side};
use braid_radio::emulator::{
    EmulatorConfig, MediumConfig, StationConfig, StationLinkConfig, monotonic_ns,
};
use braid_radio::model::wifi::{Standard, WifiSpec};
use braid_radio::model::{
    DelaySpec, InFlight, LinkChange, LinkSpec, LossSpec, QueueSpec, RateSpec,
};
use support::{Kind, Lab, device_address, lab, lab_with, proxy_address};

fn shaped(mbps: f64, ms: u64, loss: LossSpec) -> LinkSpec {
    LinkSpec {
        rate: RateSpec::Constant(Rate::from_mbps(mbps)),
        delay: DelaySpec::Constant(Duration::from_millis(ms)),
        loss,
        queue: QueueSpec::Time(Duration::from_millis(50)),
        ..LinkSpec::default()
    }
}

/// Bytes that differ everywhere, so that none can stand in for another.
fn pattern(bytes: usize) -> Vec<u8> {
    let mut x = 0x9e37_79b9_7f4a_7c15_u64;
    let mut v = Vec::with_capacity(bytes + 8);
    while v.len() < bytes {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        v.extend(x.to_le_bytes());
    }
    v.truncate(bytes);
    v
}

/// Sends `data` from the proxy to the device over TCP; returns what arrived.
fn transfer(lab: &Lab, data: &[u8], v6: bool) -> Vec<u8> {
    let listener = lab.device.listen(device_address(v6));
    let to = listener.local_addr().unwrap();
    std::thread::scope(|s| {
        s.spawn(move || {
            let mut c = lab.proxy.connect(proxy_address(v6), to);
            c.write_all(data).unwrap();
            c.shutdown(Shutdown::Write).unwrap();
            let _ = c.read(&mut [0]);
        });
        let (mut c, _) = listener.accept().unwrap();
        c.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut got = Vec::new();
        c.read_to_end(&mut got).unwrap();
        got
    })
}

/// Waits for something that takes the other processes' time, but not for ever.
fn eventually(what: &str, mut f: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !f() {
        assert!(Instant::now() < end, "not within 20 s: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn carries_every_byte(kind: Kind, verify: bool) {
    let loss = LossSpec::Bernoulli(3e-3);
    let Some(lab) = lab(
        kind,
        verify,
        shaped(400.0, 2, loss),
        shaped(100.0, 2, LossSpec::None),
    ) else {
        return;
    };
    let data = pattern(12_000_000);
    for v6 in [false, true] {
        let got = transfer(&lab, &data, v6);
        assert_eq!(got.len(), data.len());
        assert!(got == data, "a byte differs");
    }
    let s = lab.stats();
    let down = &s.links["a.down"];
    assert!(down.model.drops.loss > 0, "{down:?}");
    assert!(down.model.out_packets > 2 * 12_000_000 / 1460, "{down:?}");
    assert_eq!(
        down.io.drop_refused + down.io.no_buffer + down.io.drop_down,
        0,
        "{down:?}"
    );
    assert!(
        down.io.reads < down.model.in_packets / 3,
        "no super-packets came: {down:?}"
    );
    let m = down.model;
    let known = m.queue_packets + m.in_flight_packets + m.out_packets + m.drops.total();
    assert_eq!(m.in_packets, known, "{m:?}");
    assert_eq!(m.out_packets, down.io.written_packets + down.io.drop_full);
    lab.device.assert_no_checksum_errors();
}

#[test]
fn tun_carries_every_byte_under_loss() {
    carries_every_byte(Kind::Tun, false);
}

#[test]
fn tun_carries_every_byte_with_checksums_checked_by_the_receiver() {
    carries_every_byte(Kind::Tun, true);
}

#[test]
fn veth_carries_every_byte_under_loss() {
    carries_every_byte(Kind::Veth, false);
}

#[test]
fn udp_super_packets_arrive_as_they_were_sent() {
    let Some(lab) = lab(
        Kind::Tun,
        true,
        shaped(50.0, 1, LossSpec::None),
        LinkSpec::default(),
    ) else {
        return;
    };
    let data = pattern(40_000);
    let from = lab.proxy.udp(proxy_address(false));
    let to = lab.device.udp(device_address(false));
    support::udp_segments(&from, 1111);
    from.send_to(&data, to.local_addr().unwrap()).unwrap();
    let mut got: Vec<u8> = Vec::new();
    let mut sizes = Vec::new();
    while got.len() < data.len() {
        let mut b = [0; 2000];
        let n = to.recv(&mut b).unwrap();
        got.extend(&b[..n]);
        sizes.push(n);
    }
    assert!(got == data, "a byte differs");
    assert_eq!(sizes.pop(), Some(40_000 % 1111));
    assert!(sizes.iter().all(|&n| n == 1111), "{sizes:?}");
    assert!(lab.stats().links["a.down"].io.reads < 10);
    lab.device.assert_no_checksum_errors();
}

#[test]
fn outages_changes_and_bad_commands() {
    let held = LinkSpec {
        outage: InFlight::Held,
        ..shaped(10.0, 1, LossSpec::None)
    };
    let Some(lab) = lab(Kind::Tun, false, held, shaped(10.0, 1, LossSpec::None)) else {
        return;
    };
    let (p, d) = (
        lab.proxy.udp(proxy_address(false)),
        lab.device.udp(device_address(false)),
    );
    let (to_d, to_p) = (d.local_addr().unwrap(), p.local_addr().unwrap());

    // Held: it arrives when the link is up again.
    lab.change("a.down", LinkChange::Down).unwrap();
    p.send_to(b"held", to_d).unwrap();
    eventually("the packet is queued", || {
        lab.stats().links["a.down"].model.queue_packets == 1
    });
    assert!(!lab.stats().links["a.down"].model.up);
    lab.change("a.down", LinkChange::Up).unwrap();
    let mut b = [0; 100];
    let n = d.recv(&mut b).unwrap();
    assert_eq!(&b[..n], b"held");

    // Lost: it never does.
    lab.change("a.up", LinkChange::Down).unwrap();
    d.send_to(b"lost", to_p).unwrap();
    eventually("the packet is lost", || {
        lab.stats().links["a.up"].model.drops.link_down == 1
    });
    lab.change("a.up", LinkChange::Up).unwrap();
    d.send_to(b"comes", to_p).unwrap();
    let n = p.recv(&mut b).unwrap();
    assert_eq!(&b[..n], b"comes");

    let e = lab.change("a.sideways", LinkChange::Up).unwrap_err();
    let e = format!("{e:#}");
    assert!(
        e.contains("a.sideways") && e.contains("a.down, a.up"),
        "{e}"
    );
}

#[test]
fn the_epoch_restarts_the_models_and_changes_come_at_their_time() {
    let steps = LinkSpec {
        rate: RateSpec::Steps {
            points: vec![
                (Duration::ZERO, Rate::from_mbps(8.0)),
                (Duration::from_secs(1), Rate::from_mbps(80.0)),
            ],
            period: None,
        },
        ..LinkSpec::default()
    };
    let Some(lab) = lab(Kind::Tun, false, steps, LinkSpec::default()) else {
        return;
    };
    let (p, d) = (
        lab.proxy.udp(proxy_address(false)),
        lab.device.udp(device_address(false)),
    );
    let send = || p.send_to(b"x", d.local_addr().unwrap()).unwrap();
    send();
    d.recv(&mut [0; 9]).unwrap();
    assert!(lab.stats().links["a.down"].model.out_packets >= 1);
    let ahead = monotonic_ns() + 50_000_000;
    assert_eq!(lab.epoch(Some(ahead)), ahead);
    eventually("the epoch begins", || lab.stats().epoch_ns == ahead);
    assert_eq!(lab.stats().links["a.down"].model.out_packets, 0);
    send();
    d.recv(&mut [0; 9]).unwrap();

    let capacity = |link: &str, from_s: u64, to_s: u64| {
        lab.capacity(CapacityQuery {
            link: link.to_owned(),
            from_ns: from_s * 1_000_000_000,
            to_ns: to_s * 1_000_000_000,
        })
    };
    assert_eq!(capacity("a.down", 0, 3), Some(168e6));
    assert_eq!(capacity("a.up", 0, 3), None);

    let at = lab.stats().now_ns + 30_000_000;
    lab.change_at("a.down", LinkChange::Down, at).unwrap();
    eventually("the link goes down", || {
        !lab.stats().links["a.down"].model.up
    });
    assert_eq!(capacity("a.down", at / 1_000_000_000 + 1, 100), Some(0.0));
    assert!(lab.stats().now_ns >= at);
}

#[test]
fn interfaces_that_go_down_or_away_do_no_harm() {
    let Some(mut lab) = lab(Kind::Tun, false, LinkSpec::default(), LinkSpec::default()) else {
        return;
    };
    let p = lab.proxy.udp(proxy_address(false));
    let to = std::net::SocketAddr::new(device_address(false), 9);
    lab.carrier(Carrier {
        side: Side::Device,
        on: false,
    });
    eventually("the carrier goes", || !lab.device.has_carrier());
    lab.carrier(Carrier {
        side: Side::Device,
        on: true,
    });
    eventually("the carrier comes", || lab.device.has_carrier());

    lab.device.set_up(false);
    eventually("drops are counted", || {
        // The sender's own error when the far side answers is of no matter.
        let _ = p.send_to(b"x", to);
        lab.stats().links["a.down"].io.drop_down > 0
    });
    lab.device.remove();
    let before = lab.stats().process.loops;
    std::thread::sleep(Duration::from_millis(300));
    let turns = lab.stats().process.loops - before;
    assert!(turns < 3000, "the loop spins: {turns} turns in 0.3 s");
    let _ = p.send_to(b"x", to);
    lab.stop();
}

#[test]
fn a_wifi_channel_carries_both_directions() {
    let station = |link: &str| StationConfig {
        name: link.to_owned(),
        links: vec![StationLinkConfig {
            link: link.to_owned(),
            phy_mbps: None,
        }],
    };
    let edit = |c: &mut EmulatorConfig| {
        c.media = vec![MediumConfig {
            name: "cell".to_owned(),
            wifi: WifiSpec::new(Standard::N),
            stations: vec![station("a.down"), station("a.up")],
        }];
    };
    let link = LinkSpec {
        delay: DelaySpec::Constant(Duration::from_millis(1)),
        ..LinkSpec::default()
    };
    let Some(lab) = lab_with(Kind::Tun, link.clone(), link, edit) else {
        return;
    };
    let data = pattern(2_000_000);
    assert!(transfer(&lab, &data, false) == data, "a byte differs");
    let s = lab.stats();
    let m = &s.media["cell"];
    assert!(m.stations[0].delivered_packets > 2_000_000 / 1460, "{m:?}");
    assert!(
        m.stations[1].delivered_packets > 0 && m.busy > Duration::ZERO,
        "{m:?}"
    );
}

#[test]
fn a_capture_holds_every_delivered_packet() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("run.pcapng");
    let edit = |c: &mut EmulatorConfig| c.pcap = Some(file.clone());
    let down = shaped(200.0, 1, LossSpec::Bernoulli(0.01));
    let Some(mut lab) = lab_with(Kind::Tun, down, LinkSpec::default(), edit) else {
        return;
    };
    let data = pattern(1_000_000);
    assert!(transfer(&lab, &data, true) == data, "a byte differs");
    let (p, d) = (
        lab.proxy.udp(proxy_address(false)),
        lab.device.udp(device_address(false)),
    );
    p.send_to(&[7; 100], d.local_addr().unwrap()).unwrap();
    eventually("nothing is under way", || {
        let s = lab.stats();
        s.links
            .values()
            .all(|l| l.model.in_flight_packets + l.model.queue_packets == 0)
    });
    std::thread::sleep(Duration::from_millis(20));
    let s = lab.stats();
    lab.stop();

    // pcapng: blocks of type, length, body, length.
    let bytes = std::fs::read(&file).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut interfaces, mut packets) = (0, 0, [0u64; 2]);
    while at < bytes.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length);
        match word(at) {
            0x0a0d_0d0a => assert_eq!(at, 0),
            1 => interfaces += 1,
            6 => {
                packets[word(at + 8) as usize] += 1;
                let (kept, whole) = (word(at + 20), word(at + 24));
                assert!(kept <= whole && whole <= 1500, "{kept} of {whole}");
                assert!(matches!(bytes[at + 28] >> 4, 4 | 6));
            }
            other => panic!("block of type {other}"),
        }
        at += length;
    }
    assert_eq!(interfaces, 2);
    assert!(packets[0] > 1_000_000 / 1460);
    for (name, n) in ["a.down", "a.up"].into_iter().zip(packets) {
        // A multicast report of a host's may have come after the counters.
        let counted = s.links[name].model.out_packets;
        assert!(
            (counted..=counted + 2).contains(&n),
            "{name}: {n} of {counted}"
        );
    }
}
