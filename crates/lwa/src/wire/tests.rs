//! Round trips, exact bytes, and decoders on arbitrary bytes.

use proptest::prelude::*;

use super::control::{Control, LwaStatus, StatusReport};
use super::data::{DataHeader, Pdu};
use super::gtp::{GtpFrame, MAX_RANGES, Message, USER_DATA_BYTES};
use super::lwaap::{self, DrbId};
use super::xw::{DeliveryStatus, SN_MODULUS, XwFrame};
use super::{DecodeError, SnSize};

fn control(size: SnSize, c: &Control) -> Vec<u8> {
    let mut out = Vec::new();
    c.encode(size, &mut out);
    out
}

fn data(size: SnSize, sn: u32, poll: bool) -> Vec<u8> {
    let mut out = Vec::new();
    DataHeader { sn, poll }.encode(size, &mut out);
    out
}

#[test]
fn data_headers_have_the_bytes_of_the_figures() {
    assert_eq!(data(SnSize::Bits12, 0xabc, true), [0x8a, 0xbc]);
    assert_eq!(data(SnSize::Bits15, 0x7abc, true), [0xfa, 0xbc]);
    assert_eq!(data(SnSize::Bits18, 0x3abcd, false), [0x83, 0xab, 0xcd]);
    assert_eq!(data(SnSize::Bits18, 0x3abcd, true), [0xc3, 0xab, 0xcd]);
}

#[test]
fn control_pdus_have_the_bytes_of_the_figures() {
    let status = |fms| {
        Control::Status(StatusReport {
            fms,
            bitmap: vec![0x55],
        })
    };
    assert_eq!(control(SnSize::Bits12, &status(0xabc)), [0x0a, 0xbc, 0x55]);
    assert_eq!(
        control(SnSize::Bits15, &status(0x7abc)),
        [0x00, 0x7a, 0xbc, 0x55]
    );
    assert_eq!(
        control(SnSize::Bits18, &status(0x3abcd)),
        [0x03, 0xab, 0xcd, 0x55]
    );
    let lwa = |fms, hrw, nmp| Control::LwaStatus(LwaStatus { fms, hrw, nmp });
    assert_eq!(
        control(SnSize::Bits12, &lwa(0xabc, 0xdef, 0x123)),
        [0x2a, 0xbc, 0xde, 0xf1, 0x23]
    );
    assert_eq!(
        control(SnSize::Bits15, &lwa(0x7abc, 0x6def, 0x5123)),
        [0x20, 0x7a, 0xbc, 0x6d, 0xef, 0x51, 0x23]
    );
    assert_eq!(
        control(SnSize::Bits18, &lwa(0x3abcd, 0x2ffff, 0x10001)),
        [0x23, 0xab, 0xcd, 0xbf, 0xff, 0xc1, 0x00, 0x01]
    );
    let marker = |lsn| Control::EndMarker { lsn };
    assert_eq!(control(SnSize::Bits12, &marker(0xabc)), [0x3a, 0xbc]);
    assert_eq!(control(SnSize::Bits15, &marker(0x7abc)), [0x30, 0x7a, 0xbc]);
    assert_eq!(
        control(SnSize::Bits18, &marker(0x3abcd)),
        [0x33, 0xab, 0xcd]
    );
}

#[test]
fn bits_of_a_status_count_from_the_number_behind_the_first_missing() {
    let report = StatusReport {
        fms: 7,
        bitmap: vec![0b1000_0001, 0b0100_0000],
    };
    let received: Vec<usize> = (0..40).filter(|&n| report.received(n)).collect();
    assert_eq!(received, [1, 8, 10]);
}

#[test]
fn xw_frames_are_padded_for_the_extension_header() {
    let mut out = Vec::new();
    XwFrame::UserData { sn: 0x0a_0b0c }.encode(&mut out);
    assert_eq!(out, [0x00, 0x0a, 0x0b, 0x0c, 0, 0]);
    out.clear();
    XwFrame::Status(DeliveryStatus {
        final_frame: true,
        highest_delivered: 1,
        desired_buffer_bytes: 0x100,
        min_desired_buffer_bytes: 0x10,
        lost: vec![(2, 3)],
    })
    .encode(&mut out);
    let expected = [
        0x13, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0x10, 1, 0, 0, 2, 0, 0, 3, 0, 0, 0,
    ];
    assert_eq!(out, expected);
}

#[test]
fn user_data_has_the_overhead_it_promises() {
    let mut out = Vec::new();
    GtpFrame {
        message: Message::Gpdu,
        teid: 9,
        sequence: None,
        xw: Some(XwFrame::UserData { sn: 1 }),
        payload: b"x",
    }
    .encode(&mut out);
    assert_eq!(out.len(), USER_DATA_BYTES + 1);
}

