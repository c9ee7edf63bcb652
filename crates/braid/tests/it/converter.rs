//! Connections over Multipath TCP to the proxy's converter (RFC 8803): alone, and where UDP is blocked.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::time::{Duration, Instant};

use braid_api::{Connections, Engine, Status};
use braid_mptcp::socket;
use braid_netns::world::lan::{LAN, SERVER};
use braid_netns::world::{Ns, eventually};
use nix::sys::signal::Signal;

use crate::support::bulk;
use crate::support::daemon::Daemon;
use crate::support::lan::{DNS, Ends, PORT, PROXY, begin_as, of_packets, origin};

const COOKIE: &str = "0123456789abcdef0123";
/// Port of Multipath QUIC at the proxy.
const QUIC: u16 = 4433;
/// Port of the converter at the proxy.
const CONVERTER: u16 = 7726;

fn section(dir: &Path, more: &str) -> String {
    let file = dir.join("cookie");
    std::fs::write(&file, format!("{COOKIE}\n")).unwrap();
    format!("[converter]\ncookie_file = {file:?}\n{more}")
}

/// Configuration of an end of Multipath QUIC, which serves Multipath TCP as well.
fn with_both(config: &str) -> String {
    let both = "engines = [\"mpquic\", \"mptcp\"]";
    config.replacen("engine = \"mpquic\"", both, 1)
}

/// Configuration of an end of Multipath QUIC, with Multipath TCP in its place.
fn with_mptcp_alone(config: &str) -> String {
    let config = config.replacen("engine = \"mpquic\"", "engine = \"mptcp\"", 1);
    let (head, rest) = config.split_once("[mpquic]").unwrap();
    let (_, accesses) = rest.split_once("[access.").unwrap();
    format!("{head}[access.{accesses}").replace("[gateway]\n", "")
}

fn seen(host: &Ns) -> Option<Vec<IpAddr>> {
    let ask = |at: &IpAddr| origin(host, *at).ok();
    SERVER.iter().map(ask).collect()
}

/// Waits until connections of the device's programs and of hosts come from the proxy.
fn carried(e: &Ends) {
    let proxy: Vec<IpAddr> = PROXY.map(|a| a.parse().unwrap()).to_vec();
    eventually("connections go over the bond", || {
        let all = [seen(&e.w.device), seen(&e.lan.host)];
        all.iter()
            .all(|seen| seen.as_ref() == Some(&proxy))
            .then_some(())
    });
}

fn falls_back(device: &Daemon) -> bool {
    let status: Status = device.get("/v1/status");
    status.notes.iter().any(|n| n.contains("UDP blocked"))
}

/// Question for the address of a name.
const QUESTION: &[u8] = b"\x07\x08\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01";

/// Resolver at the server that is asked by TCP, and answers from where it was.
fn resolver(server: &Ns) {
    for at in SERVER {
        let listener = server.run(|| TcpListener::bind((at, DNS)).unwrap());
        server.spawn(move || {
            while let Ok((mut tcp, from)) = listener.accept() {
                let mut question = [0; 2 + QUESTION.len()];
                if tcp.read_exact(&mut question).is_err() {
                    continue;
                }
                assert_eq!(&question[2..], QUESTION);
                let mut answer = QUESTION.to_vec();
                answer[2] |= 0x80;
                answer.extend(from.ip().to_string().as_bytes());
                let length = u16::try_from(answer.len()).unwrap().to_be_bytes();
                tcp.write_all(&[&length[..], &answer].concat()).unwrap();
            }
        });
    }
}

/// Asks the resolver by UDP from where it is asked.
fn resolves(host: &Ns, at: IpAddr) -> std::io::Result<IpAddr> {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0))?;
        udp.set_read_timeout(Some(Duration::from_secs(2)))?;
        udp.connect((at, DNS))?;
        udp.send(QUESTION)?;
        let mut answer = [0; 512];
        let n = udp.recv(&mut answer)?;
        let text = answer.get(QUESTION.len()..n).unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        text.parse().map_err(|_| ErrorKind::InvalidData.into())
    })
}

/// Asserts that names are resolved over the bond, for hosts and programs.
fn names_are_resolved(e: &Ends) {
    for host in [&e.lan.host, &e.w.device] {
        for (at, from) in SERVER.iter().zip(PROXY) {
            let seen = resolves(host, *at).unwrap();
            assert_eq!(seen.to_string(), from, "{at}");
        }
    }
}

