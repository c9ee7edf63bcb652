//! Hosts of a LAN that know of nothing, and destinations beyond the proxy.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use braid_forward::Reach;
use braid_forward::carrier::OverSession;
use braid_forward::divert::{Divert, Setting, engage_kill_switch, release_kill_switch};
use braid_forward::inbound::Tproxy;
use braid_mpquic::Options;
use braid_netns::world::home::{asked, ip};
use braid_netns::world::lan::{HOST, LAN, Lan, SERVER};
use braid_netns::world::{Ns, World, eventually, wire};
use tokio::sync::mpsc;

use crate::ends::{
    between, blocking, hosts, of_the_proxy, on_both_lanes, serve_service, with_sessions,
};

const PORT: u16 = 5001;
const CLOSED: u16 = 5002;

/// Serves at the server's addresses: tells each that connects from where it came, once it has ended
/// its own direction, and sends back what it wrote.
fn tell_origins(server: &Ns, all: &[IpAddr]) {
    for at in all.iter().copied() {
        let listener = server.run(|| TcpListener::bind((at, PORT)).unwrap());
        server.spawn(move || {
            while let Ok((mut tcp, from)) = listener.accept() {
                let mut said = Vec::new();
                let _ = tcp.read_to_end(&mut said);
                let from = from.ip().to_string();
                let _ = tcp.write_all(&[from.as_bytes(), b" ", &said].concat());
            }
        });
    }
}

/// Says something to the server from a host; returns from where the server saw it come.
fn origin(host: &Ns, at: IpAddr, port: u16) -> std::io::Result<IpAddr> {
    host.run(|| {
        let to = SocketAddr::new(at, port);
        let mut tcp = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
        tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
        tcp.write_all(b"hello")?;
        tcp.shutdown(std::net::Shutdown::Write)?;
        let mut text = String::new();
        tcp.read_to_string(&mut text)?;
        let (from, said) = text.split_once(' ').expect("an answer");
        assert_eq!(said, "hello");
        Ok(from.parse().unwrap())
    })
}

#[test]
fn hosts_of_a_lan_connect_by_the_session() {
    on_both_lanes(|options| {
        let Some(w) = World::new(2) else { return };
        let lan = Arc::new(Lan::beside(&w));
        tell_origins(&lan.server, &SERVER);
        // Past the bond: as themselves.
        let past = || SERVER.map(|at| origin(&lan.host, at, PORT).unwrap());
        assert_eq!(past(), HOST);
        let (tell, mut told) = mpsc::unbounded_channel();
        let there = Arc::clone(&lan);
        between(&w, &options, serve_service, |carrier| async move {
            let listener = Tproxy::listen().unwrap();
            let divert = Divert::start(&hosts(), [(0, listener.ports())].into(), vec![]).await;
            let divert = divert.unwrap();
            let told_by = move |why: String| drop(tell.send(why));
            let open = listener.open();
            let serving = tokio::spawn(listener.serve(carrier, told_by));
            assert_eq!(open.count(), 0);
            blocking(move || {
                let by_session = SERVER.map(|at| origin(&there.host, at, PORT).unwrap());
                assert_eq!(by_session, of_the_proxy());
                let held = there
                    .host
                    .run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
                eventually("it counts", || (open.count() == 1).then_some(()));
                drop(held);
                eventually("it has ended", || (open.count() == 0).then_some(()));
                for at in SERVER {
                    let e = origin(&there.host, at, CLOSED).unwrap_err();
                    assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "{e}");
                }
            })
            .await;
            for at in SERVER {
                let told = told.recv().await.unwrap();
                let to = SocketAddr::new(at, CLOSED);
                assert!(told.contains(&format!("{to}: nobody listens")), "{told}");
            }
            serving.abort();
            divert.close().await.unwrap();
        });
        // As it was.
        assert_eq!(past(), HOST);
        for family in ["-4", "-6"] {
            let rules = asked(&w.device, &format!("{family} rule"));
            assert!(!rules.contains("fwmark"), "{rules}");
            let routes = asked(&w.device, &format!("{family} route show table all"));
            assert!(!routes.contains("76999999"), "{routes}");
        }
    });
}

