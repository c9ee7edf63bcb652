//! The two entities, alone and together.

mod keys;
mod properties;

use std::time::Duration;

use braid_core::Time;

use super::*;
use crate::cipher::{Direction, Eea2};
use crate::link::Link;
use crate::wire::SnSize;
use crate::wire::control::{Control, LwaStatus, StatusReport};
use crate::wire::data::{DataHeader, Pdu};

fn ms(n: u64) -> Time {
    Time::from(Duration::from_millis(n))
}

fn key(byte: u8) -> Eea2 {
    Eea2::new([byte; 16], 2, Direction::Downlink)
}

fn transmitter(size: SnSize, key: Option<Eea2>) -> Transmitter {
    Transmitter::new(TransmitterConfig {
        size,
        key,
        queue_packets: 1 << 18,
        ..TransmitterConfig::default()
    })
}

fn receiver(size: SnSize, key: Option<Eea2>) -> Receiver {
    Receiver::new(ReceiverConfig {
        size,
        key,
        ..ReceiverConfig::default()
    })
}

/// Sends what comes next over `link`.
fn send(tx: &mut Transmitter, link: Link) -> Option<Vec<u8>> {
    let prepared = tx.prepare()?;
    let mut pdu = Vec::new();
    tx.encode(&prepared, false, &mut pdu);
    tx.commit(&prepared, link);
    Some(pdu)
}

fn give(rx: &mut Receiver, now: Time, size: SnSize, pdu: &[u8]) -> Received {
    match Pdu::decode(size, pdu).unwrap() {
        Pdu::Data { header, payload } => rx.data(now, Link::Lte, header, payload),
        Pdu::Control(other) => panic!("{other:?}"),
    }
}

fn all(rx: &mut Receiver) -> Vec<Vec<u8>> {
    std::iter::from_fn(|| rx.pop()).collect()
}

fn numbers(rx: &mut Receiver) -> Vec<u8> {
    all(rx).iter().map(|p| p[0]).collect()
}

#[test]
fn a_number_is_spent_only_on_what_left() {
    let mut tx = transmitter(SnSize::Bits12, None);
    tx.push(ms(0), vec![1]).unwrap();
    let first = tx.prepare().unwrap();
    // The link refused: asked again, the same comes with the same number.
    assert_eq!(tx.prepare().unwrap(), first);
    assert_eq!(first.count(), 0);
    tx.commit(&first, Link::Lte);
    assert!(tx.prepare().is_none());
    // Discarded before it left: its number goes to the next.
    tx.push(ms(0), vec![2]).unwrap();
    assert_eq!(tx.timeout(), Some(ms(1500)));
    tx.handle_timeout(ms(1500));
    tx.push(ms(1500), vec![3]).unwrap();
    assert_eq!(send(&mut tx, Link::Lte).unwrap(), [0x80, 1, 3]);
    assert_eq!(tx.stats().discarded, 1);
}

#[test]
fn packets_that_cannot_be_sent_are_refused() {
    let mut tx = Transmitter::new(TransmitterConfig {
        queue_packets: 1,
        first_count: u32::MAX - 1,
        ..TransmitterConfig::default()
    });
    assert_eq!(tx.push(ms(0), vec![0; 8189]), Err(PushError::Large(8189)));
    tx.push(ms(0), vec![0; 8188]).unwrap();
    assert_eq!(tx.push(ms(0), vec![0]), Err(PushError::Full(1)));
    assert!(send(&mut tx, Link::Lte).is_some());
    assert_eq!(tx.push(ms(0), vec![0]), Err(PushError::Exhausted));
}

#[test]
fn half_of_the_numbers_at_most_are_under_way() {
    let mut tx = transmitter(SnSize::Bits12, None);
    for _ in 0..3000 {
        tx.push(ms(0), vec![0]).unwrap();
    }
    let sent = std::iter::from_fn(|| send(&mut tx, Link::Lte)).count();
    assert_eq!(sent, 2048);
    assert!(tx.stalled());
    // Not even when their timers end: the receiver may have seen none of them.
    tx.handle_timeout(ms(10_000));
    tx.push(ms(10_000), vec![9]).unwrap();
    assert!(tx.prepare().is_none());
    // The newest is still there to be sent again, and the answer to it opens the window.
    assert!(tx.resend_last());
    let mut rx = receiver(SnSize::Bits12, None);
    let pdu = send(&mut tx, Link::Lte).unwrap();
    give(&mut rx, ms(10_000), SnSize::Bits12, &pdu);
    rx.handle_timeout(ms(10_100));
    let Control::Status(report) = rx.status_report() else {
        panic!("a status report");
    };
    assert_eq!(report.fms, 2048);
    tx.status(&report);
    assert!(!tx.stalled() && tx.prepare().is_some());
}