/// Connection to the server, which has told where it comes from.
fn open(at: &Ns) -> TcpStream {
    let mut tcp = at.run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
    tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut greeting = vec![0; PROXY[0].len() + 1];
    tcp.read_exact(&mut greeting).unwrap();
    tcp
}

fn echoes(tcp: &mut TcpStream) {
    tcp.write_all(b"still").unwrap();
    let mut echo = [0; 5];
    tcp.read_exact(&mut echo).unwrap();
    assert_eq!(&echo, b"still");
}

#[test]
fn connections_go_on_over_multipath_tcp_where_udp_is_blocked() {
    let dir = tempfile::tempdir().unwrap();
    let converter = section(dir.path(), "");
    let lan = format!("[lan]\ninterfaces = [\"{LAN}\"]\n");
    let device_of =
        |device: String| format!("default = \"bond\"\n{}{lan}{converter}", with_both(&device));
    let proxy_of = |proxy: String| format!("{}{converter}", with_both(&proxy));
    let Some(e) = begin_as(device_of, proxy_of) else {
        return;
    };
    resolver(&e.lan.server);
    let mut device = e.start();
    carried(&e);
    eventually("packets go over the bond", || {
        of_packets(&e.lan.host, SERVER[0]).ok()
    });
    assert!(!falls_back(&device));

    let block = format!(
        "table inet blocked {{
            chain i {{ type filter hook input priority -400; udp dport {QUIC} drop; }}
            chain o {{ type filter hook output priority -400; udp sport {QUIC} drop; }}
        }}"
    );
    assert!(bulk::nft(&e.w.proxy, &block));
    eventually("it is said that connections fall back", || {
        falls_back(&device).then_some(())
    });
    carried(&e);
    of_packets(&e.lan.host, SERVER[0]).unwrap_err();
    names_are_resolved(&e);

    // One that is open is a connection of Multipath TCP, over both accesses, and outlives either.
    let mut tcp = open(&e.lan.host);
    eventually("it has subflows over both accesses", || {
        let all: Connections = device.get("/v1/connections");
        let mut all = all.connections.into_iter();
        all.find(|c| c.engine == Some(Engine::Mptcp) && !c.fallback && c.subflows.len() == 2)
    });
    for k in [1, 2] {
        e.w.set_link(k, false);
        echoes(&mut tcp);
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
        eventually("it has subflows over both accesses again", || {
            let all: Connections = device.get("/v1/connections");
            let mut all = all.connections.into_iter();
            all.find(|c| c.engine == Some(Engine::Mptcp) && c.subflows.len() == 2)
        });
    }

    assert!(bulk::nft(&e.w.proxy, "delete table inet blocked"));
    eventually("packets go over the bond again", || {
        of_packets(&e.lan.host, SERVER[0]).ok()
    });
    eventually("connections begin over sessions again", || {
        (!falls_back(&device)).then_some(())
    });
    // What has begun over Multipath TCP goes on there.
    echoes(&mut tcp);
    carried(&e);
    assert_eq!(e.in_the_clear(), 0);

    // Killed: reset, as connections of a session are.
    assert_eq!(device.end(Signal::SIGKILL), None);
    let ended = tcp.read(&mut [0]).map_err(|e| e.kind());
    assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    origin(&e.w.device, SERVER[0]).unwrap_err();
    assert_eq!(e.in_the_clear(), 0);
    assert_eq!(e.down().0, Some(0));
}

#[test]
fn a_converter_alone_carries_connections() {
    let dir = tempfile::tempdir().unwrap();
    let converter = section(dir.path(), "");
    let lan = format!("[lan]\ninterfaces = [\"{LAN}\"]\n");
    let device_of = |device: String| {
        let device = with_mptcp_alone(&device);
        format!("default = \"bond\"\n{device}{lan}{converter}")
    };
    let proxy_of = |proxy: String| {
        let allow = "allow = [\"internet\"]\nsources = [\"10.77.0.0/16\", \"fd77::/16\"]\n";
        format!("{}{converter}{allow}", with_mptcp_alone(&proxy))
    };
    let Some(e) = begin_as(device_of, proxy_of) else {
        return;
    };
    resolver(&e.lan.server);
    let mut device = e.start();
    carried(&e);
    names_are_resolved(&e);
    let mut tcp = open(&e.w.device);
    echoes(&mut tcp);
    // Who is refused, is reset: a port at which nobody listens, and the proxy's own addresses.
    for to in [
        SocketAddr::new(SERVER[0], 9),
        "10.77.0.1:22".parse().unwrap(),
    ] {
        let ended = e.lan.host.run(|| {
            // It may be reset before this end knows that it was there.
            let tcp = TcpStream::connect_timeout(&to, Duration::from_secs(2));
            let read = tcp.and_then(|mut tcp| {
                tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
                tcp.read(&mut [0])
            });
            read.map_err(|e| e.kind())
        });
        assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{to}");
    }
    let status: Status = device.get("/v1/status");
    let why = status.lan.unwrap().no_packets.unwrap();
    assert!(why.contains("no engine carries packets"), "{why}");
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(e.in_the_clear(), 0);
    assert_eq!(e.down().0, Some(0));
}

