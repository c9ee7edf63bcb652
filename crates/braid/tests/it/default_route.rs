//! New connections that are not bonded leave by accesses that work; nothing else changes its way.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::{Traffic, is_over, runs_on};
use braid_api::{AccessState, Status};
use braid_mptcp::socket;
use braid_netns::world::home::{asked, ip, reaches, serve};
use braid_netns::world::{
    Ns, SERVICE, SERVICE6, World, device4, device6, eventually, eventually_within, service, wire,
};
use nix::sys::signal::Signal;

const DEVICE: &str = r#"proxy = ["10.77.0.1", "fd77::1"]
[access.nr]
interface = "d1"
[access.wifi]
interface = "d2"
[access.lte]
interface = "d3"
"#;

const PROXY: &str = "proxy = [\"10.77.0.1\", \"fd77::1\"]
[access.nr]
address = \"10.77.1.0/24\"
[access.wifi]
address = \"10.77.2.0/24\"
[access.lte]
address = \"10.77.3.0/24\"
";

/// Longest time until something new has begun.
const LIMIT: Duration = Duration::from_secs(3);

/// Hosts of the Internet, behind the proxy.
const INTERNET: [&str; 2] = ["100.64.9.9", "2001:db8::9"];

fn a(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A device of three accesses with default routes of the metrics 1, 2 and 3, as DHCP sets them,
/// beside a tunnel with half of all addresses.
struct Bench {
    w: World,
    tunnel: Ns,
    /// Servers of plain TCP, of UDP and of MPTCP, at the proxy and in the Internet.
    plain: Vec<SocketAddr>,
    udp: Vec<SocketAddr>,
    mptcp: Vec<SocketAddr>,
}

impl Bench {
    fn new() -> Option<Self> {
        let w = World::new(3)?;
        let tunnel = Ns::new().expect("a further namespace");
        wire((&w.device, "tun0"), (&tunnel, "eth0"));
        for _ in 1..=3 {
            ip(&w.device, &["rule del pref 1000", "-6 rule del pref 1000"]);
        }
        ip(
            &w.device,
            &[
                "addr add 10.8.0.2/24 dev tun0",
                "addr add fd08::2/64 dev tun0 nodad",
                "route add 128.0.0.0/1 via 10.8.0.1 dev tun0",
                "route add 4000::/2 via fd08::1 dev tun0",
            ],
        );
        ip(&tunnel, &["addr add 10.8.0.1/24 dev eth0"]);
        ip(
            &w.proxy,
            &[
                "addr add 100.64.9.9/32 dev lo",
                "addr add 2001:db8::9/128 dev lo nodad",
            ],
        );
        let hosts: Vec<IpAddr> = [SERVICE.into(), SERVICE6.into()].into();
        let all = hosts.iter().copied().chain(INTERNET.map(a));
        let all: Vec<IpAddr> = all.collect();
        Some(Self {
            plain: all.iter().map(|h| serve(&w.proxy, *h)).collect(),
            udp: all.iter().map(|h| echo(&w.proxy, *h)).collect(),
            mptcp: hosts.iter().map(|h| greet(&w.proxy, *h)).collect(),
            w,
            tunnel,
        })
    }

    /// Begins everything that can begin anew: it leaves by one of the accesses `by`.
    fn begins_by(&self, by: &[u8], when: &str) {
        self.begins_to(|_| true, by, when);
    }

    /// Begins all of that to some of the servers.
    fn begins_to(&self, some: fn(&&SocketAddr) -> bool, by: &[u8], when: &str) {
        let since = Instant::now();
        let of: Vec<IpAddr> = by.iter().flat_map(|k| [device4(*k), device6(*k)]).collect();
        for to in self.plain.iter().filter(some) {
            let connect = || TcpStream::connect_timeout(to, LIMIT);
            let s = self.w.device.run(connect);
            let s = s.unwrap_or_else(|e| panic!("{when}: plain TCP to {to}: {e}"));
            let from = s.local_addr().unwrap().ip();
            assert!(of.contains(&from), "{when}: plain TCP to {to} from {from}");
        }
        for to in self.udp.iter().filter(some) {
            let s = self.w.device.run(|| {
                let any = match to {
                    SocketAddr::V4(_) => "0.0.0.0:0",
                    SocketAddr::V6(_) => "[::]:0",
                };
                UdpSocket::bind(any).unwrap()
            });
            s.set_read_timeout(Some(LIMIT)).unwrap();
            s.send_to(b"who am I", to).unwrap();
            let mut text = [0; 64];
            let n = s.recv(&mut text);
            let n = n.unwrap_or_else(|e| panic!("{when}: UDP to {to}: {e}"));
            let from: IpAddr = std::str::from_utf8(&text[..n]).unwrap().parse().unwrap();
            assert!(of.contains(&from), "{when}: UDP to {to} from {from}");
        }
        for to in self.mptcp.iter().filter(some) {
            let connect = || socket::connect(None, *to, true, None);
            let mut s = self.w.device.run(connect).unwrap();
            s.set_read_timeout(Some(LIMIT)).unwrap();
            let read = s.read_exact(&mut [0]);
            read.unwrap_or_else(|e| panic!("{when}: MPTCP to {to}: {e}"));
            let from = s.local_addr().unwrap().ip();
            assert!(of.contains(&from), "{when}: MPTCP to {to} from {from}");
        }
        let took = since.elapsed();
        println!("{when}: all began within {took:?}");
        assert!(took < LIMIT, "{when}: {took:?}");
    }

    /// Neighbours and half of all addresses, which are no business of the accesses.
    fn others_keep_their_way(&self) {
        for (to, by) in [
            ("10.77.1.1", "dev d1 "),
            ("10.77.2.1", "dev d2 "),
            ("203.0.113.9", "via 10.8.0.1 dev tun0 "),
            ("fd77:0:1::1", "dev d1 "),
            ("4001::9", "via fd08::1 dev tun0 "),
        ] {
            let way = asked(&self.w.device, &format!("route get {to}"));
            assert!(way.contains(by), "{way}");
        }
        assert!(reaches(
            &self.w.device,
            None,
            serve(&self.tunnel, a("10.8.0.1"))
        ));
    }

    /// All rules and routes.
    fn tables(&self) -> [String; 4] {
        [
            "-4 -N rule",
            "-6 -N rule",
            "-4 -N route show table all",
            "-6 -N route show table all",
        ]
        .map(|line| asked(&self.w.device, line))
    }

    /// Whether there are rules of ours for what is not bonded.
    fn is_steered(&self) -> bool {
        self.tables()[..2].iter().any(|t| t.contains("32765:"))
    }

    /// Loses whatever either end sends by IPv4 on the first access.
    fn silence(&self, on: bool) {
        self.swallow(on);
        let line = match on {
            true => "neigh replace 10.77.1.1 lladdr 02:00:00:00:00:98 dev d1 nud permanent",
            false => "neigh del 10.77.1.1 dev d1",
        };
        ip(&self.w.device, &[line]);
    }

    /// Loses whatever the proxy sends on the first access, in both families.
    fn swallow(&self, on: bool) {
        let hosts = [device4(1), device6(1)];
        for host in hosts {
            let line = match on {
                true => {
                    format!("neigh replace {host} lladdr 02:00:00:00:00:99 dev p1 nud permanent")
                }
                false => format!("neigh del {host} dev p1"),
            };
            ip(&self.w.proxy, &[&line]);
        }
    }
}

/// Answers each datagram with the address that it came from.
fn echo(ns: &Ns, at: IpAddr) -> SocketAddr {
    let socket = ns.run(|| UdpSocket::bind((at, 0)).unwrap());
    let address = socket.local_addr().unwrap();
    ns.spawn(move || {
        while let Ok((_, from)) = socket.recv_from(&mut [0; 64]) {
            let _ = socket.send_to(from.ip().to_string().as_bytes(), from);
        }
    });
    address
}

/// Sends a byte on each connection of MPTCP.
fn greet(ns: &Ns, at: IpAddr) -> SocketAddr {
    let listen = || socket::listen(SocketAddr::new(at, 0), true, None).unwrap();
    let listener: TcpListener = ns.run(listen);
    let address = listener.local_addr().unwrap();
    ns.spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(&[1]);
        }
    });
    address
}

