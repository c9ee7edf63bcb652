//! Traffic of a device that is verified, and where it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_access::arrivals::counters;
use braid_api::{Connections, Subflow};
use braid_mptcp::diag::Diag;
use braid_mptcp::pm::{Endpoint, PathManager};
use braid_mptcp::socket;

use super::daemon::Daemon;
use braid_netns::world::{Ns, World, ask, eventually, eventually_within, fetch};

pub(crate) const DEVICE: &str = r#"proxy = "10.77.0.1"

[manager]
max_addresses_per_interface = 1

[access.nr]
interface = "d1"
kind = "5g"

[access.wifi]
interface = "d2"
kind = "wifi"
"#;

pub(crate) const PROXY: &str = "proxy = \"10.77.0.1\"
[access.nr]
address = \"10.77.1.0/24\"
[access.wifi]
address = \"10.77.2.2\"
";

pub(crate) fn endpoints(w: &World) -> Vec<Endpoint> {
    w.device
        .run(|| PathManager::open().unwrap().endpoints().unwrap())
}

pub(crate) fn addresses(w: &World) -> BTreeSet<IpAddr> {
    endpoints(w).iter().map(|e| e.address).collect()
}

/// Bytes that the device has received, by interface.
pub(crate) fn interface_bytes(w: &World) -> BTreeMap<String, u64> {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    counters(&w.device.run(read))
}

/// A connection that fetches all the time and verifies every byte.
pub(crate) struct Traffic {
    stop: Arc<AtomicBool>,
    fetched: Arc<AtomicU64>,
    client: JoinHandle<()>,
    server: JoinHandle<()>,
}

impl Traffic {
    pub(crate) fn start(w: &World, to: SocketAddr) -> Self {
        Self::of(w, to, 400_000)
    }

    /// By so many bytes at a time.
    pub(crate) fn of(w: &World, to: SocketAddr, bytes: u64) -> Self {
        Self::with_server_at(w, to, to, bytes)
    }

    /// Served at another address than is connected to: all of them, perhaps.
    pub(crate) fn with_server_at(w: &World, at: SocketAddr, to: SocketAddr, bytes: u64) -> Self {
        Self::begin(w, None, at, to, bytes)
    }

    /// By an application that binds its socket to an address.
    pub(crate) fn bound(w: &World, from: SocketAddr, to: SocketAddr) -> Self {
        Self::begin(w, Some(from), to, to, 400_000)
    }

    fn begin(
        w: &World,
        from: Option<SocketAddr>,
        at: SocketAddr,
        to: SocketAddr,
        bytes: u64,
    ) -> Self {
        let listener = w.proxy.run(|| socket::listen(at, true, None).unwrap());
        let server = w.serve(listener);
        let stream: TcpStream = w
            .device
            .run(|| socket::connect(from, to, true, None).unwrap());
        Self::over(stream, server, bytes)
    }

    /// Over a connection to a `server` of [`World::serve`], by so many bytes at a time.
    pub(crate) fn over(mut stream: TcpStream, server: JoinHandle<()>, bytes: u64) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let fetched = Arc::new(AtomicU64::new(0));
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&fetched));
        let client = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                fetch(&mut stream, bytes);
                count.fetch_add(1, Ordering::Relaxed);
            }
            ask(&mut stream, 0);
        });
        Self {
            stop,
            fetched,
            client,
            server,
        }
    }

    /// Waits until something more was fetched.
    pub(crate) fn goes_on(&self) {
        let before = self.fetched.load(Ordering::Relaxed);
        eventually("data goes on", || {
            (self.fetched.load(Ordering::Relaxed) > before + 1).then_some(())
        });
    }

    pub(crate) fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.client.join().unwrap();
        self.server.join().unwrap();
    }
}

/// The subflows of the device, and the bytes that each access received.
fn received(device: &Daemon) -> (Vec<Subflow>, BTreeMap<String, u64>) {
    let all: Connections = device.get("/v1/connections");
    let subflows: Vec<_> = all
        .connections
        .into_iter()
        .flat_map(|c| c.subflows)
        .collect();
    let mut by = BTreeMap::new();
    for s in &subflows {
        *by.entry(s.access.clone().unwrap_or_default()).or_insert(0) += s.received_bytes;
    }
    (subflows, by)
}

/// Waits until one access alone carries what is fetched.
pub(crate) fn carries(device: &Daemon, traffic: &Traffic, wanted: &str) {
    eventually(&format!("{wanted} alone carries"), || {
        let (_, before) = received(device);
        traffic.goes_on();
        let (subflows, after) = received(device);
        let grew = |a: &String| after[a] > before.get(a).copied().unwrap_or(0) + 100_000;
        let growing: Vec<_> = after.keys().filter(|a| grew(a)).collect();
        if growing != [wanted] {
            println!("{growing:?} carry, not {wanted} alone: {subflows:?}");
        }
        (growing == [wanted]).then_some(())
    });
}

/// The local ends of the established subflows.
pub(crate) fn subflows(device: &Daemon) -> BTreeSet<SocketAddr> {
    let all: Connections = device.get("/v1/connections");
    let mptcp = all.connections.iter().filter(|c| c.token.is_some());
    mptcp
        .flat_map(|c| &c.subflows)
        .filter(|s| s.state == "established" && s.fully_established)
        .map(|s| s.local)
        .collect()
}

/// Until no connection is left: an end in order keeps the addresses of those that live.
pub(crate) fn is_over(w: &World) {
    eventually("an end of all connections", || {
        let in_use = || Diag::open().unwrap().addresses_in_use().unwrap();
        w.device.run(in_use).is_empty().then_some(())
    });
}

pub(crate) fn runs_on(device: &Daemon, wanted: &[IpAddr]) {
    let wanted: BTreeSet<_> = wanted.iter().copied().collect();
    eventually(&format!("subflows on {wanted:?}"), || {
        let used: BTreeSet<_> = subflows(device).iter().map(SocketAddr::ip).collect();
        (used == wanted).then_some(())
    });
}

/// Waits, with a connection to a server at the proxy, until it has subflows on all of
/// `wanted`, and on no others.
pub(crate) fn bonds(
    (at_device, device): (&Ns, &Daemon),
    proxy: &Ns,
    at: SocketAddr,
    wanted: &[IpAddr],
) {
    let listener = proxy.run(|| socket::listen(at, true, None).unwrap());
    let server = proxy.spawn(move || {
        let (mut s, _) = listener.accept().unwrap();
        let mut byte = [0];
        while s.read(&mut byte).is_ok_and(|n| n > 0) {
            s.write_all(&[0; 1000]).unwrap();
        }
    });
    let mut s: TcpStream = at_device.run(|| socket::connect(None, at, true, None).unwrap());
    let wanted: BTreeSet<_> = wanted.iter().copied().collect();
    // An address that leads nowhere is known by its second repeated SYN, after 3 s.
    let limit = Duration::from_secs(12);
    eventually_within(limit, &format!("subflows on {wanted:?}"), || {
        s.write_all(&[0]).unwrap();
        s.read_exact(&mut [0; 1000]).unwrap();
        let on: BTreeSet<_> = subflows(device).iter().map(SocketAddr::ip).collect();
        (on == wanted).then_some(())
    });
    drop(s);
    server.join().unwrap();
}
