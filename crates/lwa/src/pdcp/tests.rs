//! The two entities, alone and together.

use std::collections::BTreeSet;
use std::time::Duration;

use braid_core::Time;
use proptest::prelude::*;

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

/// Absolute at the sender: packets up to LSN are ciphered by the old key, those behind by the
/// new one. Not held against our receiver, which could be wrong in the same way.
#[test]
fn the_senders_key_changes_behind_the_marked_number() {
    let size = SnSize::Bits12;
    let mut tx = transmitter(size, Some(key(1)));
    for n in 0..3 {
        tx.push(ms(0), vec![n; 8]).unwrap();
        send(&mut tx, Link::Wlan);
    }
    let marker = tx.change_key(Some(key(2))).unwrap();
    assert_eq!(marker, Control::EndMarker { lsn: 2 });
    assert_eq!(tx.change_key(None), Err(KeyError::Unused));
    tx.push(ms(0), vec![3; 8]).unwrap();
    let fourth = send(&mut tx, Link::Wlan).unwrap();
    let mut expected = vec![3; 8];
    key(2).apply(3, &mut expected);
    assert_eq!(fourth, [&[0x80, 3][..], &expected].concat());
    assert!(tx.resend(2, None));
    let third = send(&mut tx, Link::Lte).unwrap();
    let mut expected = vec![2; 8];
    key(1).apply(2, &mut expected);
    assert_eq!(third, [&[0x80, 2][..], &expected].concat());
}

/// Absolute at the receiver, by packets that are ciphered here.
#[test]
fn the_receivers_key_changes_behind_the_marked_number() {
    let mut rx = receiver(SnSize::Bits12, Some(key(1)));
    let by = |k: u8, sn: u32| {
        let mut data = vec![sn as u8; 8];
        key(k).apply(sn, &mut data);
        (DataHeader { sn, poll: false }, data)
    };
    let give = |rx: &mut Receiver, k, sn| {
        let (header, data) = by(k, sn);
        rx.data(ms(0), Link::Wlan, header, &data);
    };
    give(&mut rx, 1, 0);
    give(&mut rx, 1, 2);
    rx.stage_key(Some(key(2))).unwrap();
    assert_eq!(rx.stage_key(None), Err(KeyError::Staged));
    // Overtakes the marker by the other link: held, not deciphered by a guess.
    give(&mut rx, 2, 4);
    give(&mut rx, 1, 1);
    assert_eq!(all(&mut rx).len(), 1);
    rx.end_marker(ms(0), 3);
    give(&mut rx, 1, 3);
    assert_eq!(all(&mut rx), [[1u8; 8], [2; 8], [3; 8], [4; 8]]);
    // A repeated marker is of the change that was; the next key waits for its own.
    rx.stage_key(Some(key(3))).unwrap();
    rx.end_marker(ms(0), 3);
    give(&mut rx, 2, 5);
    assert_eq!(all(&mut rx).len(), 0);
    rx.end_marker(ms(0), 5);
    give(&mut rx, 3, 6);
    assert_eq!(all(&mut rx), [[5u8; 8], [6; 8]]);
}

#[test]
fn re_establishment_keeps_what_waits_and_sends_the_rest_by_the_new_key() {
    let size = SnSize::Bits12;
    let mut tx = transmitter(size, Some(key(1)));
    let mut rx = receiver(size, Some(key(1)));
    for n in 0..4u8 {
        tx.push(ms(0), vec![n; 4]).unwrap();
        let pdu = send(&mut tx, Link::Wlan).unwrap();
        if n == 0 || n == 2 {
            give(&mut rx, ms(0), size, &pdu);
        }
    }
    rx.reestablish(ms(0), Some(key(2)));
    tx.reestablish(Some(key(2)));
    if let Control::Status(report) = rx.status_report() {
        tx.status(&report);
    }
    while let Some(pdu) = send(&mut tx, Link::Lte) {
        give(&mut rx, ms(1), size, &pdu);
    }
    assert_eq!(all(&mut rx), [[0u8; 4], [1; 4], [2; 4], [3; 4]]);
    assert_eq!(tx.stats().retransmitted, 2);
}