/// Answer of the converter to these bytes, until it ends.
fn answer(device: &Ns, bytes: &[u8]) -> Vec<u8> {
    device.run(|| {
        let to: SocketAddr = format!("10.77.0.1:{CONVERTER}").parse().unwrap();
        let mut tcp = TcpStream::connect_timeout(&to, Duration::from_secs(2)).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        tcp.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        // What it was sent and has not read may reset it, behind the answer.
        let _ = tcp.read_to_end(&mut answer);
        answer
    })
}

/// Request for a connection, with a cookie of whole words.
fn request(to: SocketAddr, cookie: &[u8]) -> Vec<u8> {
    let IpAddr::V4(ip) = to.ip() else {
        panic!("IPv4")
    };
    let words = |bytes: usize| u8::try_from(bytes / 4).unwrap();
    let mut all = vec![1, 0, 0x22, 0x63, 10, 5];
    all.extend(to.port().to_be_bytes());
    all.extend(ip.to_ipv6_mapped().octets());
    if !cookie.is_empty() {
        all.extend([22, 1 + words(cookie.len()), 0, 0]);
        all.extend(cookie);
    }
    all[1] = words(all.len());
    all
}

#[test]
fn a_converter_refuses_what_is_wrong_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let converter = section(dir.path(), "");
    let device_of = |device: String| with_mptcp_alone(&device);
    let strange = "sources = [\"10.77.1.0/30\"]\nallow = [\"internet\"]\n";
    let proxy_of = |proxy: String| format!("{}{converter}{strange}", with_mptcp_alone(&proxy));
    let Some(e) = begin_as(device_of, proxy_of) else {
        return;
    };
    let server = SocketAddr::new(SERVER[0], PORT);
    let refusal = |code: u8| vec![1, 2, 0x22, 0x63, 30, 1, code, 0];
    let good = request(server, COOKIE.as_bytes());
    let loopback = "127.0.0.1:22".parse().unwrap();
    let nobody = SocketAddr::new(SERVER[0], 9);
    for (bytes, code) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], 1),
        (&[2, 1, 0x22, 0x63], 0),
        (&[1, 1, 0x22, 0x63], 3),
        (&request(server, b""), 3),
        (&request(server, b"0123456789abcdef0124"), 32),
        (&request(loopback, COOKIE.as_bytes()), 32),
        (&request(nobody, COOKIE.as_bytes()), 96),
    ] {
        assert_eq!(answer(&e.w.device, bytes), refusal(code), "{bytes:?}");
    }
    // One that says nothing keeps nobody out.
    let silent =
        e.w.device
            .run(|| TcpStream::connect(("10.77.0.1", CONVERTER)).unwrap());
    let mut tcp =
        e.w.device
            .run(|| TcpStream::connect(("10.77.0.1", CONVERTER)).unwrap());
    tcp.write_all(&good).unwrap();
    let greeting = format!("{} ", PROXY[0]);
    let mut read = vec![0; 4 + greeting.len()];
    tcp.read_exact(&mut read).unwrap();
    assert_eq!(
        (&read[..4], &read[4..]),
        (&[1, 1, 0x22, 0x63][..], greeting.as_bytes())
    );
    drop(silent);
    // From another network than those of devices.
    let bound = e.w.device.run(|| {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        let from: SocketAddr = "10.77.2.2:0".parse().unwrap();
        socket.bind(&from.into()).unwrap();
        let to: SocketAddr = format!("10.77.0.1:{CONVERTER}").parse().unwrap();
        socket.connect(&to.into()).unwrap();
        let mut tcp = TcpStream::from(socket);
        tcp.write_all(&good).unwrap();
        let mut answer = Vec::new();
        let _ = tcp.read_to_end(&mut answer);
        answer
    });
    assert_eq!(bound, refusal(32));
}