/// A plain connection that began before, and whether it still carries data.
struct Before {
    here: TcpStream,
    there: TcpStream,
}

impl Before {
    fn new(b: &Bench, from: IpAddr) -> Self {
        let listener = b.w.proxy.run(|| TcpListener::bind((SERVICE, 0)).unwrap());
        let to = listener.local_addr().unwrap();
        let here = b.w.device.run(|| TcpStream::connect(to).unwrap());
        assert_eq!(here.local_addr().unwrap().ip(), from);
        let (there, _) = listener.accept().unwrap();
        here.set_read_timeout(Some(LIMIT)).unwrap();
        there.set_read_timeout(Some(LIMIT)).unwrap();
        Self { here, there }
    }

    fn goes_on(&mut self) {
        self.here.write_all(&[1]).unwrap();
        self.there.read_exact(&mut [0]).unwrap();
        self.there.write_all(&[2]).unwrap();
        self.here.read_exact(&mut [0]).unwrap();
    }
}

fn change(device: &Daemon, access: &str, body: &str) {
    let (head, said) = device.request("PUT", &format!("/v1/accesses/{access}"), body);
    assert!(head.contains(" 200 "), "{head} {said}");
}

fn notes(device: &Daemon) -> Vec<String> {
    device.get::<Status>("/v1/status").notes
}