#[test]
fn unknown_extension_headers_are_skipped_only_where_that_is_allowed() {
    let message = |kind| {
        let mut m = vec![0x34, 0xff, 0, 9, 0, 0, 0, 7, 0, 0, 0, kind];
        m.extend_from_slice(&[1, 0xaa, 0xbb, 0, b'x']);
        m
    };
    assert_eq!(GtpFrame::decode(&message(0x20)).unwrap().payload, b"x");
    assert!(matches!(
        GtpFrame::decode(&message(0xc0)),
        Err(DecodeError::Kind { kind: 0xc0, .. })
    ));
}

#[test]
fn what_is_too_short_says_how_much_is_missing() {
    let error = Pdu::decode(SnSize::Bits18, &[0x80, 0]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PDCP data PDU: needs at least 3 bytes, got 2"
    );
    assert!(Pdu::decode(SnSize::Bits12, &[]).is_err());
    assert!(Pdu::decode(SnSize::Bits12, &[0x20, 0, 0, 0]).is_err());
    assert!(
        DrbId::new(32)
            .unwrap_err()
            .to_string()
            .contains("at most 31")
    );
}

fn sizes() -> impl Strategy<Value = SnSize> {
    prop_oneof![
        Just(SnSize::Bits12),
        Just(SnSize::Bits15),
        Just(SnSize::Bits18)
    ]
}

fn xw_sn() -> impl Strategy<Value = u32> {
    0..SN_MODULUS
}

fn xw_frames() -> impl Strategy<Value = XwFrame> {
    let status = (
        any::<bool>(),
        xw_sn(),
        any::<u32>(),
        any::<u32>(),
        prop::collection::vec((xw_sn(), xw_sn()), 0..=MAX_RANGES),
    );
    prop_oneof![
        xw_sn().prop_map(|sn| XwFrame::UserData { sn }),
        status.prop_map(|(final_frame, highest, desired, min, lost)| {
            XwFrame::Status(DeliveryStatus {
                final_frame,
                highest_delivered: highest,
                desired_buffer_bytes: desired,
                min_desired_buffer_bytes: min,
                lost,
            })
        }),
    ]
}

proptest! {
    #[test]
    fn data_pdus_round_trip(size in sizes(), sn: u32, poll: bool, body: Vec<u8>) {
        let mut bytes = data(size, sn, poll);
        prop_assert_eq!(bytes.len(), DataHeader::len(size));
        bytes.extend_from_slice(&body);
        let header = DataHeader { sn: size.sn(sn), poll: poll && size == SnSize::Bits18 };
        prop_assert_eq!(
            Pdu::decode(size, &bytes).unwrap(),
            Pdu::Data { header, payload: &body }
        );
    }

    #[test]
    fn control_pdus_round_trip(size in sizes(), a: u32, b: u32, c: u32, bitmap: Vec<u8>) {
        let (a, b, c) = (size.sn(a), size.sn(b), size.sn(c));
        for pdu in [
            Control::Status(StatusReport { fms: a, bitmap }),
            Control::LwaStatus(LwaStatus { fms: a, hrw: b, nmp: c }),
            Control::EndMarker { lsn: a },
        ] {
            let bytes = control(size, &pdu);
            prop_assert_eq!(Pdu::decode(size, &bytes).unwrap(), Pdu::Control(pdu));
        }
    }

    #[test]
    fn lwaap_round_trips(id in 0u8..32, reserved in 0u8..8, body: Vec<u8>) {
        let drb = DrbId::new(id).unwrap();
        let mut bytes = Vec::new();
        lwaap::encode(drb, &mut bytes);
        bytes.extend_from_slice(&body);
        prop_assert_eq!(bytes[0] >> 5, 0);
        bytes[0] |= reserved << 5;
        prop_assert_eq!(lwaap::decode(&bytes).unwrap(), (drb, &body[..]));
    }

    #[test]
    fn xw_and_gtp_round_trip(
        xw in prop::option::of(xw_frames()),
        teid: u32,
        sequence: Option<u16>,
        payload: Vec<u8>,
        kind in 0usize..3,
    ) {
        let message = [Message::EchoRequest, Message::EchoResponse, Message::Gpdu][kind];
        let frame = GtpFrame { message, teid, sequence, xw, payload: &payload };
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        prop_assert_eq!(&GtpFrame::decode(&bytes).unwrap(), &frame);
        // Truncated anywhere, it is refused.
        for len in 0..bytes.len() {
            prop_assert!(GtpFrame::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(size in sizes(), bytes: Vec<u8>) {
        let _ = Pdu::decode(size, &bytes);
        let _ = Control::decode(size, &bytes);
        let _ = XwFrame::decode(&bytes);
        let _ = lwaap::decode(&bytes);
        let _ = GtpFrame::decode(&bytes);
        // Past the fixed part of a header, which chance seldom meets.
        let mut gtp = vec![0x36, 0xff, 0, bytes.len().min(255) as u8, 0, 0, 0, 0];
        gtp.extend_from_slice(&bytes);
        let _ = GtpFrame::decode(&gtp);
    }
}