#[test]
fn a_key_staged_in_vain_ends_with_re_establishment() {
    let size = SnSize::Bits12;
    let mut tx = transmitter(size, Some(key(1)));
    let mut rx = receiver(size, Some(key(1)));
    rx.stage_key(Some(key(2))).unwrap();
    tx.push(ms(0), vec![7; 4]).unwrap();
    let pdu = send(&mut tx, Link::Wlan).unwrap();
    give(&mut rx, ms(0), size, &pdu);
    // Not reported as received, so that it is sent again.
    let Control::Status(report) = rx.status_report() else {
        panic!("a status report");
    };
    tx.status(&report);
    rx.reestablish(ms(0), Some(key(3)));
    tx.reestablish(Some(key(3)));
    let pdu = send(&mut tx, Link::Wlan).unwrap();
    give(&mut rx, ms(0), size, &pdu);
    assert_eq!(all(&mut rx), [[7u8; 4]]);
    assert_eq!(rx.stored_bytes(), 0);
}

proptest! {
    /// Two links in order each, any interleaving, losses and copies, through many rounds of
    /// the numbers: all that was not lost comes out, once, unchanged, in order.
    #[test]
    fn any_interleaving_is_put_in_order(
        start in 0u32..10_000,
        steps in prop::collection::vec((0u8..10, any::<bool>(), any::<bool>()), 1..400),
    ) {
        let size = SnSize::Bits12;
        let mut tx = Transmitter::new(TransmitterConfig {
            size,
            first_count: start,
            key: Some(key(5)),
            ..TransmitterConfig::default()
        });
        let mut rx = Receiver::new(ReceiverConfig {
            size,
            first_count: start,
            t_reordering: None,
            key: Some(key(5)),
            ..ReceiverConfig::default()
        });
        let (mut queues, mut n) = ([Vec::new(), Vec::new()], 0u32);
        for &(kind, wlan, copy) in &steps {
            let link = if wlan { Link::Wlan } else { Link::Lte };
            if kind < 6 {
                tx.push(ms(0), n.to_be_bytes().to_vec()).unwrap();
                n += 1;
                let pdu = send(&mut tx, link).unwrap();
                if copy {
                    queues[link.other().index()].push(pdu.clone());
                }
                queues[link.index()].push(pdu);
            } else if !queues[link.index()].is_empty() {
                let pdu = queues[link.index()].remove(0);
                give(&mut rx, ms(0), size, &pdu);
            }
        }
        for pdu in queues.concat() {
            give(&mut rx, ms(0), size, &pdu);
        }
        let expected: Vec<_> = (0..n).map(|n| n.to_be_bytes().to_vec()).collect();
        prop_assert_eq!(all(&mut rx), expected);
    }

    /// Whatever a peer sends, the entities neither panic nor keep more than they may, and what
    /// comes out is in order of COUNT.
    #[test]
    fn arbitrary_peers_do_no_harm(
        pdus in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..200),
        which in 0usize..3,
        stage in any::<bool>(),
    ) {
        let size = SnSize::ALL[which];
        let mut tx = transmitter(size, None);
        let mut rx = Receiver::new(ReceiverConfig {
            size,
            stored_bytes: 100,
            ..ReceiverConfig::default()
        });
        for _ in 0..20 {
            tx.push(ms(0), vec![0; 3]).unwrap();
            send(&mut tx, Link::Wlan);
        }
        if stage {
            rx.stage_key(Some(key(1))).unwrap();
        }
        for (at, pdu) in pdus.iter().enumerate() {
            let now = ms(at as u64 * 10);
            rx.handle_timeout(now);
            let before = rx.first_missing();
            match Pdu::decode(size, pdu) {
                Ok(Pdu::Data { header, payload }) => {
                    rx.data(now, Link::Wlan, header, payload);
                }
                Ok(Pdu::Control(Control::Status(report))) => tx.status(&report),
                Ok(Pdu::Control(Control::LwaStatus(status))) => {
                    tx.lwa_status(&status);
                }
                Ok(Pdu::Control(Control::EndMarker { lsn })) => rx.end_marker(now, lsn),
                Err(_) => {}
            }
            prop_assert!(rx.first_missing() >= before);
            prop_assert!(rx.stored_bytes() <= 100);
            let mut report = Vec::new();
            rx.status_report().encode(size, &mut report);
            prop_assert!(report.len() <= 1100);
        }
        let counts: BTreeSet<u32> = (0..20).filter(|&c| tx.resend(c, None)).collect();
        prop_assert!(counts.len() <= 20);
    }
}
