//! A peer that does what it may not, over a real connection of QUIC: it is refused, or
//! what it costs is bounded, and the proxy goes on serving others.

use bytes::{Bytes, BytesMut};
use noq_proto::coding::Encodable;
use noq_proto::{ConnectionError, Dir, FourTuple, PathId, PathStatus, VarInt};

use super::attacker::Attacker;
use super::stage::{PORT, Stage, hostile, proxy};
use crate::admission::{MAX_HALF_OPEN, RETRY_ABOVE};
use crate::lane::PROTOCOL_ERROR;
use crate::{Event, Lane};

const MB: usize = 1 << 20;

/// A datagram of the lane that only holds one frame: its kind, numbers and data.
fn frame(kind: u8, numbers: &[u64], data: &[u8]) -> Bytes {
    let mut out = BytesMut::from(&[0x50, kind][..]);
    for (i, n) in numbers.iter().enumerate() {
        match (kind, i) {
            // When an acknowledgement's largest came.
            (5, 2) => out.extend_from_slice(&[0; 4]),
            _ => VarInt::from_u64(*n).expect("62 bits").encode(&mut out),
        }
    }
    out.extend_from_slice(data);
    out.freeze()
}

fn stream(channel: u64, offset: u64, data: &[u8]) -> Bytes {
    frame(1, &[channel, offset, data.len() as u64], data)
}

fn message(number: u64, total: u64, data: &[u8]) -> Bytes {
    frame(3, &[number, total, 0, data.len() as u64], data)
}

/// Sends all from the attacker in DATAGRAMs, as fast as they leave, until it is rejected.
fn send(stage: &mut Stage, key: usize, all: impl Iterator<Item = Bytes>) {
    for (n, data) in all.enumerate() {
        if !stage.attacker.connections.contains_key(&key) {
            return;
        }
        let queue = stage.attacker.connection(key).datagrams().send(data, true);
        if queue.is_err() {
            return;
        }
        if n % 500 == 499 {
            stage.run(50);
        }
    }
    stage.run(1000);
}

#[test]
fn garbage_in_datagrams_ends_the_connection() {
    for garbage in [
        Bytes::new(),
        Bytes::from_static(&[0xff; 100]),
        Bytes::from_static(&[0x50, 9, 9, 9]),
        Bytes::from_static(&[0x51, 0xc0]),
        stream(1, 0, b"abc").slice(..5),
        stream(1, (1 << 62) - 1, b"abc"),
        message(1, 1 << 17, b"abc"),
        message(1, 2, b"abc"),
    ] {
        let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
        send(&mut stage, key, [garbage.clone()].into_iter());
        assert!(stage.refusal(victim).is_some(), "{garbage:?}");
        let closed = stage.attacker.ended.pop();
        let Some(ConnectionError::ApplicationClosed(why)) = closed else {
            panic!("{garbage:?}: {closed:?}");
        };
        assert_eq!(why.error_code, PROTOCOL_ERROR);
        stage.assert_serves();
        assert!(stage.victim(victim).is_none());
    }
}

#[test]
fn datagrams_on_the_stream_lane_are_dropped() {
    let (mut stage, key, victim) = Stage::begun(Lane::Stream);
    let garbage = (0..20_000u32).map(|n| Bytes::from(vec![n as u8; 1000]));
    send(&mut stage, key, garbage);
    assert!(stage.victim(victim).is_some() && stage.refusal(victim).is_none());
    stage.assert_serves();
}

#[test]
fn acknowledgements_of_what_was_never_sent_end_the_connection() {
    // Path, largest, received, delay, more ranges, length of the first.
    for lie in [
        [1, 1 << 40, 0, 0, 0, 0],
        [1, 3, 0, (1 << 62) - 1, 0, 3],
        [77, 0, 0, 0, 0, 0],
        [1, 5, 0, 0, 0, 6],
    ] {
        let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
        let lane = stage.victim(victim).and_then(|c| c.lane());
        lane.expect("it has one")
            .write(0, Bytes::from_static(b"abc"));
        stage.run(100);
        send(&mut stage, key, [frame(5, &lie, &[])].into_iter());
        assert!(stage.refusal(victim).is_some(), "{lie:?}");
        stage.assert_serves();
    }
}