#[test]
fn reordering_waits_for_the_gap_and_then_gives_it_up() {
    let size = SnSize::Bits18;
    let mut tx = transmitter(size, None);
    let mut rx = receiver(size, None);
    let pdus: Vec<_> = (0..6u8)
        .map(|n| {
            tx.push(ms(0), vec![n]).unwrap();
            send(&mut tx, Link::Lte).unwrap()
        })
        .collect();
    give(&mut rx, ms(0), size, &pdus[0]);
    give(&mut rx, ms(1), size, &pdus[2]);
    assert_eq!(numbers(&mut rx), [0]);
    assert_eq!(rx.timeout(), Some(ms(101)));
    // 1 comes, 3 is missing now: the timer starts anew, at the moment that 2 was delivered.
    give(&mut rx, ms(2), size, &pdus[4]);
    let late = give(&mut rx, ms(30), size, &pdus[1]);
    assert_eq!(late, Received::Taken(Some(Late(Duration::from_millis(29)))));
    assert_eq!(numbers(&mut rx), [1, 2]);
    assert_eq!(rx.timeout(), Some(ms(130)));
    rx.handle_timeout(ms(129));
    assert_eq!(numbers(&mut rx), [0u8; 0]);
    rx.handle_timeout(ms(130));
    assert_eq!(numbers(&mut rx), [4]);
    assert_eq!((rx.timeout(), rx.stats().given_up), (None, 1));
    // Too late, and twice.
    let late = give(&mut rx, ms(140), size, &pdus[3]);
    assert_eq!(
        late,
        Received::TooLate(Some(Late(Duration::from_millis(138))))
    );
    give(&mut rx, ms(141), size, &pdus[5]);
    give(&mut rx, ms(141), size, &pdus[5]);
    assert_eq!(numbers(&mut rx), [5]);
}

#[test]
fn too_much_behind_a_gap_gives_it_up() {
    let mut rx = Receiver::new(ReceiverConfig {
        t_reordering: None,
        stored_bytes: 25,
        ..ReceiverConfig::default()
    });
    for sn in 1..4 {
        let header = DataHeader { sn, poll: false };
        rx.data(ms(0), Link::Lte, header, &[sn as u8; 10]);
    }
    assert_eq!(numbers(&mut rx), [1, 2, 3]);
    assert_eq!(rx.stored_bytes(), 0);
}

#[test]
fn status_reports_free_what_was_received_and_only_that() {
    let size = SnSize::Bits15;
    let mut tx = transmitter(size, None);
    let mut rx = receiver(size, None);
    for n in 0..12u8 {
        tx.push(ms(0), vec![n]).unwrap();
        let pdu = send(&mut tx, if n % 2 == 0 { Link::Lte } else { Link::Wlan });
        if ![3, 4, 8, 11].contains(&n) {
            give(&mut rx, ms(0), size, &pdu.unwrap());
        }
    }
    let report = StatusReport {
        fms: 3,
        bitmap: vec![0b0111_0110],
    };
    assert_eq!(rx.status_report(), Control::Status(report.clone()));
    tx.status(&report);
    assert_eq!(tx.recover(Link::Wlan), 2);
    // A link that is recovered twice does not send twice.
    assert_eq!(tx.recover(Link::Wlan), 2);
    assert_eq!(send(&mut tx, Link::Lte).unwrap(), [0x80, 3, 3]);
    assert_eq!(send(&mut tx, Link::Lte).unwrap(), [0x80, 11, 11]);
    assert!(send(&mut tx, Link::Lte).is_none());
    tx.reestablish(None);
    let rest: Vec<_> = std::iter::from_fn(|| send(&mut tx, Link::Lte)).collect();
    assert_eq!(
        rest,
        [[0x80, 3, 3], [0x80, 4, 4], [0x80, 8, 8], [0x80, 11, 11]]
    );
    // An old report says nothing new; one of numbers never sent is a lie.
    tx.status(&StatusReport {
        fms: 0,
        bitmap: vec![0xff],
    });
    tx.status(&StatusReport {
        fms: 13,
        bitmap: vec![0xff],
    });
    assert!(tx.resend(4, None) && tx.resend(11, Some(Link::Wlan)));
}

#[test]
fn lwa_status_tells_the_progress_of_wlan() {
    let mut rx = receiver(SnSize::Bits18, None);
    assert_eq!(rx.lwa_status_report(), None);
    for (sn, link) in [
        (0, Link::Lte),
        (2, Link::Wlan),
        (5, Link::Wlan),
        (6, Link::Lte),
    ] {
        rx.data(ms(0), link, DataHeader { sn, poll: false }, &[0]);
    }
    let status = LwaStatus {
        fms: 1,
        hrw: 5,
        nmp: 3,
    };
    assert_eq!(rx.lwa_status_report(), Some(Control::LwaStatus(status)));
    let mut tx = transmitter(SnSize::Bits18, None);
    for _ in 0..7 {
        tx.push(ms(0), vec![0]).unwrap();
        send(&mut tx, Link::Lte);
    }
    assert_eq!(tx.lwa_status(&status), Some(5));
    assert!(!tx.resend(0, None) && tx.resend(1, None));
}
