//! Helpers that the tests of topologies share.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{AccessPorts, AccessSpec, DeviceSpec, Namespace, Port, Topology};
use braid_core::AccessKind;
use braid_radio::emulator::PortKind;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Bytes of the virtio-net header and of an Ethernet header.
const VNET: usize = 10;
const ETHERNET: usize = 14;

/// Whether namespaces can be made here; says so if not.
pub fn can_build() -> bool {
    match Namespace::create("a test") {
        Ok(_) => true,
        Err(e) => {
            println!("skipped: {e:#}");
            false
        }
    }
}

/// One device called `cpe` with these accesses.
pub fn device(accesses: &[&str]) -> Vec<DeviceSpec> {
    vec![device_named("cpe", accesses)]
}

/// Returns the specification of a device of this name with these accesses.
pub fn device_named(name: &str, accesses: &[&str]) -> DeviceSpec {
    let accesses = accesses
        .iter()
        .map(|a| AccessSpec {
            name: (*a).into(),
            kind: AccessKind::Other,
        })
        .collect();
    DeviceSpec {
        name: name.into(),
        accesses,
    }
}

/// Sends a datagram of one byte to the proxy's service address, from `source`
/// or from nowhere in particular.
pub fn send(namespace: &Namespace, source: Option<IpAddr>, to: IpAddr) -> std::io::Result<()> {
    let any = if to.is_ipv4() { "0.0.0.0" } else { "::" }.parse().unwrap();
    let send = || {
        let socket = UdpSocket::bind((source.unwrap_or(any), 0))?;
        socket.send_to(b"x", SocketAddr::new(to, 9)).map(drop)
    };
    namespace.run(send).unwrap()
}

/// The accesses by which the device's packets have left since the last call.
pub fn left_by(topology: &Topology) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for access in topology.devices.iter().flat_map(|d| &d.accesses) {
        let mut buf = [0; 70_000];
        while let Ok(n) = nix::unistd::read(&access.ports.device, &mut buf) {
            let skip = VNET
                + if access.ports.device.kind == PortKind::Tun {
                    0
                } else {
                    ETHERNET
                };
            let (version, v6_next) = (buf[skip] >> 4, buf[skip + 6]);
            assert!(n > skip && [4, 6].contains(&version), "{:?}", &buf[..n]);
            // Multicast listener reports (with their hop-by-hop header) are
            // the kernel's own.
            if version == 4 || v6_next == 17 {
                names.insert(access.name.clone());
            }
        }
    }
    names
}

/// The hardware address that a packet port's frames must be sent to.
fn peer(port: &Port) -> Option<[u8; 6]> {
    let PortKind::Packet { peer_mac } = &port.kind else {
        return None;
    };
    let bytes: Vec<u8> = peer_mac
        .split(':')
        .map(|b| u8::from_str_radix(b, 16).unwrap())
        .collect();
    Some(bytes.try_into().unwrap())
}

/// Stands in for the emulator: carries packets between the two ports of every
/// access, at once, until it is dropped.
pub struct Wire {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Wire {
    /// Starts to carry what the ports of each access send to the other end.
    pub fn start(topology: &Topology) -> Self {
        let copy = |port: &Port| (port.as_fd().try_clone_to_owned().unwrap(), peer(port));
        let ends: Vec<_> = topology
            .devices
            .iter()
            .flat_map(|d| &d.accesses)
            .flat_map(|a| {
                let AccessPorts { device, proxy } = &a.ports;
                [(copy(device), copy(proxy)), (copy(proxy), copy(device))]
            })
            .collect();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut buf = vec![0; 70_000];
            while !stopped.load(Ordering::Relaxed) {
                let mut fds: Vec<_> = ends
                    .iter()
                    .map(|e| PollFd::new(e.0.0.as_fd(), PollFlags::POLLIN))
                    .collect();
                poll(&mut fds, PollTimeout::from(20u8)).unwrap();
                for ((from, _), (to, peer)) in &ends {
                    while let Ok(n) = nix::unistd::read(from, &mut buf) {
                        if let Some(peer) = peer {
                            buf[VNET..VNET + 6].copy_from_slice(peer);
                        }
                        // An interface that is down takes nothing.
                        let _ = nix::unistd::write(to, &buf[..n]);
                    }
                }
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A TCP connection from an address.
pub fn connect(from: IpAddr, to: IpAddr, port: u16) -> TcpStream {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(SocketAddr::new(to, port)),
        socket2::Type::STREAM,
        None,
    );
    let socket = socket.unwrap();
    socket.bind(&SocketAddr::new(from, 0).into()).unwrap();
    socket
        .connect_timeout(&SocketAddr::new(to, port).into(), Duration::from_secs(5))
        .unwrap();
    let stream: TcpStream = socket.into();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    stream
}

/// The interfaces of the calling thread's namespace.
pub fn interfaces() -> BTreeSet<String> {
    nix::net::if_::if_nameindex()
        .unwrap()
        .iter()
        .map(|i| i.name().to_string_lossy().into_owned())
        .collect()
}

/// Lists the entries in `/proc` that use a namespace: as a process's own, or by a descriptor.
pub fn users_of(inode: u64) -> Vec<String> {
    let link = format!("net:[{inode}]");
    let mut users = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        for dir in ["ns", "fd"] {
            for entry in std::fs::read_dir(process.path().join(dir))
                .into_iter()
                .flatten()
                .flatten()
            {
                if std::fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == link.as_str())
                {
                    users.push(entry.path().display().to_string());
                }
            }
        }
    }
    users
}

/// Tries until `ok`, for at most half a minute.
pub fn eventually(what: &str, mut ok: impl FnMut() -> bool) {
    for _ in 0..3000 {
        if ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within half a minute: {what}");
}