#[test]
fn datagrams_that_come_again_from_anywhere_change_nothing() {
    for lane in [Lane::Stream, Lane::Datagram] {
        let mut stage = Stage::new(lane);
        stage.capturing = true;
        stage.run(1000);
        stage.attacker.connect(stage.now, proxy());
        stage.run(1000);
        stage.assert_serves();
        stage.capturing = false;
        let before = stage.got.clone();
        let captured = stage.captured.clone();
        assert!(captured.len() > 50);
        for n in 0..3 {
            for (k, (peer, data)) in captured.iter().enumerate() {
                let elsewhere = (hostile(n + k as u16 % 50), PORT).into();
                stage.inject(if n == 0 { *peer } else { elsewhere }, data.clone());
            }
            stage.run(500);
            stage.assert_serves();
        }
        assert!(
            before
                .iter()
                .all(|(id, got)| stage.got.get(id) == Some(got))
        );
        assert_eq!(stage.got.len(), before.len() + 3);
        // What the first datagrams began anew comes to nothing; the two go on.
        stage.run(70_000);
        assert_eq!(stage.proxy.handles().len(), 2);
        stage.assert_serves();
    }
}

#[test]
fn paths_are_few_at_a_time_however_many_are_opened() {
    for close in [false, true] {
        let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
        let (mut opened, mut most) = (0, (0, 0));
        for n in 1..=1000 {
            let now = stage.now;
            let c = stage.attacker.connection(key);
            let network = FourTuple::new(proxy(), Some(hostile(n)));
            let path = c.open_path(network, PathStatus::Available, now);
            opened += usize::from(path.is_ok());
            stage.run(20);
            let c = stage.attacker.connection(key);
            if let (true, Ok(id)) = (close, path) {
                let _ = c.close_path(now, id, VarInt::from_u32(0));
            }
            let (paths, slots) = stage.victim(victim).expect("it lasts").footprint();
            most = (most.0.max(paths), most.1.max(slots));
        }
        assert!(opened > 30, "{opened}");
        assert!(!close || opened > 300, "{opened} were opened in turn");
        assert!(most.0 > 1 && most.0 <= 33, "{most:?} of {opened}");
        assert!(most.1 <= 200, "{most:?} of {opened}");
        stage.assert_serves();
    }
}

#[test]
fn a_peer_that_moves_about_leaves_little_behind() {
    let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
    let mut followed = std::collections::BTreeSet::new();
    for n in 0..600u16 {
        stage.attacker.roaming = Some(n);
        let c = stage.attacker.connection(key);
        let queued = c.datagrams().send(message(n.into(), 3, b"abc"), true);
        assert_eq!(queued, Ok(()));
        stage.run(100);
        let c = stage.victim(victim).expect("it lasts");
        followed.extend(c.quic().network_path(PathId::ZERO).map(|p| p.remote()));
        let (paths, slots) = c.footprint();
        assert!(paths <= 33 && slots <= 200, "{paths} {slots} at {n}");
    }
    assert!(followed.len() > 300, "{}", followed.len());
    stage.assert_serves();
}

#[test]
fn connections_that_come_and_go_leave_nothing_behind() {
    let mut stage = Stage::new(Lane::Datagram);
    stage.run(1000);
    for _ in 0..300 {
        let key = stage.attacker.connect(stage.now, proxy());
        stage.run(30);
        let now = stage.now;
        let c = stage.attacker.connection(key);
        assert!(!c.is_handshaking());
        c.close(now, VarInt::from_u32(0), Bytes::new());
        stage.run(1);
    }
    stage.assert_serves();
    stage.run(10_000);
    assert_eq!(stage.proxy.handles().len(), 1);
    let lost = |(_, e): &&(_, Event)| matches!(e, Event::Lost(_));
    assert_eq!(stage.events.iter().filter(lost).count(), 300);
}

/// Whoever forges addresses has no more than a few handshakes, and others get through.
#[test]
fn attempts_from_forged_addresses_are_bounded_and_keep_nobody_out() {
    let mut stage = Stage::new(Lane::Datagram);
    stage.run(1000);
    let mut forger = Attacker::new(9, hostile(0));
    for n in 0..5000 {
        forger.connect(stage.now, proxy());
        for (_, data) in forger.pump(stage.now) {
            stage.inject((hostile(1 + n), PORT).into(), data);
        }
        forger.connections.clear();
        if n % 100 == 0 {
            stage.run(10);
            assert!(stage.proxy.handles().len() <= RETRY_ABOVE + 1);
        }
    }
    stage.run(10);
    assert_eq!(stage.proxy.handles().len(), RETRY_ABOVE + 1);
    let newcomer = stage.attacker.connect(stage.now, proxy());
    stage.run(1000);
    assert!(!stage.attacker.connection(newcomer).is_handshaking());
    stage.assert_serves();
    // The two go on, and nothing is left of the others.
    stage.run(70_000);
    assert_eq!(stage.proxy.handles().len(), 2);
}

