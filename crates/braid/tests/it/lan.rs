//! A LAN behind the device: its hosts, which know of nothing, go over the bond or not at all.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_api::{AccessState, Status};
use braid_netns::world::lan::{HOST, LAN, Lan, SERVER};
use braid_netns::world::{Ns, World, eventually};
use nix::sys::signal::Signal;

use crate::support::bulk;
use crate::support::daemon::Daemon;
use crate::support::quic::configs;

const PORT: u16 = 5001;
const DNS: u16 = 53;

/// Addresses under which the server knows the proxy.
const PROXY: [&str; 2] = ["45.11.0.1", "2a0f:45::1"];

struct Ends {
    w: World,
    lan: Arc<Lan>,
    device: String,
    _proxy: Daemon,
    t: tempfile::TempDir,
}

/// A proxy that serves, a device's configuration with `[lan]`, and a server that answers; what goes
/// past the bond is counted.
fn begin(more: &str) -> Option<Ends> {
    let w = World::new(2)?;
    let lan = Arc::new(Lan::beside(&w));
    // What comes from the host's own addresses has gone past the bond.
    if !bulk::nft(&w.proxy, "list ruleset") {
        println!("skipped: nft is not here");
        return None;
    }
    let count = "table inet clear {
        chain c {
            type filter hook prerouting priority -300;
            ip saddr 192.168.100.0/24 counter;
            ip6 saddr fd64::/64 counter;
        }
    }";
    assert!(bulk::nft(&w.proxy, count));
    serve(&lan.server);
    let t = tempfile::tempdir().unwrap();
    let (device, proxy) = configs(t.path(), "");
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let device = format!("{}[lan]\ninterfaces = [\"{LAN}\"]\n{more}", text(&device));
    let proxy = format!("{}[gateway]\n", text(&proxy));
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy);
    Some(Ends {
        w,
        lan,
        device,
        _proxy: proxy,
        t,
    })
}

impl Ends {
    fn start(&self) -> Daemon {
        Daemon::start(&self.w.device, self.t.path(), "up", &self.device)
    }

    /// Packets of the host that have come to the proxy in the clear.
    fn in_the_clear(&self) -> u64 {
        let list = || {
            let mut nft = Command::new("nft");
            nft.args(["list", "table", "inet", "clear"]);
            nft.output().unwrap()
        };
        let text = String::from_utf8(self.w.proxy.run(list).stdout).unwrap();
        let counts = text.split("counter packets ").skip(1);
        let counts = counts.map(|c| c.split(' ').next().unwrap().parse::<u64>().unwrap());
        counts.sum()
    }

    /// Runs `braid down` at the device; gives its exit status and what it printed.
    fn down(&self) -> (Option<i32>, String) {
        let run = || {
            let mut down = Command::new(env!("CARGO_BIN_EXE_braid"));
            let control = self.t.path().join("up.sock");
            down.arg("down").arg("--control").arg(control);
            down.output().unwrap()
        };
        let out = self.w.device.run(run);
        let text = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8(text).unwrap())
    }

    /// Asks the server from where it sees the host: by TCP and by UDP, of each family.
    fn origins(&self) -> Vec<std::io::Result<IpAddr>> {
        let ask = |at: &IpAddr| [origin(&self.lan.host, *at), of_packets(&self.lan.host, *at)];
        SERVER.iter().flat_map(ask).collect()
    }

    /// Waits until the host's connections go over the bond.
    fn bonded(&self) {
        eventually("the host goes over the bond", || {
            let seen = self
                .origins()
                .into_iter()
                .collect::<std::io::Result<Vec<_>>>();
            seen.ok().filter(|seen| *seen == of_the_proxy())
        });
    }

    /// The host is refused, at once.
    fn is_cut_off(&self) {
        for at in SERVER {
            let refused = origin(&self.lan.host, at).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            // Told by ICMP, of which the kernel sends no more than so many.
            assert!(of_packets(&self.lan.host, at).is_err());
        }
    }
}

/// Origins of a host whose connections and packets come from the proxy.
fn of_the_proxy() -> Vec<IpAddr> {
    twice(PROXY.map(|a| a.parse().unwrap()))
}

fn twice(all: [IpAddr; 2]) -> Vec<IpAddr> {
    all.into_iter().flat_map(|a| [a, a]).collect()
}

/// Tells whoever connects from where it came, and then what it wrote.
fn serve(server: &Ns) {
    for at in SERVER {
        for port in [PORT, DNS] {
            let udp = server.run(|| UdpSocket::bind((at, port)).unwrap());
            server.spawn(move || {
                while let Ok((_, from)) = udp.recv_from(&mut [0; 2000]) {
                    let _ = udp.send_to(from.ip().to_string().as_bytes(), from);
                }
            });
        }
        let listener = server.run(|| TcpListener::bind((at, PORT)).unwrap());
        server.spawn(move || {
            while let Ok((mut tcp, from)) = listener.accept() {
                std::thread::spawn(move || {
                    let _ = tcp.write_all(format!("{} ", from.ip()).as_bytes());
                    let _ = std::io::copy(&mut tcp.try_clone().unwrap(), &mut tcp);
                    let _ = tcp.shutdown(Shutdown::Write);
                });
            }
        });
    }
}

