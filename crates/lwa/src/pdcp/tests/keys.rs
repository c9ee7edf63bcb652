//! Changes of key and re-establishment.

use super::*;

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
