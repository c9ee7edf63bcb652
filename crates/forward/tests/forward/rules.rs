//! Rules of steering, over the interfaces of a real LAN.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use braid_core::rules::Rule;
use braid_forward::divert::{
    Counts, DEFAULT, Direct, Divert, Exit, Exits, Turned, engage_kill_switch, remove_routes,
};
use braid_forward::inbound::{Ports, Tproxy};
use braid_mpquic::Options;
use braid_netns::world::home::asked;
use braid_netns::world::lan::{LAN, Lan, SERVER};
use braid_netns::world::{Ns, World, eventually};

use crate::ends::{between, blocking, hosts, of_the_proxy, runtime, serve_service};

/// Ports of the server, by what the rules of these tests do with them.
const BONDED: u16 = 5001;
const BY_RULE: u16 = 5003;
const BLOCKED: u16 = 5004;

/// Tells each that connects, or sends a datagram, from where it came.
fn serve(server: &Ns) {
    for at in SERVER {
        for port in [BONDED, BY_RULE, BLOCKED] {
            let (udp, tcp) = server.run(|| {
                let udp = UdpSocket::bind((at, port)).unwrap();
                (udp, TcpListener::bind((at, port)).unwrap())
            });
            server.spawn(move || {
                while let Ok((_, from)) = udp.recv_from(&mut [0; 2000]) {
                    let _ = udp.send_to(from.ip().to_string().as_bytes(), from);
                }
            });
            server.spawn(move || {
                while let Ok((mut tcp, from)) = tcp.accept() {
                    std::thread::spawn(move || {
                        let _ = tcp.write_all(format!("{}\n", from.ip()).as_bytes());
                        let _ = std::io::copy(&mut tcp.try_clone().unwrap(), &mut tcp);
                    });
                }
            });
        }
    }
}

/// Connects from the host; returns the connection, and from where the server saw it come.
fn connect(host: &Ns, at: IpAddr, port: u16) -> std::io::Result<(TcpStream, IpAddr)> {
    host.run(|| {
        let to = SocketAddr::new(at, port);
        let mut tcp = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
        tcp.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut line = Vec::new();
        while line.last() != Some(&b'\n') {
            let mut byte = [0];
            tcp.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        let text = String::from_utf8(line).unwrap();
        Ok((tcp, text.trim().parse().unwrap()))
    })
}

fn origin(host: &Ns, at: IpAddr, port: u16) -> std::io::Result<IpAddr> {
    connect(host, at, port).map(|(_, from)| from)
}

/// Socket of the host towards the server.
fn udp(host: &Ns, at: IpAddr, port: u16) -> UdpSocket {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0)).unwrap();
        udp.connect((at, port)).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        udp
    })
}

fn ask(udp: &UdpSocket) -> std::io::Result<IpAddr> {
    udp.send(&[7; 600])?;
    let mut text = [0; 100];
    let n = udp.recv(&mut text)?;
    Ok(std::str::from_utf8(&text[..n]).unwrap().parse().unwrap())
}

fn rules(text: &str) -> Vec<Rule> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Exits by access k, in the namespace of the device.
fn exits(k: u32) -> [Option<Exit>; 2] {
    let by = nix::net::if_::if_nametoindex(format!("d{k}").as_str()).unwrap();
    let exit = |gateway: String, network: String| {
        Some(Exit {
            by,
            gateway: Some(gateway.parse().unwrap()),
            onlink: false,
            networks: vec![network.parse().unwrap()],
        })
    };
    [
        exit(format!("10.77.{k}.1"), format!("10.77.{k}.0/30")),
        exit(format!("fd77:0:{k}::1"), format!("fd77:0:{k}::/64")),
    ]
}

async fn led(direct: &mut Direct, exits: Exits) -> Vec<Turned> {
    let (turned, done) = direct.lead(&exits).await;
    done.unwrap();
    turned
}

fn of_access(k: u32) -> [IpAddr; 2] {
    let all = [format!("10.77.{k}.2"), format!("fd77:0:{k}::2")];
    all.map(|a| a.parse().unwrap())
}

fn both<T>(f: impl Fn(IpAddr) -> std::io::Result<T>) -> [T; 2] {
    SERVER.map(|at| f(at).unwrap())
}

