//! Ends by themselves; pairs of them run in `sim`.

use std::time::Duration;

use braid_core::Time;
use proptest::prelude::*;

use super::*;
use crate::link::Link;
use crate::wire::gtp::{GtpFrame, Message};
use crate::wire::lwaap::DrbId;
use crate::wire::xw::{DeliveryStatus, XwFrame};

fn ms(n: u64) -> Time {
    Time::from(Duration::from_millis(n))
}

fn drb(id: u8) -> DrbId {
    DrbId::new(id).unwrap()
}

fn node(steering: &str) -> End {
    End::new(EndConfig::node(vec![
        BearerConfig::new(drb(1), steering, "fixed:80"),
        BearerConfig::new(drb(2), steering, "fixed:80"),
    ]))
    .unwrap()
}

/// Accepts everything, and returns the frames that carry packets.
fn data_frames(end: &mut End, now: Time) -> Vec<(Link, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some(offer) = end.offer([true; 2], now) {
        let (link, frame) = (offer.link, offer.frame.clone());
        offer.accept(now);
        let read = GtpFrame::decode(&frame).unwrap();
        if matches!(read.xw, Some(XwFrame::UserData { .. })) {
            frames.push((link, frame));
        }
    }
    frames
}

#[test]
fn bad_settings_are_refused() {
    let bearer = |id, steering, reordering| BearerConfig::new(drb(id), steering, reordering);
    let error = |bearers| End::new(EndConfig::node(bearers)).unwrap_err().to_string();
    assert!(error(vec![]).contains("at least one"));
    let twice = vec![bearer(3, "lte", "paper"), bearer(3, "lte", "paper")];
    assert!(error(twice).contains("bearer 3: stands twice"));
    assert!(error(vec![bearer(1, "best", "paper")]).contains("steering \"best\""));
    assert!(error(vec![bearer(1, "lte", "soon")]).contains("reordering time \"soon\""));
    let error = node("lte").push(ms(0), drb(9), vec![1]).unwrap_err();
    assert_eq!(error, EndError::Unknown(9));
}

#[test]
fn what_a_link_refuses_is_offered_again_unchanged() {
    let mut end = node("static:1:1");
    end.push(ms(0), drb(1), vec![7; 100]).unwrap();
    let first = end
        .offer([true; 2], ms(0))
        .map(|o| (o.link, o.frame.clone()));
    let second = end
        .offer([true; 2], ms(0))
        .map(|o| (o.link, o.frame.clone()));
    assert!(first.is_some());
    assert_eq!(first, second);
    assert_eq!(data_frames(&mut end, ms(0)).len(), 1);
    assert!(end.offer([true; 2], ms(0)).is_none());
}

#[test]
fn bearers_take_turns() {
    let mut end = node("lte");
    for n in 0..3 {
        end.push(ms(0), drb(1), vec![n]).unwrap();
        end.push(ms(0), drb(2), vec![n]).unwrap();
    }
    let order: Vec<u8> = (data_frames(&mut end, ms(0)).iter())
        .map(|(_, f)| GtpFrame::decode(f).unwrap().payload[0])
        .collect();
    assert_eq!(order, [1, 2, 1, 2, 1, 2]);
}

#[test]
fn overhead_is_what_the_mtu_allows_for() {
    let mut end = node("wifi");
    end.push(ms(0), drb(1), vec![0; 1000]).unwrap();
    let (_, frame) = data_frames(&mut end, ms(0)).remove(0);
    assert_eq!(frame.len() + 28, 1000 + OVERHEAD_BYTES);
}

#[test]
fn a_link_of_which_nothing_is_heard_is_left_and_its_packets_are_sent_again() {
    let mut end = node("wifi");
    for n in 0..5 {
        end.push(ms(1), drb(1), vec![n]).unwrap();
    }
    assert!(
        data_frames(&mut end, ms(1))
            .iter()
            .all(|f| f.0 == Link::Wlan)
    );
    end.handle_timeout(ms(302));
    assert_eq!(end.stats().silences, [0, 1]);
    let again = data_frames(&mut end, ms(302));
    assert_eq!(again.len(), 5);
    assert!(again.iter().all(|f| f.0 == Link::Lte));
}

#[test]
fn probes_are_answered_over_lte_while_it_lives() {
    let mut end = node("lte");
    let mut probe = Vec::new();
    GtpFrame::echo_request(77).encode(&mut probe);
    let mut answer_to = |now, heard: &[Link]| {
        for &link in heard {
            end.receive(now, link, &probe);
        }
        let mut last = None;
        while let Some(offer) = end.offer([true; 2], now) {
            let read = GtpFrame::decode(&offer.frame).unwrap();
            assert_eq!(
                (read.message, read.sequence),
                (Message::EchoResponse, Some(77))
            );
            last = Some(offer.link);
            offer.accept(now);
        }
        last
    };
    assert_eq!(answer_to(ms(1), &[Link::Lte, Link::Wlan]), Some(Link::Lte));
    assert_eq!(answer_to(ms(400), &[Link::Wlan]), Some(Link::Lte));
    assert_eq!(answer_to(ms(600), &[Link::Wlan]), Some(Link::Wlan));
}

#[test]
fn a_flood_of_probes_takes_no_memory() {
    let mut end = node("lte");
    let mut probe = Vec::new();
    GtpFrame::echo_request(1).encode(&mut probe);
    for _ in 0..10_000 {
        end.receive(ms(1), Link::Wlan, &probe);
    }
    assert!(end.control.len() <= 256);
}

