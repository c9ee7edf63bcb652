//! Formats held against Wireshark's dissectors, where tshark is installed.

use std::io::Write;
use std::process::{Command, Stdio};

use super::SnSize;
use super::control::{Control, LwaStatus, StatusReport};
use super::data::DataHeader;
use super::gtp::{GtpFrame, Message};
use super::xw::XwFrame;

/// Capture in pcap form (link type 1: Ethernet) of UDP datagrams to `port`.
fn capture(datagrams: &[Vec<u8>], port: u16) -> Vec<u8> {
    let mut pcap = Vec::new();
    for n in [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65535, 1] {
        pcap.extend_from_slice(&n.to_le_bytes());
    }
    for datagram in datagrams {
        let udp = 8 + datagram.len();
        let mut packet = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        packet.extend_from_slice(&[0x45, 0]);
        packet.extend_from_slice(&((20 + udp) as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        packet.extend_from_slice(&port.to_be_bytes());
        packet.extend_from_slice(&port.to_be_bytes());
        packet.extend_from_slice(&(udp as u16).to_be_bytes());
        packet.extend_from_slice(&[0, 0]);
        packet.extend_from_slice(datagram);
        for n in [0, 0, packet.len() as u32, packet.len() as u32] {
            pcap.extend_from_slice(&n.to_le_bytes());
        }
        pcap.extend_from_slice(&packet);
    }
    pcap
}

/// Fields of each packet as tshark prints them, one line a packet; none without tshark.
fn dissect(pcap: &[u8], fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command.args(["-r", "-", "-n", "-T", "fields", "-E", "separator=,"]);
    command.args(["--enable-heuristic", "pdcp_lte_udp"]);
    for field in fields {
        command.args(["-e", field]);
    }
    let mut child = match command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
    {
        Ok(child) => child,
        Err(_) => {
            println!("skipped: tshark is not installed (apt-get install tshark)");
            return None;
        }
    };
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(pcap).expect("write the capture to tshark");
    drop(stdin);
    let output = child.wait_with_output().expect("run tshark");
    assert!(output.status.success(), "tshark failed: {output:?}");
    let text = String::from_utf8(output.stdout).expect("text of tshark");
    Some(text.lines().map(str::to_owned).collect())
}

/// Wireshark's framing of a user-plane PDCP PDU over UDP: no header-less PDU, user plane, no
/// ROHC; length of the number; payload.
fn framed(size: SnSize, pdu: &[u8]) -> Vec<u8> {
    let mut out = b"pdcp-lte".to_vec();
    out.extend_from_slice(&[0, 2, 0]);
    out.extend_from_slice(&[0x02, size.bits() as u8]);
    out.push(0x01);
    out.extend_from_slice(pdu);
    out
}

#[test]
fn pdcp_pdus_read_alike_by_wireshark() {
    let fields = [
        "pdcp-lte.seq-num",
        "pdcp-lte.polling",
        "pdcp-lte.fms",
        "pdcp-lte.hwr",
        "pdcp-lte.nmp",
        "pdcp-lte.lsn",
        "pdcp-lte.bitmap.byte",
        "_ws.expert",
    ];
    let (mut datagrams, mut expected) = (Vec::new(), Vec::new());
    for size in SnSize::ALL {
        let top = size.modulus() - 1;
        for (sn, poll) in [(0, false), (1, true), (top, false), (top - 2, true)] {
            let mut pdu = Vec::new();
            DataHeader { sn, poll }.encode(size, &mut pdu);
            pdu.extend_from_slice(&[0xff; 4]);
            datagrams.push(framed(size, &pdu));
            let polling = match size {
                SnSize::Bits18 => {
                    if poll {
                        "1"
                    } else {
                        "0"
                    }
                }
                _ => "",
            };
            expected.push(format!("{sn},{polling},,,,,,"));
        }
        for (a, b, c) in [
            (0, 0, 0),
            (top, 1, top / 2),
            (1, top, 3),
            (top / 3, top / 5, top),
        ] {
            let mut pdu = Vec::new();
            Control::LwaStatus(LwaStatus {
                fms: a,
                hrw: b,
                nmp: c,
            })
            .encode(size, &mut pdu);
            datagrams.push(framed(size, &pdu));
            expected.push(format!(",,{a},{b},{c},,,"));
            let mut pdu = Vec::new();
            Control::EndMarker { lsn: a }.encode(size, &mut pdu);
            datagrams.push(framed(size, &pdu));
            expected.push(format!(",,,,,{a},,"));
            let mut pdu = Vec::new();
            let bitmap = vec![0xa5];
            Control::Status(StatusReport { fms: a, bitmap }).encode(size, &mut pdu);
            datagrams.push(framed(size, &pdu));
            expected.push(format!(",,{a},,,,0xa5,"));
        }
    }
    if let Some(lines) = dissect(&capture(&datagrams, 9999), &fields) {
        assert_eq!(lines, expected);
    }
}

#[test]
fn gtp_messages_read_alike_by_wireshark() {
    let mut data = Vec::new();
    GtpFrame {
        message: Message::Gpdu,
        teid: 0x0102_0304,
        sequence: None,
        xw: Some(XwFrame::UserData { sn: 5 }),
        payload: &[0x61, 0x80, 0x01, 0xff],
    }
    .encode(&mut data);
    let mut echo = Vec::new();
    GtpFrame::echo_request(0x1234).encode(&mut echo);
    let mut answer = Vec::new();
    GtpFrame::echo_response(0x1234).encode(&mut answer);
    let fields = [
        "gtp.message",
        "gtp.teid",
        "gtp.seq_number",
        "gtp.ext_hdr.next",
        "gtp.recovery",
    ];
    if let Some(lines) = dissect(&capture(&[data, echo, answer], 2152), &fields) {
        assert!(lines[0].starts_with("0xff,0x01020304,"), "{lines:?}");
        assert!(lines[0].contains("0x83"), "{lines:?}");
        assert!(lines[1].starts_with("0x01,0x00000000,0x1234"), "{lines:?}");
        assert!(lines[2].starts_with("0x02,0x00000000,0x1234"), "{lines:?}");
        assert!(lines[2].ends_with(",0"), "{lines:?}");
    }
}
