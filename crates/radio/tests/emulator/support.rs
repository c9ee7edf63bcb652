//! Two hosts in fresh namespaces and an emulator between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, IntoRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use braid_radio::emulator::api::{CapacityQuery, Carrier, Stats};
use braid_radio::emulator::{
    Client, EmulatorConfig, PathConfig, PortConfig, PortKind, Tuning, tun, veth,
};
use braid_radio::model::{LinkChange, LinkSpec};
use nix::sched::{CloneFlags, unshare};
use rtnetlink::{LinkUnspec, LinkVeth};
use socket2::{Domain, Protocol, Socket, Type};

/// How a host is joined to the emulator.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Tun,
    Veth,
}

/// The interface's name on every host.
const NAME: &str = "radio0";

pub(crate) fn device_address(v6: bool) -> IpAddr {
    address(v6, 2)
}

pub(crate) fn proxy_address(v6: bool) -> IpAddr {
    address(v6, 1)
}

fn address(v6: bool, host: u8) -> IpAddr {
    if v6 {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, host.into()).into()
    } else {
        Ipv4Addr::new(10, 99, 0, host).into()
    }
}

type Job = Box<dyn FnOnce(&tokio::runtime::Runtime) + Send>;

/// A network namespace, held by a thread that does things in it.
pub(crate) struct Host(Sender<Job>);

impl Host {
    /// `Err`: why there can be no namespace.
    fn new() -> Result<Self, String> {
        let (jobs, todo) = channel::<Job>();
        let (ready, is_ready) = channel();
        std::thread::spawn(move || {
            let made = unshare(CloneFlags::CLONE_NEWNET).map_err(|e| e.to_string());
            let failed = made.is_err();
            let _ = ready.send(made);
            if failed {
                return;
            }
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            for job in todo {
                job(&runtime);
            }
        });
        is_ready.recv().unwrap()?;
        Ok(Self(jobs))
    }

    fn with<T: Send + 'static>(
        &self,
        f: impl FnOnce(&tokio::runtime::Runtime) -> T + Send + 'static,
    ) -> T {
        let (done, result) = channel();
        let job = Box::new(move |r: &tokio::runtime::Runtime| {
            let _ = done.send(f(r));
        });
        self.0.send(job).unwrap();
        result
            .recv()
            .expect("what was to be done in the namespace panicked")
    }

    fn netlink<T: Send + 'static, F: Future<Output = T>>(
        &self,
        f: impl FnOnce(rtnetlink::Handle) -> F + Send + 'static,
    ) -> T {
        self.with(move |r| {
            r.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection().unwrap();
                tokio::spawn(connection);
                f(handle).await
            })
        })
    }

    fn index(&self) -> u32 {
        self.with(|_| nix::net::if_::if_nametoindex(NAME).unwrap())
    }

    /// Gives the interface its addresses and switches it on.
    fn configure(&self, host: u8) {
        let index = self.index();
        self.with(|_| {
            // No duplicate address detection: addresses work at once.
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{NAME}/accept_dad"), "0").unwrap();
        });
        self.netlink(move |h| async move {
            let up = LinkUnspec::new_with_index(index).up().mtu(1500).build();
            h.link().set(up).execute().await.unwrap();
            for (v6, prefix) in [(false, 24), (true, 64)] {
                h.address()
                    .add(index, address(v6, host), prefix)
                    .execute()
                    .await
                    .unwrap();
            }
        });
    }

    pub(crate) fn set_up(&self, up: bool) {
        let index = self.index();
        self.netlink(move |h| async move {
            let l = LinkUnspec::new_with_index(index);
            let l = if up { l.up() } else { l.down() };
            h.link().set(l.build()).execute().await.unwrap();
        });
    }

    pub(crate) fn remove(&mut self) {
        let index = self.index();
        self.netlink(move |h| async move { h.link().del(index).execute().await.unwrap() });
    }

    pub(crate) fn has_carrier(&self) -> bool {
        self.with(|_| {
            let all = nix::ifaddrs::getifaddrs().unwrap();
            let flags = all
                .filter(|i| i.interface_name == NAME)
                .map(|i| i.flags)
                .next()
                .unwrap();
            flags.contains(nix::net::if_::InterfaceFlags::IFF_RUNNING)
        })
    }

    pub(crate) fn listen(&self, at: IpAddr) -> TcpListener {
        self.with(move |_| TcpListener::bind(SocketAddr::new(at, 0)).unwrap())
    }

    pub(crate) fn connect(&self, from: IpAddr, to: SocketAddr) -> TcpStream {
        self.with(move |_| {
            let s =
                Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP)).unwrap();
            s.bind(&SocketAddr::new(from, 0).into()).unwrap();
            s.connect(&to.into()).unwrap();
            s.into()
        })
    }

    pub(crate) fn udp(&self, at: IpAddr) -> UdpSocket {
        let s = self.with(move |_| UdpSocket::bind(SocketAddr::new(at, 0)).unwrap());
        s.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        s
    }

    /// Checks that the receiving stack counted no checksum errors (TCP and UDP).
    pub(crate) fn assert_no_checksum_errors(&self) {
        let snmp = self.with(|_| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap());
        for protocol in ["Tcp:", "Udp:"] {
            let mut rows = snmp.lines().filter_map(|l| l.strip_prefix(protocol));
            let (names, values) = (rows.next().unwrap(), rows.next().unwrap());
            let errors = names
                .split_whitespace()
                .zip(values.split_whitespace())
                .find(|(n, _)| *n == "InCsumErrors")
                .unwrap();
            assert_eq!(errors.1, "0", "{protocol}");
        }
    }
}

