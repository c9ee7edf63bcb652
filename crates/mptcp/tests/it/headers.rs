//! The header bytes that `braid_core::overhead` states, held against packets.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};

use braid_core::overhead::Transport;
use braid_mptcp::socket;
use braid_netns::world::{SERVICE, SERVICE6, World, ask, fetch};
use socket2::{Domain, Protocol, Socket, Type};

/// IP length, TCP options and payload of a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Shape {
    ip_bytes: usize,
    option_bytes: usize,
    /// The DSS option without padding (RFC 8684 3.3), 0 without one.
    dss_bytes: usize,
    payload_bytes: usize,
}

/// Reads an IP packet that carries TCP data from port `from`.
fn shape(packet: &[u8], from: u16) -> Option<Shape> {
    let (ip_header, ip_bytes) = match packet.first()? >> 4 {
        4 => {
            let total = u16::from_be_bytes(*packet.get(2..)?.first_chunk()?);
            (usize::from(packet[0] & 15) * 4, usize::from(total))
        }
        6 => {
            let payload = u16::from_be_bytes(*packet.get(4..)?.first_chunk()?);
            (40, 40 + usize::from(payload))
        }
        _ => return None,
    };
    let tcp = packet.get(ip_header..ip_bytes)?;
    let tcp_header = usize::from(tcp.get(12)? >> 4) * 4;
    let payload_bytes = tcp.len().checked_sub(tcp_header)?;
    if u16::from_be_bytes(*tcp.first_chunk()?) != from || payload_bytes == 0 {
        return None;
    }
    let mut options = tcp.get(20..tcp_header)?;
    let mut dss_bytes = 0;
    while let [kind, rest @ ..] = options {
        let length = match kind {
            0 => break,
            1 => 1,
            _ => usize::from(*rest.first()?).max(2),
        };
        // Kind 30 is MPTCP, its subtype 2 DSS.
        if *kind == 30 && rest.get(1)? >> 4 == 2 {
            dss_bytes = length;
        }
        options = options.get(length..)?;
    }
    Some(Shape {
        ip_bytes,
        option_bytes: tcp_header - 20,
        dss_bytes,
        payload_bytes,
    })
}

/// How often each shape of data packets from port 80 of the proxy was seen at
/// the device while `transfer` ran.
fn captured(w: &World, transfer: impl FnOnce()) -> BTreeMap<Shape, usize> {
    let capture = w.device.run(|| {
        let all = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        Socket::new(Domain::PACKET, Type::DGRAM, Some(all)).unwrap()
    });
    // What comes faster than it is read is lost: the kinds of packets are not.
    capture.set_recv_buffer_size(4 << 20).unwrap();
    capture.set_nonblocking(true).unwrap();
    transfer();
    let mut shapes = BTreeMap::new();
    let mut packet = vec![0; 1 << 16];
    loop {
        match (&capture).read(&mut packet) {
            Ok(n) => {
                if let Some(shape) = shape(&packet[..n], 80) {
                    *shapes.entry(shape).or_default() += 1;
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => return shapes,
            Err(e) => panic!("read the capture: {e}"),
        }
    }
}

/// The kind of full-sized packets that most were of.
fn most(shapes: &BTreeMap<Shape, usize>) -> Shape {
    let full = shapes.iter().filter(|(s, _)| s.ip_bytes == MTU as usize);
    let (&shape, &n) = full.max_by_key(|&(_, n)| n).expect("full-sized packets");
    let all: usize = shapes.values().sum();
    assert!(
        n * 10 > all * 9,
        "{n} of {all} packets are alike: {shapes:?}"
    );
    shape
}

const MTU: u32 = 1500;

#[test]
fn full_sized_packets_carry_what_is_stated() {
    let Some(w) = World::new(1) else { return };
    w.one_segment_per_packet(1);
    for (ip, ip_header) in [(IpAddr::from(SERVICE), 20), (IpAddr::from(SERVICE6), 40)] {
        for (mptcp, stated) in [(false, Transport::Tcp), (true, Transport::Mptcp)] {
            let at = SocketAddr::new(ip, 80);
            let listener = w.proxy.run(|| socket::listen(at, true, None).unwrap());
            let server = w.serve(listener);
            let shapes = captured(&w, || {
                let mut s = w
                    .device
                    .run(|| socket::connect(None, at, mptcp, None).unwrap());
                fetch(&mut s, 1_000_000);
                ask(&mut s, 0);
            });
            server.join().unwrap();
            let seen = most(&shapes);
            let fraction = f64::from(u32::try_from(seen.payload_bytes).unwrap()) / f64::from(MTU);
            assert_eq!(
                fraction,
                stated.payload_fraction(MTU, ip_header),
                "{stated:?} {seen:?}"
            );
            let options = stated.header_bytes() as usize - 20;
            assert_eq!(seen.option_bytes, options, "{stated:?} {seen:?}");
            assert_eq!(seen.dss_bytes != 0, mptcp, "{seen:?}");
        }
    }
}

/// A sender that has never received data acknowledges with 32 bits.
#[test]
fn a_one_way_sender_has_shorter_headers() {
    let Some(w) = World::new(1) else { return };
    w.one_segment_per_packet(1);
    let at = SocketAddr::new(SERVICE.into(), 80);
    let listener = w.proxy.run(|| socket::listen(at, true, None).unwrap());
    let server = w.proxy.spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(&vec![0; 1_000_000]).unwrap();
    });
    let shapes = captured(&w, || {
        let mut s = w
            .device
            .run(|| socket::connect(None, at, true, None).unwrap());
        assert_eq!(s.read_to_end(&mut Vec::new()).unwrap(), 1_000_000);
    });
    server.join().unwrap();
    let seen = most(&shapes);
    let usual = Transport::Mptcp.header_bytes() as usize - 20;
    assert_eq!(
        (seen.option_bytes, seen.dss_bytes),
        (usual - 4, 22),
        "{seen:?}"
    );
}