#[test]
fn lost_packets_are_sent_again_only_where_that_is_asked_for() {
    for resend in [false, true] {
        let mut config = EndConfig::node(vec![BearerConfig::new(drb(1), "wifi", "paper")]);
        config.resend_lost = resend;
        let mut end = End::new(config).unwrap();
        for n in 0..4 {
            end.push(ms(0), drb(1), vec![n; 10]).unwrap();
        }
        let sent = data_frames(&mut end, ms(0));
        let status = XwFrame::Status(DeliveryStatus {
            highest_delivered: 3,
            desired_buffer_bytes: u32::MAX,
            lost: vec![(1, 2)],
            ..DeliveryStatus::default()
        });
        let frame = end.tunnelled(Link::Wlan, Some(status), &[]);
        end.receive(ms(20), Link::Lte, &frame);
        assert_eq!(end.stats().lost, [0, 2]);
        let again = data_frames(&mut end, ms(20));
        assert_eq!(again.len(), if resend { 2 } else { 0 });
        if resend {
            let pdu = |f: &[u8]| GtpFrame::decode(f).unwrap().payload.to_vec();
            assert_eq!(pdu(&again[0].1), pdu(&sent[1].1));
        }
    }
}

#[test]
fn frames_of_tunnels_before_a_re_establishment_are_foreign() {
    let mut end = node("lte");
    end.push(ms(0), drb(1), vec![1]).unwrap();
    let (_, old) = data_frames(&mut end, ms(0)).remove(0);
    let mut peer = node("lte");
    peer.reestablish(ms(0), |_| BearerKeys::default());
    peer.receive(ms(1), Link::Lte, &old);
    assert_eq!((peer.pop(), peer.stats().foreign), (None, [1, 0]));
    end.reestablish(ms(1), |_| BearerKeys::default());
    for (link, frame) in data_frames(&mut end, ms(1)) {
        peer.receive(ms(2), link, &frame);
    }
    assert_eq!(peer.pop(), Some((drb(1), vec![1])));
}

#[test]
fn over_ethernet_an_lwa_status_report_tells_what_came() {
    let mut config = EndConfig::node(vec![BearerConfig::new(drb(1), "wifi", "paper")]);
    config.framing[1] = Framing::Ethernet;
    let (mut end, mut peer) = (End::new(config.clone()).unwrap(), End::new(config).unwrap());
    for n in 0..4 {
        end.push(ms(0), drb(1), vec![n]).unwrap();
    }
    while let Some(offer) = end.offer([true; 2], ms(0)) {
        // LWAAP, PDCP with 18 bits, and the packet: nothing else.
        assert_eq!((offer.link, offer.frame.len()), (Link::Wlan, 5));
        peer.receive(ms(10), Link::Wlan, &offer.frame);
        offer.accept(ms(0));
    }
    assert_eq!(end.outgoing[1].bytes(), 20);
    peer.handle_timeout(ms(10));
    while let Some(offer) = peer.offer([true; 2], ms(10)) {
        assert_eq!(offer.link, Link::Lte);
        end.receive(ms(20), Link::Lte, &offer.frame);
        offer.accept(ms(10));
    }
    assert_eq!(end.outgoing[1].bytes(), 0);
    // Silent, with no probe to show when it works again: tried again after a while.
    end.push(ms(30), drb(1), vec![9]).unwrap();
    while let Some(offer) = end.offer([true; 2], ms(30)) {
        offer.accept(ms(30));
    }
    assert_eq!(end.outgoing[1].bytes(), 5);
    end.handle_timeout(ms(1000));
    assert!(!end.views([true; 2])[1].usable);
    end.handle_timeout(ms(2100));
    assert!(end.views([true; 2])[1].usable);
}

proptest! {
    /// Frames of all kinds with arbitrary content: no panic, and nothing is delivered that was
    /// not in a data PDU; the end stays able to send.
    #[test]
    fn arbitrary_frames_do_no_harm(
        frames in prop::collection::vec(
            (any::<bool>(), 0u32..4, prop::option::of((any::<u32>(), any::<u32>())),
             prop::collection::vec(any::<u8>(), 0..40)),
            0..100,
        ),
        raw in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
    ) {
        let mut end = node("backlog");
        for n in 0..30 {
            end.push(ms(0), drb(1), vec![n; 200]).unwrap();
        }
        data_frames(&mut end, ms(0));
        let mut now = ms(0);
        for (wlan, tunnel, xw, payload) in &frames {
            now += Duration::from_millis(7);
            let link = if *wlan { Link::Wlan } else { Link::Lte };
            let xw = xw.map(|(a, b)| if a % 2 == 0 {
                XwFrame::UserData { sn: b >> 8 }
            } else {
                XwFrame::Status(DeliveryStatus {
                    highest_delivered: b % 40,
                    desired_buffer_bytes: a,
                    lost: vec![(a % 40, b % 40)],
                    ..DeliveryStatus::default()
                })
            });
            let mut frame = Vec::new();
            GtpFrame { message: Message::Gpdu, teid: 0x1000 + tunnel, sequence: None, xw, payload }
                .encode(&mut frame);
            end.receive(now, link, &frame);
            end.handle_timeout(now);
            data_frames(&mut end, now);
        }
        for frame in &raw {
            end.receive(now, Link::Lte, frame);
        }
        while end.pop().is_some() {}
        prop_assert!(end.timeout() <= now + Duration::from_secs(2));
        end.push(now, drb(2), vec![0; 20]).unwrap();
    }
}