#[test]
fn a_rule_sends_flows_by_an_access_or_refuses_them() {
    let Some(w) = World::new(2) else { return };
    let lan = Arc::new(Lan::beside(&w));
    serve(&lan.server);
    // Rules stand above the kill switch.
    w.device
        .run(|| engage_kill_switch(&[LAN.into()], false).unwrap());
    let there = Arc::clone(&lan);
    between(
        &w,
        &Options::default(),
        serve_service,
        |carrier| async move {
            let listener = Tproxy::listen().unwrap();
            let mut direct = Direct::default();
            let two = Exits::from([("a".into(), exits(1)), ("b".into(), exits(2))]);
            let all = rules(concat!(
                r#"{"name": "far", "to": "203.0.113.0/24", "block": true}"#,
                "\n",
                r#"{"port": "5003", "protocol": ["tcp", "udp"], "direct": ["b", "a"]}"#,
                "\n",
                r#"{"client": ["192.168.7.0/24", "192.168.100.0/24", "fd64::/64"], "port": [9, 5004], "block": true}"#,
            ));
            let steered = direct.add(&all, |_| 0).await.unwrap();
            led(&mut direct, two.clone()).await;
            let ports = BTreeMap::from([(0, listener.ports())]);
            let divert = Divert::start(&hosts(), ports.clone(), steered).await;
            let mut divert = divert.unwrap();
            let serving = tokio::spawn(listener.serve(carrier, |_| {}));

            let lan = Arc::clone(&there);
            blocking(move || {
                let tcp = |port| both(|at| origin(&lan.host, at, port));
                assert_eq!(tcp(BONDED), of_the_proxy());
                assert_eq!(tcp(BY_RULE), of_access(2));
                assert_eq!(both(|at| ask(&udp(&lan.host, at, BY_RULE))), of_access(2));
                for at in SERVER {
                    let e = origin(&lan.host, at, BLOCKED).unwrap_err();
                    assert_eq!(e.kind(), ErrorKind::ConnectionRefused, "{e}");
                    let e = ask(&udp(&lan.host, at, BLOCKED)).unwrap_err();
                    let told = [libc::EHOSTUNREACH, libc::EACCES];
                    assert!(told.contains(&e.raw_os_error().unwrap()), "at once: {e}");
                }
            })
            .await;
            let counts = divert.counts().unwrap();
            let flows = |counts: &Counts, n| counts[&n].flows;
            assert_eq!([1, 2, 3, DEFAULT].map(|n| flows(&counts, n)), [0, 4, 4, 2]);
            let by_rule = counts[&2];
            assert!(
                by_rule.up.bytes > 1200 && by_rule.down.packets >= 4,
                "{by_rule:?}"
            );
            // Bytes of the bonded are counted, too, and of the refused those that came.
            assert!(
                counts[&DEFAULT].up.packets >= 6 && counts[&DEFAULT].down.packets >= 4,
                "{counts:?}"
            );
            assert!(
                counts[&3].up.bytes > 1200 && counts[&3].down.packets == 0,
                "{counts:?}"
            );

            // Flows turn to the other access, and get its address.
            let lan = Arc::clone(&there);
            let begun = tokio::task::spawn_blocking(move || {
                let open = connect(&lan.host, SERVER[0], BONDED).unwrap().0;
                let flow = udp(&lan.host, SERVER[0], BY_RULE);
                assert_eq!(ask(&flow).unwrap(), of_access(2)[0]);
                (open, flow)
            });
            let (open, flow) = begun.await.unwrap();
            let one = Exits::from([("a".into(), exits(1))]);
            let turned = led(&mut direct, one).await;
            assert_eq!(turned.len(), 2);
            for way in &turned {
                assert_eq!(way.by.as_deref(), Some("a"));
            }
            assert_eq!(direct.by(&turned[0].accesses), [Some("a"); 2]);
            eventually("its flow has the other source", || {
                (ask(&flow).ok()? == of_access(1)[0]).then_some(())
            });
            let lan = Arc::clone(&there);
            blocking(move || {
                assert_eq!(both(|at| origin(&lan.host, at, BY_RULE)), of_access(1));
            })
            .await;

            // None works: they are refused, and do not leave elsewhere.
            led(&mut direct, Exits::new()).await;
            let lan = Arc::clone(&there);
            blocking(move || {
                for at in SERVER {
                    let e = origin(&lan.host, at, BY_RULE).unwrap_err();
                    assert_eq!(e.kind(), ErrorKind::ConnectionRefused, "at once: {e}");
                    assert!(ask(&udp(&lan.host, at, BY_RULE)).is_err());
                }
                assert_eq!(both(|at| origin(&lan.host, at, BONDED)), of_the_proxy());
            })
            .await;
            led(&mut direct, two).await;

            let lan = Arc::clone(&there);
            let connected = tokio::task::spawn_blocking(move || {
                let (tcp, from) = connect(&lan.host, SERVER[0], BY_RULE).unwrap();
                assert_eq!(from, of_access(2)[0]);
                tcp
            });
            let direct_one = connected.await.unwrap();

            // Other rules: what the old one had counted stays, and so does what is open.
            let before = divert.counts().unwrap();
            let all = rules(concat!(
                r#"{"port": 5001, "block": true}"#,
                "\n",
                r#"{"port": "5003", "protocol": ["tcp", "udp"], "direct": ["b", "a"]}"#,
            ));
            let steered = direct.add(&all, |_| 0).await.unwrap();
            divert.set_rules(steered.clone(), ports.clone()).unwrap();
            direct.keep(&steered).await.unwrap();
            let after = divert.counts().unwrap();
            assert_eq!((after[&2], after[&4].flows), (before[&2], 0));
            let lan = Arc::clone(&there);
            blocking(move || {
                for mut open in [open, direct_one] {
                    open.write_all(b"still there").unwrap();
                    let mut echo = [0; 11];
                    open.read_exact(&mut echo).unwrap();
                    assert_eq!(&echo, b"still there");
                }
                assert!(origin(&lan.host, SERVER[0], BONDED).is_err());
                assert_eq!(both(|at| origin(&lan.host, at, BY_RULE)), of_access(2));
                assert_eq!(both(|at| origin(&lan.host, at, BLOCKED)), of_the_proxy());
            })
            .await;

            // Without them all is as it was.
            divert.set_rules(vec![], ports.clone()).unwrap();
            direct.keep(&[]).await.unwrap();
            assert_eq!(divert.counts().unwrap(), Counts::new());
            let lan = Arc::clone(&there);
            blocking(move || assert_eq!(both(|at| origin(&lan.host, at, BONDED)), of_the_proxy()))
                .await;
            serving.abort();
            divert.close().await.unwrap();
        },
    );
    for family in ["-4", "-6"] {
        let rules = asked(&w.device, &format!("{family} rule"));
        assert!(!rules.contains("fwmark"), "{rules}");
        let routes = asked(&w.device, &format!("{family} route show table all"));
        assert!(!routes.contains("769999"), "{routes}");
    }
}

