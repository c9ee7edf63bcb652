//! The policy `capacity`: nobody sets weights, and the shares of two accesses become those of
//! their capacities, also after these have changed.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use braid_api::{AccessState, Connections, ControlStatus, Status};
use braid_netns::world::{self, Ns, SERVICE, World, eventually, service};

use crate::support::bulk::{Bulk, Way, command};
use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::{DEVICE, PROXY};

/// Time in which shares follow. The bar of 1 s belongs to the bench.
const SOON: Duration = Duration::from_secs(3);

/// Capacities of the downlinks, Mbit/s.
pub(crate) const CAPACITIES: [u32; 2] = [100, 25];

/// Capacities under Multipath QUIC: without optimisation it does not encrypt 125 Mbit/s on two cores.
const QUIC_CAPACITIES: [u32; 2] = match cfg!(debug_assertions) {
    true => [16, 4],
    false => CAPACITIES,
};

const CONTROL: &str = "[control]\npolicy = \"capacity\"\n";

/// Gives the downlinks of both accesses these rates, Mbit/s; says whether that could be done.
pub(crate) fn shape(proxy: &Ns, what: &str, mbps: [u32; 2]) -> bool {
    let one = |(k, mbps): (usize, u32)| {
        let words =
            format!("qdisc {what} dev p{k} root tbf rate {mbps}mbit burst 64kb latency 60ms");
        command(proxy, "tc", &words)
    };
    (1..).zip(mbps).all(one)
}

/// Bytes that the proxy's connections have delivered over each access.
pub(crate) fn delivered(proxy: &Daemon) -> [u64; 2] {
    let all: Connections = proxy.get("/v1/connections");
    let subflows = || all.connections.iter().flat_map(|c| &c.subflows);
    ["nr", "wifi"].map(|name| {
        let mine = subflows().filter(|s| s.access.as_deref() == Some(name));
        mine.map(|s| s.acked_bytes).sum()
    })
}

/// Waits until the weights, and the shares of what is delivered, are 4:1 with this access in front.
fn follows(proxy: &Daemon, first: usize) {
    let begin = Instant::now();
    let mut seen = Vec::new();
    let mut before = delivered(proxy);
    while begin.elapsed() < SOON {
        std::thread::sleep(Duration::from_millis(500));
        let now = delivered(proxy);
        let moved = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64);
        before = now;
        let share = moved[first] / moved.iter().sum::<f64>();
        let control: ControlStatus = proxy.get("/v1/control");
        let weights: Vec<f64> = control.accesses.iter().filter_map(|a| a.weight).collect();
        let weight = weights[first] / weights.iter().sum::<f64>();
        seen.push((begin.elapsed(), share, weights, control.why));
        if (share - 0.8).abs() < 0.06 && (weight - 0.8).abs() < 0.04 {
            println!("within {:?}: {seen:?}", begin.elapsed());
            return;
        }
    }
    let control: ControlStatus = proxy.get("/v1/control");
    panic!("{seen:?}\n{control:?}");
}

fn follows_swaps(w: &World, proxy: &Daemon, [nr, wifi]: [u32; 2]) {
    follows(proxy, 0);
    assert!(shape(&w.proxy, "change", [wifi, nr]));
    follows(proxy, 1);
    let control: ControlStatus = proxy.get("/v1/control");
    assert_eq!(
        (control.policy.as_str(), control.direction.as_str()),
        ("capacity", "down")
    );
    assert!(
        control
            .accesses
            .iter()
            .all(|a| a.estimator.as_deref() == Some("passive"))
    );
    let status: Status = proxy.get("/v1/status");
    assert!(
        status.notes.iter().all(|n| !n.contains("weights")),
        "{:?}",
        status.notes
    );
}

#[cfg(feature = "bpf")]
#[test]
fn mptcp_shares_by_capacity() {
    if let Err(e) = braid_mptcp::bpf::require() {
        println!("skipped: {e}");
        return;
    }
    let Some(w) = World::new(2) else { return };
    if !shape(&w.proxy, "add", CAPACITIES) {
        println!("skipped: tc has no tbf here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    world::mptcp::mesh(&w, 2);
    let config = PROXY.replacen("[access.nr]", &format!("{CONTROL}[access.nr]"), 1);
    let proxy = Daemon::start(&w.proxy, dir.path(), "proxy", &config);
    let device = Daemon::start(&w.device, dir.path(), "up", DEVICE);
    let status: Status = proxy.get("/v1/status");
    assert_eq!(status.accesses[0].weight, None, "nobody has set any");
    let bulk = Bulk::start(&w, service(80), Way::Down);
    bulk.moves(&device, &["nr", "wifi"]);
    follows_swaps(&w, &proxy, CAPACITIES);
}

#[test]
fn mpquic_shares_by_capacity() {
    let Some(w) = World::new(2) else { return };
    if !shape(&w.proxy, "add", QUIC_CAPACITIES) {
        println!("skipped: tc has no tbf here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let _ = configs(dir.path(), "");
    let text = |end: &str| std::fs::read_to_string(dir.path().join(format!("{end}.toml"))).unwrap();
    let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
    let config = text("p") + CONTROL;
    let proxy = Daemon::start(&w.proxy, dir.path(), "proxy", &config);
    let device = Daemon::start(&w.device, dir.path(), "up", &text("d"));
    eventually("both accesses are active", || {
        let status: Status = device.get("/v1/status");
        let active = status
            .accesses
            .iter()
            .filter(|a| a.state == AccessState::Active);
        (active.count() == 2).then_some(())
    });
    let at: SocketAddr = "127.0.0.1:5001".parse().unwrap();
    let program = w.device.run(|| TcpStream::connect(at).unwrap());
    let (server, _) = listener.accept().unwrap();
    let _download = Download::start(server, program);
    follows_swaps(&w, &proxy, QUIC_CAPACITIES);
}

/// Data without end from one stream to the other.
struct Download {
    ends: [TcpStream; 2],
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Download {
    fn start(mut from: TcpStream, mut to: TcpStream) -> Self {
        use std::io::{Read, Write};
        let ends = [from.try_clone().unwrap(), to.try_clone().unwrap()];
        let write = std::thread::spawn(move || while from.write_all(&[7; 1 << 16]).is_ok() {});
        let read = std::thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            while to.read(&mut block).is_ok_and(|n| n > 0) {}
        });
        Self {
            ends,
            threads: vec![write, read],
        }
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        for end in &self.ends {
            let _ = end.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