/// Notes on where new connections leave.
fn notes_on_routes(device: &Daemon) -> Vec<String> {
    let mut all = notes(device);
    all.retain(|n| n.contains("new connections"));
    all
}

fn started(b: &Bench, folder: &std::path::Path) -> Daemon {
    let device = Daemon::start(&b.w.device, folder, "up", DEVICE);
    for access in ["nr", "wifi", "lte"] {
        device.uses(access);
    }
    device
}

#[test]
fn what_begins_leaves_by_an_access_that_works() {
    let Some(b) = Bench::new() else { return };
    let t = tempfile::tempdir().unwrap();
    let before = b.tables();
    let _proxy = Daemon::start(&b.w.proxy, t.path(), "proxy", PROXY);
    let mut device = started(&b, t.path());
    b.begins_by(&[1], "all work");
    assert!(!b.is_steered(), "{:?}", b.tables());
    let mut old = Before::new(&b, device4(1));
    // Paths of both families carry, and so are watched.
    let to = [service(80), SocketAddr::new(SERVICE6.into(), 80)];
    let traffic = to.map(|to| Traffic::start(&b.w, to));
    runs_on(
        &device,
        &[[1, 2, 3].map(device4), [1, 2, 3].map(device6)].concat(),
    );

    // By a death without a word.
    let since = Instant::now();
    b.swallow(true);
    device.becomes("nr", AccessState::Silent);
    eventually("another way of both families", || {
        let note = |n: &String| n.contains("which has the default route, is silent");
        let all = b.tables();
        let both = all[..2].iter().all(|t| t.contains("32765:"));
        (both && notes(&device).iter().any(note)).then_some(())
    });
    println!("found after {:?}", since.elapsed());
    assert!(since.elapsed() < LIMIT);
    b.begins_by(&[2, 3], "nr is silent");
    b.others_keep_their_way();
    traffic.iter().for_each(Traffic::goes_on);
    b.swallow(false);
    device.becomes("nr", AccessState::Active);
    eventually("the way from before", || (!b.is_steered()).then_some(()));
    b.begins_by(&[1], "nr is back");

    // By requests, while it works: what has begun goes on.
    for (body, back, why) in [
        (
            r#"{"enabled": false}"#,
            r#"{"enabled": true}"#,
            "is switched off",
        ),
        (r#"{"backup": true}"#, r#"{"backup": false}"#, "is a backup"),
    ] {
        old.goes_on();
        change(&device, "nr", body);
        b.begins_by(&[2, 3], why);
        b.others_keep_their_way();
        let said = notes(&device);
        let wanted = format!(
            "new connections that are not bonded leave by wifi: nr, which has the default route, \
             {why}"
        );
        assert_eq!(said, [wanted]);
        let mut new = Before::new(&b, device4(2));
        old.goes_on();
        change(&device, "nr", back);
        eventually("the way from before", || (!b.is_steered()).then_some(()));
        old.goes_on();
        new.goes_on();
        assert_eq!(notes(&device), [""; 0]);
    }
    // One that is no default route changes nothing.
    change(&device, "lte", r#"{"backup": true}"#);
    assert!(!b.is_steered(), "{:?}", b.tables());

    change(&device, "nr", r#"{"enabled": false}"#);
    assert!(b.is_steered());
    traffic.into_iter().for_each(Traffic::stop);
    is_over(&b.w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(b.tables(), before);
}

/// Multipath QUIC binds its own sockets; nothing is set for it.
#[test]
fn with_multipath_quic_alone_it_leaves_by_an_access_that_works_as_well() {
    let Some(b) = Bench::new() else { return };
    let t = tempfile::tempdir().unwrap();
    let before = b.tables();
    let (up, proxy) = configs(t.path(), "");
    let text = |file| std::fs::read_to_string(file).unwrap();
    let _proxy = Daemon::start(&b.w.proxy, t.path(), "proxy", &text(proxy));
    let start = || Daemon::start(&b.w.device, t.path(), "up", &text(up.clone()));
    let mut device = start();
    for access in ["nr", "wifi"] {
        device.becomes(access, AccessState::Active);
    }
    b.begins_by(&[1], "all work");
    assert_eq!(b.tables(), before, "nothing is needed");
    let mut old = Before::new(&b, device4(1));

    let since = Instant::now();
    b.silence(true);
    // A session on which nothing flows takes some seconds to find it.
    eventually_within(LIMIT * 3, "another way", || {
        let note = |n: &String| n.contains("which has the default route, is silent");
        (b.is_steered() && notes(&device).iter().any(note)).then_some(())
    });
    assert_eq!(device.state("nr").0, AccessState::Silent);
    println!("found after {:?}", since.elapsed());
    // Paths lead to the proxy's address, which is one of IPv4.
    b.begins_to(|to| to.is_ipv4(), &[2], "nr is silent");
    b.others_keep_their_way();
    let mut new = Before::new(&b, device4(2));
    b.silence(false);
    device.becomes("nr", AccessState::Active);
    eventually("the way from before", || (!b.is_steered()).then_some(()));
    b.begins_by(&[1], "nr is back");
    new.goes_on();
    old.goes_on();
    assert_eq!(notes_on_routes(&device), [""; 0]);

    for (body, back) in [
        (r#"{"backup": true}"#, r#"{"backup": false}"#),
        (r#"{"enabled": false}"#, r#"{"enabled": true}"#),
    ] {
        change(&device, "nr", body);
        b.begins_by(&[2], body);
        b.others_keep_their_way();
        assert_eq!(notes_on_routes(&device).len(), 1, "{:?}", notes(&device));
        change(&device, "nr", back);
        b.begins_by(&[1], back);
        new.goes_on();
        old.goes_on();
    }
    change(&device, "nr", r#"{"enabled": false}"#);
    assert!(b.is_steered());
    assert_eq!(device.end(Signal::SIGKILL), None);
    b.begins_by(&[2], "killed");
    ip(
        &b.w.device,
        &["rule del pref 32765", "-6 rule del pref 32765"],
    );
    let mut device = start();
    // The note comes once all rules are set.
    eventually("another way", || {
        (b.is_steered() && !notes_on_routes(&device).is_empty()).then_some(())
    });
    b.begins_by(&[2], "with the next one");
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(b.tables(), before);
}

#[test]
fn a_killed_daemon_leaves_it_to_the_next_one() {
    let Some(b) = Bench::new() else { return };
    let t = tempfile::tempdir().unwrap();
    let before = b.tables();
    let mut device = started(&b, t.path());
    change(&device, "nr", r#"{"enabled": false}"#);
    b.begins_by(&[2, 3], "nr is off");
    assert_eq!(device.end(Signal::SIGKILL), None);
    b.begins_by(&[2, 3], "killed");
    // As networkd does, which deletes what is not in its files.
    ip(
        &b.w.device,
        &["rule del pref 32765", "-6 rule del pref 32765"],
    );
    let mut device = Daemon::start(&b.w.device, t.path(), "up", DEVICE);
    b.begins_by(&[2, 3], "with the next one");
    b.others_keep_their_way();
    is_over(&b.w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(b.tables(), before);

    // Killed, and followed by one that is to leave all of this alone.
    let mut device = started(&b, t.path());
    change(&device, "nr", r#"{"backup": true}"#);
    assert!(b.is_steered());
    assert_eq!(device.end(Signal::SIGKILL), None);
    let text = format!("{DEVICE}[routes]\nmanage = false\n");
    let mut device = Daemon::start(&b.w.device, t.path(), "up", &text);
    device.becomes("nr", AccessState::Backup);
    assert!(!b.is_steered(), "{:?}", b.tables());
    // SIGHUP takes the key over.
    std::fs::write(
        &device.config,
        DEVICE.replace("\"d1\"", "\"d1\"\nbackup = true"),
    )
    .unwrap();
    device.signal(Signal::SIGHUP);
    // The note comes once all rules are set.
    eventually("another way", || {
        (b.is_steered() && !notes_on_routes(&device).is_empty()).then_some(())
    });
    b.begins_by(&[2, 3], "by the file");
    is_over(&b.w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(b.tables(), before);
}