#[test]
fn ways_of_a_killed_daemon_are_removed() {
    let Some(w) = World::new(1) else { return };
    w.device.run(|| {
        runtime().block_on(async {
            let mut direct = Direct::default();
            let all = rules(r#"{"direct": "a"}"#);
            let steered = direct.add(&all, |_| 0).await.unwrap();
            led(&mut direct, Exits::from([("a".into(), exits(1))])).await;
            assert_eq!(steered.len(), 1);
            drop(direct);
        });
    });
    let left = || asked(&w.device, "-4 route show table 76999900");
    let routes = left();
    assert!(routes.contains("default via 10.77.1.1 dev d1"), "{routes}");
    assert!(routes.contains("prohibit default"), "{routes}");
    w.device.run(|| {
        runtime().block_on(remove_routes()).unwrap();
    });
    eventually("its routes are gone", || {
        left().trim().is_empty().then_some(())
    });
    assert!(!asked(&w.device, "-4 rule").contains("fwmark"));
}

#[test]
fn hosts_are_told_by_their_interfaces() {
    let Some(w) = World::new(1) else { return };
    let lan = Lan::beside(&w);
    serve(&lan.server);
    let mac = asked(&lan.host, "link show eth0");
    let mac = mac.split("link/ether ").nth(1).unwrap();
    let mac = mac.split(' ').next().unwrap().to_owned();
    w.device.run(|| {
        runtime().block_on(async {
            let listener = Tproxy::listen().unwrap();
            let start = async |all: &str| {
                let mut direct = Direct::default();
                let steered = direct.add(&rules(all), |_| 0).await.unwrap();
                led(&mut direct, Exits::from([("a".into(), exits(1))])).await;
                let started =
                    Divert::start(&hosts(), [(0, listener.ports())].into(), steered).await;
                (started.unwrap(), direct)
            };
            let all = format!(
                r#"{{"client": ["02:00:00:00:00:09", "{mac}"], "dscp": "cs0", "direct": "a"}}"#
            );
            let (divert, _direct) = start(&all).await;
            assert_eq!(both(|at| ask(&udp(&lan.host, at, BONDED))), of_access(1));
            drop(divert);
            let other = r#"{"client": "02:00:00:00:00:09", "direct": "a"}
{"dscp": ["ef", "cs1"], "direct": "a"}
{"block": true}"#;
            let (mut divert, _direct) = start(other).await;
            for at in SERVER {
                assert!(ask(&udp(&lan.host, at, BONDED)).is_err());
            }
            let counts = divert.counts().unwrap();
            assert_eq!([1, 2, 3].map(|n| counts[&n].flows), [0, 0, 2]);
            // As it is in force again, it is met.
            let marked = udp(&lan.host, SERVER[0], BONDED);
            socket2::SockRef::from(&marked).set_tos_v4(46 << 2).unwrap();
            assert_eq!(ask(&marked).unwrap(), of_access(1)[0]);
            assert_eq!(divert.counts().unwrap()[&2].flows, 1);
            divert.close().await.unwrap();
        });
    });
}

/// Runs a test at a device whose first access is all that there is, with a listener that nobody
/// serves.
fn at_a_device(w: &World, test: impl AsyncFnOnce(Ports, &mut Direct) + Send) {
    w.device.run(|| {
        runtime().block_on(async {
            let listener = Tproxy::listen().unwrap();
            let mut direct = Direct::default();
            led(&mut direct, Exits::from([("a".into(), exits(1))])).await;
            test(listener.ports(), &mut direct).await;
        });
    });
}

#[test]
fn a_flow_is_counted_once_whether_or_not_it_is_answered() {
    let Some(w) = World::new(1) else { return };
    let lan = Lan::beside(&w);
    at_a_device(&w, async |ports, direct| {
        let steered = direct
            .add(&rules(r#"{"to": "45.11.0.77", "direct": "a"}"#), |_| 0)
            .await
            .unwrap();
        led(direct, Exits::from([("a".into(), exits(1))])).await;
        let divert = Divert::start(&hosts(), [(0, ports)].into(), steered).await;
        let mut divert = divert.unwrap();
        for sent in 1..=2 {
            let flow = udp(&lan.host, "45.11.0.77".parse().unwrap(), BY_RULE);
            for _ in 0..3 {
                flow.send(&[7; 100]).unwrap();
            }
            let seen = divert.counts().unwrap()[&1];
            assert_eq!(
                (seen.flows, seen.up.packets, seen.up.bytes),
                (sent, 3 * sent, 384 * sent)
            );
        }
        divert.close().await.unwrap();
    });
}

#[test]
fn rules_have_many_values() {
    let Some(w) = World::new(1) else { return };
    let lan = Lan::beside(&w);
    serve(&lan.server);
    at_a_device(&w, async |ports, direct| {
        let list = |of: &dyn Fn(u32) -> String| {
            (0..256)
                .map(|i| format!("\"{}\"", of(i)))
                .collect::<Vec<_>>()
                .join(",")
        };
        // The last of each is met.
        let client = list(&|i| format!("192.168.{}.10", (100 + 1 + i) % 256));
        let to = list(&|i| format!("45.{}.0.10", (11 + 1 + i) % 256));
        let port = list(&|i| (5001 - 255 + i).to_string());
        let rule =
            format!(r#"{{"client": [{client}], "to": [{to}], "port": [{port}], "direct": "a"}}"#);
        let all = [rule, r#"{"block": true}"#.to_owned()].join("\n");
        let steered = direct.add(&rules(&all), |_| 0).await.unwrap();
        led(direct, Exits::from([("a".into(), exits(1))])).await;
        let divert = Divert::start(&hosts(), [(0, ports)].into(), steered).await;
        let mut divert = divert.unwrap();
        assert_eq!(
            ask(&udp(&lan.host, SERVER[0], BONDED)).unwrap(),
            of_access(1)[0]
        );
        assert!(ask(&udp(&lan.host, SERVER[0], BY_RULE)).is_err());
        let counts = divert.counts().unwrap();
        assert_eq!([1, 2].map(|n| counts[&n].flows), [1, 1]);
        divert.close().await.unwrap();
    });
}