/// Fast-open connections that this namespace has accepted with data.
fn fast_opened(at: &Ns) -> u64 {
    let text = at.run(|| std::fs::read_to_string("/proc/thread-self/net/netstat").unwrap());
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(' ').collect()).collect();
    let found = lines.chunks(2).find_map(|pair| {
        let at = pair[0].iter().position(|n| *n == "TCPFastOpenPassive")?;
        pair[1][at].parse().ok()
    });
    found.unwrap()
}

/// Drops all but the first packets of connections to a port, until it is dropped.
fn hold_back_handshakes(at: &Ns, port: u16) -> impl Drop {
    struct Held<'a>(&'a Ns);
    impl Drop for Held<'_> {
        fn drop(&mut self) {
            assert!(bulk::nft(self.0, "delete table inet held"));
        }
    }
    let rule = format!(
        "table inet held {{
            chain i {{
                type filter hook input priority -400;
                tcp dport {port} tcp flags & syn == 0 drop;
            }}
        }}"
    );
    assert!(bulk::nft(at, &rule));
    Held(at)
}

/// Time after which a server of Multipath TCP has answered that writes as soon as it has accepted, while
/// the handshake is kept back for 0.3 s; none within 5 s.
fn answers_at_once(e: &Ends) -> Option<Duration> {
    const AT: u16 = 6000;
    let listener = e.w.proxy.run(|| {
        let at = SocketAddr::from(([10, 77, 0, 1], AT));
        let listener = socket::listen(at, true, None).unwrap();
        socket::set_fast_open(&listener, 16).unwrap();
        listener
    });
    let serving = e.w.proxy.spawn(move || {
        let mut open = vec![];
        for _ in 0..2 {
            let (mut tcp, _) = listener.accept().unwrap();
            tcp.write_all(b"answer").unwrap();
            open.push(tcp);
        }
        // Closed, they would be pushed.
        std::thread::sleep(Duration::from_secs(6));
    });
    let ask = || {
        let to = SocketAddr::from(([10, 77, 0, 1], AT));
        let tcp = socket::stream(&to, true).unwrap();
        socket::set_fast_open_connect(&tcp).unwrap();
        tcp.connect(&to.into()).unwrap();
        let mut tcp = TcpStream::from(tcp);
        tcp.write_all(b"question").unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let since = Instant::now();
        let read = tcp.read_exact(&mut [0; 6]).ok().map(|()| since.elapsed());
        (tcp, read)
    };
    // The first has a cookie of TCP come back.
    let (first, read) = e.w.device.run(ask);
    assert!(read.is_some());
    let held = hold_back_handshakes(&e.w.proxy, AT);
    let releases = std::thread::scope(|s| {
        let second = s.spawn(|| e.w.device.run(ask));
        std::thread::sleep(Duration::from_millis(300));
        drop(held);
        second.join().unwrap()
    });
    drop((first, releases.0));
    serving.join().unwrap();
    releases.1
}

/// The kernel's fault, and that the converter goes around it (docs/internals/upstream.md).
#[test]
fn what_a_fast_open_connection_is_answered_arrives() {
    let dir = tempfile::tempdir().unwrap();
    let converter = section(dir.path(), "");
    let device_of = |device: String| {
        format!(
            "default = \"bond\"\n{}{converter}",
            with_mptcp_alone(&device)
        )
    };
    let allow = "allow = [\"internet\"]\n";
    let proxy_of = |proxy: String| format!("{}{converter}{allow}", with_mptcp_alone(&proxy));
    let Some(e) = begin_as(device_of, proxy_of) else {
        return;
    };
    for at in [&e.w.device, &e.w.proxy] {
        at.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_fastopen", "3").unwrap());
    }
    let before = fast_opened(&e.w.proxy);
    match answers_at_once(&e) {
        None => println!("this kernel keeps back what is written before the handshake is complete"),
        Some(t) => println!("this kernel sends what is written before the handshake: {t:?}"),
    }
    let opened = fast_opened(&e.w.proxy);
    assert!(opened > before, "the data came with the first packet");

    let _device = e.start();
    eventually("connections go over the converter", || {
        origin(&e.w.device, SERVER[0]).ok()
    });
    let held = hold_back_handshakes(&e.w.proxy, CONVERTER);
    let mut greeting = vec![0; PROXY[0].len() + 1];
    std::thread::scope(|s| {
        let opening = s.spawn(|| {
            let mut tcp =
                e.w.device
                    .run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
            tcp.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
            tcp.read_exact(&mut greeting).unwrap();
        });
        std::thread::sleep(Duration::from_millis(300));
        drop(held);
        opening.join().unwrap();
    });
    assert!(
        fast_opened(&e.w.proxy) > opened,
        "the request came with the first packet"
    );
}
