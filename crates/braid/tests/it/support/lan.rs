//! A LAN behind a device in a world of its own, whose packets past the bond are counted.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use braid_netns::world::lan::{LAN, Lan, SERVER};
use braid_netns::world::{Ns, World, eventually};

use super::bulk;
use super::daemon::Daemon;
use super::quic::configs;

pub(crate) const PORT: u16 = 5001;
pub(crate) const DNS: u16 = 53;

/// Addresses under which the server knows the proxy.
pub(crate) const PROXY: [&str; 2] = ["45.11.0.1", "2a0f:45::1"];

pub(crate) struct Ends {
    pub(crate) w: World,
    pub(crate) lan: Arc<Lan>,
    pub(crate) device: String,
    pub(crate) proxy: Daemon,
    proxy_config: String,
    pub(crate) t: tempfile::TempDir,
}

/// A proxy that serves, a device's configuration with `[lan]`, and a server that answers; what goes
/// past the bond is counted.
pub(crate) fn begin(more: &str) -> Option<Ends> {
    begin_with(more, |proxy| proxy)
}

/// As [`begin`], with another configuration of the proxy.
pub(crate) fn begin_with(more: &str, proxy_of: impl Fn(String) -> String) -> Option<Ends> {
    let lan = format!("[lan]\ninterfaces = [\"{LAN}\"]\n{more}");
    begin_as(|device| format!("{device}{lan}"), proxy_of)
}

/// As [`begin`], with programs of the device instead of hosts: `keys` stand in front of all tables, and
/// `more` behind them.
pub(crate) fn begin_own(keys: &str, more: &str) -> Option<Ends> {
    let device_of = |device| format!("default = \"bond\"\n{keys}{device}{more}");
    begin_as(device_of, |proxy| proxy)
}

pub(crate) fn begin_as(
    device_of: impl Fn(String) -> String,
    proxy_of: impl Fn(String) -> String,
) -> Option<Ends> {
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
    let device = device_of(text(&device));
    let proxy_config = proxy_of(format!("{}[gateway]\n", text(&proxy)));
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy_config);
    Some(Ends {
        w,
        lan,
        device,
        proxy,
        proxy_config,
        t,
    })
}

impl Ends {
    pub(crate) fn start(&self) -> Daemon {
        Daemon::start(&self.w.device, self.t.path(), "up", &self.device)
    }

    pub(crate) fn proxy_config(&self) -> &str {
        &self.proxy_config
    }

    pub(crate) fn start_proxy(&self) -> Daemon {
        Daemon::start(&self.w.proxy, self.t.path(), "proxy", &self.proxy_config)
    }

    /// Packets of the host that have come to the proxy in the clear.
    pub(crate) fn in_the_clear(&self) -> u64 {
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
    pub(crate) fn down(&self) -> (Option<i32>, String) {
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
    pub(crate) fn origins(&self) -> Vec<std::io::Result<IpAddr>> {
        let ask = |at: &IpAddr| [origin(&self.lan.host, *at), of_packets(&self.lan.host, *at)];
        SERVER.iter().flat_map(ask).collect()
    }

    /// Waits until the host's connections go over the bond.
    pub(crate) fn bonded(&self) {
        eventually("the host goes over the bond", || {
            let seen = self
                .origins()
                .into_iter()
                .collect::<std::io::Result<Vec<_>>>();
            seen.ok().filter(|seen| *seen == of_the_proxy())
        });
    }

    /// The host is refused, at once.
    pub(crate) fn is_cut_off(&self) {
        for at in SERVER {
            let refused = origin(&self.lan.host, at).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
            // Told by ICMP, of which the kernel sends no more than so many.
            assert!(of_packets(&self.lan.host, at).is_err());
        }
    }
}

/// Origins of a host whose connections and packets come from the proxy.
pub(crate) fn of_the_proxy() -> Vec<IpAddr> {
    twice(PROXY.map(|a| a.parse().unwrap()))
}

pub(crate) fn twice(all: [IpAddr; 2]) -> Vec<IpAddr> {
    all.into_iter().flat_map(|a| [a, a]).collect()
}

/// Tells whoever connects from where it came, and then what it wrote.
pub(crate) fn serve(server: &Ns) {
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
pub(crate) fn origin(host: &Ns, at: IpAddr) -> std::io::Result<IpAddr> {
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
pub(crate) fn of_packets(host: &Ns, at: IpAddr) -> std::io::Result<IpAddr> {
    of_packets_to(host, at, PORT)
}

pub(crate) fn of_packets_to(host: &Ns, at: IpAddr, port: u16) -> std::io::Result<IpAddr> {
    of_packets_within(host, at, port, Duration::from_secs(2))
}

pub(crate) fn of_packets_within(
    host: &Ns,
    at: IpAddr,
    port: u16,
    patience: Duration,
) -> std::io::Result<IpAddr> {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0))?;
        udp.connect((at, port))?;
        udp.set_read_timeout(Some(patience))?;
        udp.send(&[7; 1400])?;
        let mut text = [0; 100];
        let n = udp.recv(&mut text)?;
        Ok(std::str::from_utf8(&text[..n]).unwrap().parse().unwrap())
    })
}