/// Whoever proves many addresses and goes no further is refused beyond a bound.
#[test]
fn handshakes_that_are_not_finished_are_bounded() {
    let mut stage = Stage::new(Lane::Datagram);
    stage.run(1000);
    for n in 0..MAX_HALF_OPEN + 200 {
        let key = stage.attacker.connect(stage.now, proxy());
        // The first datagram, and where it has to come again, that one.
        let most = if n < RETRY_ABOVE { 1 } else { 2 };
        stage.attacker.budgets.insert(key, most);
        if n == RETRY_ABOVE - 1 || n % 50 == 49 {
            stage.run(30);
        }
    }
    stage.run(100);
    let handles = stage.proxy.handles().len();
    assert_eq!(handles, MAX_HALF_OPEN + 1);
    let refused = |e: &&ConnectionError| matches!(e, ConnectionError::ConnectionClosed(_));
    assert_eq!(stage.attacker.ended.iter().filter(refused).count(), 200);
    stage.assert_serves();
    stage.run(120_000);
    assert_eq!(stage.proxy.handles().len(), 1);
    stage.assert_serves();
}

#[test]
fn a_peer_that_falls_silent_is_given_up() {
    let (mut stage, _, victim) = Stage::begun(Lane::Datagram);
    stage.attacker.deaf = true;
    for _ in 0..40 {
        if let Some(lane) = stage.victim(victim).and_then(|c| c.lane()) {
            while lane.write(0, Bytes::from(vec![1; MB])) > 0 {}
            while lane.send_message(Bytes::from(vec![1; 60_000]), true) {}
            assert!(lane.cost() < 80 * MB, "{}", lane.cost());
        }
        stage.run(1000);
    }
    let lost = |(h, e): &(_, Event)| *h == victim && matches!(e, Event::Lost(_));
    assert!(stage.events.iter().any(lost));
    assert!(stage.victim(victim).is_none());
    stage.assert_serves();
}

/// Peer that acknowledges to QUIC, and on the lane nothing.
#[test]
fn a_peer_that_never_acknowledges_on_the_lane_is_bounded() {
    let (mut stage, _, victim) = Stage::begun(Lane::Datagram);
    for _ in 0..200 {
        let lane = stage.victim(victim).and_then(|c| c.lane());
        let lane = lane.expect("it lasts");
        while lane.write(0, Bytes::from(vec![1; MB])) > 0 {}
        while lane.send_message(Bytes::from(vec![1; 60_000]), true) {}
        assert!(lane.cost() < 100 * MB, "{}", lane.cost());
        stage.run(50);
    }
    stage.assert_serves();
}

#[test]
fn streams_of_the_lane_that_nobody_reads_end_the_connection_at_the_credit() {
    let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
    let data = [7; 1200];
    let all = (0..80_000u64).map(|n| stream(n % 40, n / 40 * 1200, &data));
    let mut all = all.peekable();
    while all.peek().is_some() && stage.refusal(victim).is_none() {
        send(&mut stage, key, all.by_ref().take(2000));
        if let Some(lane) = stage.victim(victim).and_then(|c| c.lane()) {
            assert!(lane.cost() < 100 * MB, "{}", lane.cost());
        }
    }
    let why = stage.refusal(victim).unwrap_or_default();
    assert!(
        why.contains("more than it was given credit for in all"),
        "{why}"
    );
    stage.assert_serves();
}

#[test]
fn messages_that_nobody_takes_are_bounded() {
    for (size, total) in [(1100, 1100), (1, 1), (1, 60_000)] {
        let (mut stage, key, victim) = Stage::begun(Lane::Datagram);
        let data = vec![7; size];
        for k in 0..40 {
            let numbers = k * 1000..(k + 1) * 1000;
            send(
                &mut stage,
                key,
                numbers.map(|n| message(3 * n, total, &data)),
            );
            let lane = stage.victim(victim).and_then(|c| c.lane());
            let cost = lane.expect("it lasts").cost();
            assert!(cost < 20 * MB, "{cost}");
        }
        stage.assert_serves();
    }
}

#[test]
fn streams_of_quic_that_nobody_reads_stop_at_the_credit() {
    let (mut stage, key, victim) = Stage::begun(Lane::Stream);
    let data = vec![7; MB];
    let mut open = Vec::new();
    for _ in 0..100 {
        let c = stage.attacker.connection(key);
        while let Some(id) = c.streams().open(Dir::Uni) {
            open.push(id);
        }
        for id in &open {
            while c.send_stream(*id).write(&data).is_ok_and(|n| n > 0) {}
        }
        stage.run(100);
    }
    assert!(open.len() >= 50, "{}", open.len());
    let c = stage.victim(victim).expect("it lasts");
    let received = c.quic().stats().udp_rx.bytes as usize;
    assert!(received > 50 * MB && received < 75 * MB, "{received}");
    stage.assert_serves();
}