/// Another host, on a second interface of the LAN, that serves at its address.
fn neighbour(w: &World) -> (Ns, IpAddr) {
    let other = Ns::new().unwrap();
    wire((&w.device, "lan1"), (&other, "eth0"));
    ip(&w.device, &["addr add 192.168.101.1/24 dev lan1"]);
    let lines = [
        "addr add 192.168.101.10/24 dev eth0",
        "route add default via 192.168.101.1",
    ];
    ip(&other, &lines);
    let at = "192.168.101.10".parse().unwrap();
    tell_origins(&other, &[at]);
    (other, at)
}

#[test]
fn hosts_of_a_lan_reach_each_other_and_know_what_the_proxy_does_not_reach() {
    let Some(w) = World::new(2) else { return };
    let lan = Arc::new(Lan::beside(&w));
    let (_other, neighbour) = neighbour(&w);
    ip(&w.proxy, &["-6 route del default"]);
    tell_origins(&lan.server, &SERVER);
    let there = Arc::clone(&lan);
    with_sessions(
        &w,
        &Options::default(),
        serve_service,
        |mut sessions| async move {
            let listener = Tproxy::listen().unwrap();
            let setting = Setting {
                lan: vec![LAN.into(), "lan1".into()],
                ..hosts()
            };
            let mut divert = Divert::start(&setting, [(0, listener.ports())].into(), vec![])
                .await
                .unwrap();
            let carrier = Arc::new(OverSession::new(sessions.clone()));
            let _serving = tokio::spawn(listener.serve(carrier, |_| {}));
            let session = sessions.wait_for(Option::is_some).await.unwrap().clone();
            let reach = Reach::ask(&session.unwrap()).await.unwrap();
            assert_eq!(
                reach,
                Reach {
                    v4: true,
                    v6: false
                }
            );
            divert.divert_v6(reach.v6).unwrap();
            blocking(move || {
                assert_eq!(origin(&there.host, neighbour, PORT).unwrap(), HOST[0]);
                assert_eq!(
                    origin(&there.host, SERVER[0], PORT).unwrap(),
                    of_the_proxy()[0]
                );
                let e = origin(&there.host, SERVER[1], PORT).unwrap_err();
                assert_eq!(
                    e.kind(),
                    std::io::ErrorKind::ConnectionRefused,
                    "at once: {e}"
                );
            })
            .await;
            divert.divert_v6(true).unwrap();
        },
    );
}

#[test]
fn the_kill_switch_refuses_at_once_what_would_leave_past_the_bond() {
    let Some(w) = World::new(1) else { return };
    let lan = Lan::beside(&w);
    tell_origins(&lan.server, &SERVER);
    w.device
        .run(|| engage_kill_switch(&[LAN.into()], false).unwrap());
    let since = Instant::now();
    for at in SERVER {
        let e = origin(&lan.host, at, PORT).unwrap_err();
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionRefused, "{e}");
        // By ICMP: a socket is told when it sends again.
        lan.host.run(|| {
            let any: IpAddr = match at {
                IpAddr::V4(_) => [0; 4].into(),
                IpAddr::V6(_) => [0; 16].into(),
            };
            let udp = UdpSocket::bind((any, 0)).unwrap();
            udp.connect((at, PORT)).unwrap();
            udp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            udp.send(b"x").unwrap();
            let e = udp.recv(&mut [0]).unwrap_err();
            let told = [libc::EHOSTUNREACH, libc::EACCES];
            assert!(told.contains(&e.raw_os_error().unwrap()), "{e}");
        });
    }
    assert!(since.elapsed() < Duration::from_secs(4));
    w.device.run(|| release_kill_switch().unwrap());
    assert_eq!(SERVER.map(|at| origin(&lan.host, at, PORT).unwrap()), HOST);
}
