//! Interleavings, and peers that send anything.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

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