/// Two hosts and an emulator.
pub(crate) struct Lab {
    pub(crate) device: Host,
    pub(crate) proxy: Host,
    client: Client,
    runtime: tokio::runtime::Runtime,
    emulator: Option<JoinHandle<anyhow::Result<()>>>,
    _dir: tempfile::TempDir,
}

/// A lab whose path "a" has these links, or `None` where there can be none.
pub(crate) fn lab(kind: Kind, verify: bool, down: LinkSpec, up: LinkSpec) -> Option<Lab> {
    lab_with(kind, down, up, |c| c.verify = verify)
}

/// A lab as [`lab`]'s, after `edit` changed what the emulator is told.
pub(crate) fn lab_with(
    kind: Kind,
    down: LinkSpec,
    up: LinkSpec,
    edit: impl FnOnce(&mut EmulatorConfig),
) -> Option<Lab> {
    match build(kind, down, up, edit) {
        Ok(lab) => Some(lab),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn build(
    kind: Kind,
    down: LinkSpec,
    up: LinkSpec,
    edit: impl FnOnce(&mut EmulatorConfig),
) -> Result<Lab, String> {
    let (device, proxy) = (Host::new()?, Host::new()?);
    let ends = match kind {
        Kind::Tun => [tun_port(&device)?, tun_port(&proxy)?],
        Kind::Veth => {
            let middle = Host::new()?;
            [
                veth_port(&middle, &device, "d")?,
                veth_port(&middle, &proxy, "p")?,
            ]
        }
    };
    device.configure(2);
    proxy.configure(1);
    let [at_device, at_proxy] = ends;
    let mut config = EmulatorConfig {
        run_id: "test".to_owned(),
        seed: 1,
        epoch_ns: None,
        paths: vec![PathConfig {
            name: "a".to_owned(),
            device: at_device,
            proxy: at_proxy,
            down,
            up,
        }],
        media: Vec::new(),
        backhauls: Vec::new(),
        verify: false,
        pcap: None,
        tuning: Tuning::default(),
    };
    edit(&mut config);
    let dir = tempfile::tempdir().unwrap();
    let socket: PathBuf = dir.path().join("control");
    let at = socket.clone();
    let emulator = std::thread::spawn(move || braid_radio::emulator::run(config, &at));
    let client = Client::new(socket);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let end = std::time::Instant::now() + Duration::from_secs(20);
    while let Err(e) = runtime.block_on(client.stats()) {
        assert!(
            !emulator.is_finished(),
            "the emulator ended: {:?}",
            emulator.join()
        );
        assert!(std::time::Instant::now() < end, "{e:#}");
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Lab {
        device,
        proxy,
        client,
        runtime,
        emulator: Some(emulator),
        _dir: dir,
    })
}

fn tun_port(host: &Host) -> Result<PortConfig, String> {
    let tun = host.with(|_| tun::create(NAME).map_err(|e| e.to_string()))?;
    Ok(PortConfig {
        fd: tun.fd.into_raw_fd(),
        kind: PortKind::Tun,
    })
}

/// A veth pair between `middle`, where a packet socket is bound to it, and `host`.
fn veth_port(middle: &Host, host: &Host, tag: &'static str) -> Result<PortConfig, String> {
    let netns: OwnedFd = host.with(|_| {
        std::fs::File::open("/proc/thread-self/ns/net")
            .unwrap()
            .into()
    });
    let peer = middle.netlink(move |h| async move {
        let pair = LinkVeth::new(tag, NAME).build();
        h.link()
            .add(pair)
            .execute()
            .await
            .map_err(|e| format!("cannot make a veth pair: {e}"))?;
        use std::os::fd::AsRawFd;
        let index = nix::net::if_::if_nametoindex(NAME).unwrap();
        let m = LinkUnspec::new_with_index(index)
            .setns_by_fd(netns.as_fd().as_raw_fd())
            .build();
        h.link().set(m).execute().await.map_err(|e| e.to_string())?;
        let near = nix::net::if_::if_nametoindex(tag).unwrap();
        let up = LinkUnspec::new_with_index(near).up().arp(false).build();
        h.link()
            .set(up)
            .execute()
            .await
            .map_err(|e| e.to_string())?;
        Ok::<u32, String>(near)
    })?;
    let fd = middle.with(move |_| veth::open(peer).map_err(|e| e.to_string()))?;
    let index = host.index();
    let mac = host.netlink(move |h| async move {
        use futures_util::TryStreamExt;
        use rtnetlink::packet_route::link::LinkAttribute;
        let quiet = LinkUnspec::new_with_index(index).arp(false).build();
        h.link().set(quiet).execute().await.unwrap();
        let link = h
            .link()
            .get()
            .match_index(index)
            .execute()
            .try_next()
            .await
            .unwrap()
            .unwrap();
        link.attributes
            .iter()
            .find_map(|a| match a {
                LinkAttribute::Address(mac) => Some(mac.clone()),
                _ => None,
            })
            .unwrap()
    });
    let mac: Vec<String> = mac.iter().map(|b| format!("{b:02x}")).collect();
    Ok(PortConfig {
        fd: fd.into_raw_fd(),
        kind: PortKind::Packet {
            peer_mac: mac.join(":"),
        },
    })
}

impl Lab {
    pub(crate) fn stats(&self) -> Stats {
        self.runtime.block_on(self.client.stats()).unwrap()
    }

    pub(crate) fn change(&self, link: &str, change: LinkChange) -> anyhow::Result<()> {
        self.runtime
            .block_on(self.client.change(link, &change, None))
    }

    pub(crate) fn change_at(
        &self,
        link: &str,
        change: LinkChange,
        at_ns: u64,
    ) -> anyhow::Result<()> {
        self.runtime
            .block_on(self.client.change(link, &change, Some(at_ns)))
    }

    pub(crate) fn epoch(&self, at: Option<u64>) -> u64 {
        self.runtime.block_on(self.client.set_epoch(at)).unwrap()
    }

    pub(crate) fn capacity(&self, q: CapacityQuery) -> Option<f64> {
        self.runtime.block_on(self.client.capacity(&q)).unwrap()
    }

    pub(crate) fn carrier(&self, c: Carrier) {
        self.runtime.block_on(self.client.carrier("a", c)).unwrap();
    }

    /// Ends the emulator, and checks that it ends well.
    pub(crate) fn stop(&mut self) {
        self.runtime.block_on(self.client.stop()).unwrap();
        if let Some(e) = self.emulator.take() {
            e.join().unwrap().unwrap();
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if !std::thread::panicking() && self.emulator.is_some() {
            self.stop();
        }
    }
}

/// Sets the size in `bytes` of the datagrams into which the kernel cuts what is sent.
pub(crate) fn udp_segments(s: &UdpSocket, bytes: i32) {
    nix::sys::socket::setsockopt(s, nix::sys::socket::sockopt::UdpGsoSegment, &bytes).unwrap();
}
