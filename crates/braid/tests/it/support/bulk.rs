//! Bulk data in one direction, links of a few Mbit/s, and filters.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_api::Connections;
use braid_mptcp::socket;

use super::daemon::Daemon;
use braid_netns::world::{Ns, World, eventually_within};

/// Where data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// To the proxy.
    Up,
    /// To the device.
    Down,
    /// Nowhere.
    Idle,
    /// To the proxy, where nobody reads it.
    UpUnread,
    /// To the device, where nobody reads it.
    DownUnread,
}

/// A connection that moves data for as long as it is not dropped.
pub(crate) struct Bulk {
    way: Way,
    stop: Arc<AtomicBool>,
    ends: [TcpStream; 2],
    /// Subflows join where somebody listens.
    _listener: TcpListener,
    threads: Vec<JoinHandle<()>>,
}

impl Bulk {
    pub(crate) fn start(w: &World, to: SocketAddr, way: Way) -> Self {
        let listen = || socket::listen(to, true, None).unwrap();
        let listener = w.proxy.run(listen);
        let accepting = listener.try_clone().unwrap();
        let accepted = std::thread::spawn(move || accepting.accept().unwrap().0);
        let connect = || socket::connect(None, to, true, None).unwrap();
        let mut device: TcpStream = w.device.run(connect);
        // The kernel joins no subflow before the other end has spoken.
        device.write_all(b"?").unwrap();
        let mut proxy = accepted.join().unwrap();
        proxy.read_exact(&mut [0]).unwrap();
        proxy.write_all(b"!").unwrap();
        device.read_exact(&mut [0]).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let ends = [device.try_clone().unwrap(), proxy.try_clone().unwrap()];
        let mut threads = Vec::new();
        let (from, to) = match way {
            Way::Down | Way::DownUnread => (proxy, device),
            _ => (device, proxy),
        };
        if way != Way::Idle {
            threads.push(write_all(from, Arc::clone(&stop)));
        }
        if matches!(way, Way::Up | Way::Down) {
            threads.push(read_all(to, Arc::clone(&stop)));
        }
        Self {
            way,
            stop,
            ends,
            _listener: listener,
            threads,
        }
    }

    /// Waits until each of these accesses moves data in this direction.
    pub(crate) fn moves(&self, device: &Daemon, accesses: &[&str]) {
        self.moves_within(Duration::from_secs(10), device, accesses);
    }

    pub(crate) fn moves_within(&self, limit: Duration, device: &Daemon, accesses: &[&str]) {
        let port = self.ends[0].peer_addr().unwrap().port();
        let moved = || -> Vec<u64> {
            let all: Connections = device.get("/v1/connections");
            let mine = all.connections.iter().flat_map(|c| &c.subflows);
            let mine: Vec<_> = mine.filter(|s| s.remote.port() == port).collect();
            let of = |a: &&str| {
                let on = mine.iter().filter(|s| s.access.as_deref() == Some(*a));
                on.map(|s| match self.way {
                    Way::Up => s.acked_bytes,
                    _ => s.received_bytes,
                })
                .sum()
            };
            accesses.iter().map(of).collect()
        };
        let mut before = moved();
        eventually_within(limit, &format!("{accesses:?} move data"), || {
            std::thread::sleep(Duration::from_millis(200));
            let now = moved();
            let grew = now.iter().zip(&before).all(|(n, b)| *n > b + 50_000);
            before = now;
            grew.then_some(())
        });
    }
}

impl Drop for Bulk {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for end in &self.ends {
            let _ = end.shutdown(Shutdown::Both);
        }
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }
}

fn write_all(mut to: TcpStream, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    to.set_write_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    std::thread::spawn(move || {
        let block = vec![0x5a; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            match to.write(&block) {
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    })
}

fn read_all(mut from: TcpStream, stop: Arc<AtomicBool>) -> JoinHandle<()> {
    from.set_read_timeout(Some(Duration::from_millis(200)))
        .unwrap();
    std::thread::spawn(move || {
        let mut block = vec![0; 1 << 16];
        while !stop.load(Ordering::Relaxed) {
            match from.read(&mut block) {
                Ok(0) => return,
                Ok(_) => {}
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    })
}

/// Configurations of both ends with an IPv6 address of the proxy as well.
pub(crate) fn of_both_families(device: &str, proxy: &str) -> (String, String) {
    let both = |c: &str| c.replacen("\"10.77.0.1\"", "[\"10.77.0.1\", \"fd77::1\"]", 1);
    let device = both(device).replace("interface = 1", "interface = 2");
    (device, both(proxy))
}

/// Runs a command in a namespace; says whether it succeeded.
pub(crate) fn command(ns: &Ns, program: &str, words: &str) -> bool {
    let mut c = Command::new(program);
    c.args(words.split(' ')).stdin(Stdio::null());
    c.stdout(Stdio::null()).stderr(Stdio::null());
    ns.run(|| c.status().is_ok_and(|s| s.success()))
}

/// Output of a command.
pub(crate) fn output(ns: &Ns, program: &str, words: &str) -> String {
    let mut c = Command::new(program);
    c.args(words.split(' ')).stdin(Stdio::null());
    let out = ns.run(|| c.output().unwrap());
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Adds rules of nftables; says whether they were taken.
pub(crate) fn nft(ns: &Ns, rules: &str) -> bool {
    let mut c = Command::new("nft");
    ns.run(|| c.arg(rules).status().is_ok_and(|s| s.success()))
}

/// Gives each access this many Mbit/s in each direction; says whether that could be done.
pub(crate) fn limited(w: &World, accesses: u8, mbps: u32) -> bool {
    let shape = |ns: &Ns, name: String| {
        let words =
            format!("qdisc add dev {name} root tbf rate {mbps}mbit burst 64kb latency 60ms");
        command(ns, "tc", &words)
    };
    (1..=accesses).all(|k| shape(&w.device, format!("d{k}")) && shape(&w.proxy, format!("p{k}")))
}