/// Asks the server from where it sees the host.
fn origin(host: &Ns, at: IpAddr) -> std::io::Result<IpAddr> {
    host.run(|| {
        let to = SocketAddr::new(at, PORT);
        let mut tcp = TcpStream::connect_timeout(&to, Duration::from_secs(2))?;
        tcp.set_read_timeout(Some(Duration::from_secs(2)))?;
        tcp.write_all(b"hello")?;
        tcp.shutdown(Shutdown::Write)?;
        let mut text = String::new();
        tcp.read_to_string(&mut text)?;
        let (from, said) = text.split_once(' ').ok_or(ErrorKind::UnexpectedEof)?;
        assert_eq!(said, "hello");
        Ok(from.parse().unwrap())
    })
}

/// As [`origin`], by a datagram.
fn of_packets(host: &Ns, at: IpAddr) -> std::io::Result<IpAddr> {
    of_packets_to(host, at, PORT)
}

fn of_packets_to(host: &Ns, at: IpAddr, port: u16) -> std::io::Result<IpAddr> {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0))?;
        udp.connect((at, port))?;
        udp.set_read_timeout(Some(Duration::from_secs(2)))?;
        udp.send(&[7; 1400])?;
        let mut text = [0; 100];
        let n = udp.recv(&mut text)?;
        Ok(std::str::from_utf8(&text[..n]).unwrap().parse().unwrap())
    })
}

#[test]
fn a_host_goes_over_the_bond_while_a_daemon_runs_and_nowhere_else() {
    let Some(e) = begin("") else { return };
    let mut device = e.start();
    e.bonded();
    let status: Status = device.get("/v1/status");
    let lan = status.lan.unwrap();
    assert_eq!((lan.interfaces, lan.kill_switch), (vec![LAN.into()], true));
    assert_eq!((lan.tunnel.len(), lan.no_packets), (2, None));

    // What the device asks of resolvers goes the same way; else it is itself.
    for (at, proxy) in SERVER.into_iter().zip(PROXY) {
        let of = |port| of_packets_to(&e.w.device, at, port).unwrap().to_string();
        assert_eq!(of(DNS), proxy);
        assert_ne!(of(PORT), proxy);
    }

    // One that is open goes on while each access dies in turn, and new ones begin at once.
    let mut open = e
        .lan
        .host
        .run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
    open.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut greeting = [0; 10];
    open.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"45.11.0.1 ");
    for (k, name) in [(1, "nr"), (2, "wifi")] {
        e.w.set_link(k, false);
        open.write_all(b"still").unwrap();
        let mut echo = [0; 5];
        open.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"still");
        e.bonded();
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
        device.becomes(name, AccessState::Active);
    }
    let (code, said) = e.down();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("stop it first"), "{said}");
    e.bonded();

    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    // With the session, whose connections cannot go on.
    let ended = open.read(&mut [0]).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
    e.is_cut_off();
    assert_eq!(e.in_the_clear(), 0);

    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the kill switch is taken back"), "{said}");
    let past: Vec<_> = e.origins().into_iter().map(Result::unwrap).collect();
    assert_eq!(past, twice(HOST));
    assert_ne!(e.in_the_clear(), 0, "what is counted is there");
    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("there is no kill switch"), "{said}");

    // Connections need no forwarding; packets do, and that is told.
    e.w.device.run(|| {
        for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{file}"), "0").unwrap();
        }
    });
    let device = e.start();
    eventually("connections go over the bond", || {
        let seen = origin(&e.lan.host, SERVER[0]).ok();
        seen.filter(|from| of_the_proxy().contains(from))
    });
    eventually("why packets do not is told", || {
        let lan = device.get::<Status>("/v1/status").lan.unwrap();
        let why = lan.no_packets.unwrap();
        why.contains("net.ipv4.ip_forward=1").then_some(())
    });
}

#[test]
fn nothing_is_in_the_clear_when_the_daemon_is_killed() {
    let Some(e) = begin("") else { return };
    // Host that connects all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let mut device = e.start();
    e.bonded();
    let (lan, stopped) = (Arc::clone(&e.lan), Arc::clone(&stop));
    let busy = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for at in SERVER {
                let seen = [origin(&lan.host, at), of_packets(&lan.host, at)];
                for from in seen.into_iter().flatten() {
                    assert!(of_the_proxy().contains(&from), "{from}");
                }
            }
        }
    });
    for after in [0, 3, 20, 70, 150] {
        std::thread::sleep(Duration::from_millis(after));
        assert_eq!(device.end(Signal::SIGKILL), None);
        e.is_cut_off();
        device = e.start();
        e.bonded();
    }
    stop.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    assert_eq!(e.in_the_clear(), 0);
}

#[test]
fn without_a_kill_switch_a_host_leaves_as_the_routes_say() {
    let Some(e) = begin("kill_switch = false\n") else {
        return;
    };
    let mut device = e.start();
    e.bonded();
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    let past: Vec<_> = e.origins().into_iter().map(Result::unwrap).collect();
    assert_eq!(past, twice(HOST));
}
