//! A device and a proxy in network namespaces of their own, joined by one veth
//! pair per access. They vanish with the last descriptor, that is with the test.
//!
//! Access k (from 1): `dk` 10.77.k.2 and fd77:0:k::2 at the device, `pk`
//! 10.77.k.1 and fd77:0:k::1 at the proxy, which serves at 10.77.0.1 and
//! fd77::1. What the device sends from an access's address leaves by it.

pub mod change;
pub mod home;
pub mod lan;
pub mod middlebox;
pub mod mptcp;
pub mod topology;
mod turn;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::{Duration, Instant};

use futures_util::TryStreamExt;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::packet_route::link::LinkAttribute;
use rtnetlink::packet_route::rule::RuleAction;
use rtnetlink::{Handle, LinkUnspec, LinkVeth, RouteMessageBuilder};

pub use turn::Turn;

/// A network namespace, held by a descriptor.
pub struct Ns(File);

impl Ns {
    /// Makes a namespace whose loopback interface is up.
    ///
    /// # Errors
    /// Those of `unshare`: without rights no namespace can be made.
    pub fn new() -> std::io::Result<Self> {
        std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            // A new IPv6 address is used at once instead of after a second.
            for which in ["all", "default"] {
                let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{which}/accept_dad"), "0");
            }
            let ns = Ns(File::open("/proc/thread-self/ns/net")?);
            ns.with_netlink(async |h| up(&h, "lo").await);
            Ok(ns)
        })
        .join()
        .expect("the thread of a new namespace")
    }

    /// Runs `f` on a thread inside the namespace.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|s| {
            s.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).expect("enter a namespace of ours");
                f()
            })
            .join()
            .expect("the thread in a namespace")
        })
    }

    /// As [`Self::run`], on a thread that is left to itself.
    pub fn spawn<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> std::thread::JoinHandle<T> {
        let ns = self.0.try_clone().expect("a descriptor");
        std::thread::spawn(move || {
            setns(&ns, CloneFlags::CLONE_NEWNET).expect("enter a namespace of ours");
            f()
        })
    }

    fn with_netlink<T: Send>(&self, f: impl AsyncFnOnce(Handle) -> T + Send) -> T {
        self.run(|| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection().expect("rtnetlink");
                tokio::spawn(connection);
                f(handle).await
            })
        })
    }
}

async fn index(h: &Handle, name: &str) -> u32 {
    let found = h
        .link()
        .get()
        .match_name(name.to_owned())
        .execute()
        .try_next()
        .await;
    found
        .expect("list links")
        .expect("the link exists")
        .header
        .index
}

async fn up(h: &Handle, name: &str) {
    let i = index(h, name).await;
    h.link()
        .set(LinkUnspec::new_with_index(i).up().build())
        .execute()
        .await
        .expect("link up");
}

async fn address(h: &Handle, name: &str, address: IpAddr, prefix: u8) {
    let i = index(h, name).await;
    h.address()
        .add(i, address, prefix)
        .execute()
        .await
        .expect("add an address");
}

/// The two ends.
pub struct World {
    /// Namespace that has the accesses.
    pub device: Ns,
    /// Namespace that serves at [`SERVICE`] and [`SERVICE6`].
    pub proxy: Ns,
    _turn: Turn,
}

/// Where the proxy serves, IPv4.
pub const SERVICE: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// Where the proxy serves, IPv6.
pub const SERVICE6: Ipv6Addr = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 1);

/// The device's IPv4 address on access `k`.
pub fn device4(k: u8) -> IpAddr {
    Ipv4Addr::new(10, 77, k, 2).into()
}

/// The device's IPv6 address on access `k`.
pub fn device6(k: u8) -> IpAddr {
    v6(k, 2).into()
}

fn v6(k: u8, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfd77, 0, u16::from(k), 0, 0, 0, 0, host)
}

impl World {
    /// Makes a world with this many accesses, or prints why it cannot.
    pub fn new(accesses: u8) -> Option<Self> {
        let turn = Turn::take();
        let (device, proxy) = match (Ns::new(), Ns::new()) {
            (Ok(d), Ok(p)) => (d, p),
            (Err(e), _) | (_, Err(e)) => {
                println!("skipped: no network namespace can be made: {e}");
                return None;
            }
        };
        let support = device.run(braid_mptcp::support::Support::detect);
        if let Err(e) = support.require() {
            println!("skipped: {e}");
            return None;
        }
        for k in 1..=accesses {
            join(&device, &proxy, k);
        }
        serve_at(&proxy);
        device.with_netlink(async |h| {
            for k in 1..=accesses {
                let i = index(&h, &format!("d{k}")).await;
                routes(&h, k, i).await;
            }
        });
        Some(World {
            device,
            proxy,
            _turn: turn,
        })
    }

    /// Adds access `k`, which leads to another namespace that serves at the same
    /// addresses, and returns that.
    pub fn add_impostor(&self, k: u8) -> Ns {
        let impostor = Ns::new().expect("a further namespace");
        join(&self.device, &impostor, k);
        serve_at(&impostor);
        self.routes(k);
        impostor
    }

    /// The device's routes over access `k`.
    fn routes(&self, k: u8) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            routes(&h, k, i).await;
        });
    }

    /// The index of the device's interface of access `k`.
    pub fn ifindex(&self, k: u8) -> u32 {
        self.device
            .with_netlink(async |h| index(&h, &format!("d{k}")).await)
    }

    /// Sets the device's interface of access `k` up (with its routes) or down.
    pub fn set_link(&self, k: u8, is_up: bool) {
        self.device.with_netlink(async |h| {
            let i = index(&h, &format!("d{k}")).await;
            let link = LinkUnspec::new_with_index(i);
            let link = if is_up { link.up() } else { link.down() };
            h.link()
                .set(link.build())
                .execute()
                .await
                .expect("set link");
        });
    }

    /// Lets the proxy's end of access `k` send no super-packets, so that what is
    /// captured is what a wire would see.
    pub fn one_segment_per_packet(&self, k: u8) {
        one_segment_per_packet(&self.proxy, &format!("p{k}"));
    }

    /// Gives the accesses 100 Mbit/s each towards the device, or prints why it cannot.
    pub fn limited(&self, accesses: u8) -> bool {
        let limit = |k: u8| {
            let words = format!("qdisc add dev p{k} root tbf rate 100mbit burst 64kb latency 30ms");
            let tc = || Command::new("tc").args(words.split(' ')).status();
            self.proxy.run(|| tc().is_ok_and(|s| s.success()))
        };
        let done = (1..=accesses).all(limit);
        if !done {
            println!("skipped: tc of iproute2 cannot limit the accesses");
        }
        done
    }

    /// Starts a server at the proxy that reads requests of 8 bytes, a number, and
    /// answers each with as many bytes. It ends with the connection that sends 0.
    pub fn serve(&self, listener: TcpListener) -> std::thread::JoinHandle<()> {
        self.proxy.spawn(move || {
            loop {
                let (stream, _) = listener.accept().expect("accept");
                if answer(stream) {
                    return;
                }
            }
        })
    }
}

/// Joins a device and a proxy by access `k`, with addresses.
fn join(device: &Ns, proxy: &Ns, k: u8) {
    let (d, p) = (format!("d{k}"), format!("p{k}"));
    wire((device, &d), (proxy, &p));
    device_addresses(device, k);
    proxy_addresses(proxy, k);
}

/// Lays a wire between two interfaces, which it makes.
pub fn wire((one, here): (&Ns, &str), (other, there): (&Ns, &str)) {
    let other_fd = other.0.as_raw_fd();
    one.with_netlink(async |h| {
        let veth = LinkVeth::new(here, there).build();
        h.link().add(veth).execute().await.expect("add veth");
        let i = index(&h, there).await;
        let to_other = LinkUnspec::new_with_index(i).setns_by_fd(other_fd).build();
        h.link().set(to_other).execute().await.expect("move veth");
        up(&h, here).await;
    });
    other.with_netlink(async |h| up(&h, there).await);
}

fn device_addresses(device: &Ns, k: u8) {
    let d = format!("d{k}");
    device.with_netlink(async |h| {
        address(&h, &d, device4(k), 30).await;
        address(&h, &d, v6(k, 2).into(), 64).await;
    });
}

fn proxy_addresses(proxy: &Ns, k: u8) {
    let p = format!("p{k}");
    proxy.with_netlink(async |h| {
        address(&h, &p, Ipv4Addr::new(10, 77, k, 1).into(), 30).await;
        address(&h, &p, v6(k, 1).into(), 64).await;
    });
}

/// Gives a proxy the addresses that it serves at.
fn serve_at(proxy: &Ns) {
    proxy.with_netlink(async |h| {
        address(&h, "lo", SERVICE.into(), 32).await;
        address(&h, "lo", SERVICE6.into(), 128).await;
    });
}

fn one_segment_per_packet(at: &Ns, name: &str) {
    at.with_netlink(async |h| {
        let i = index(&h, name).await;
        let one = LinkUnspec::new_with_index(i)
            .append_extra_attribute(LinkAttribute::GsoMaxSegs(1))
            .build();
        h.link().set(one).execute().await.expect("limit segments");
    });
}

async fn routes(h: &Handle, k: u8, i: u32) {
    let table = 100 + u32::from(k);
    let gateway = Ipv4Addr::new(10, 77, k, 1);
    let four = || {
        RouteMessageBuilder::<Ipv4Addr>::new()
            .gateway(gateway)
            .output_interface(i)
    };
    let six = || {
        RouteMessageBuilder::<Ipv6Addr>::new()
            .gateway(v6(k, 1))
            .output_interface(i)
    };
    for message in [
        four().table_id(table).build(),
        four().priority(u32::from(k)).build(),
        six().table_id(table).build(),
        six().priority(u32::from(k)).build(),
    ] {
        h.route().add(message).execute().await.expect("add a route");
    }
    let rule = || {
        h.rule()
            .add()
            .table_id(table)
            .priority(1000)
            .action(RuleAction::ToTable)
    };
    let IpAddr::V4(d4) = device4(k) else {
        unreachable!("device4 is IPv4")
    };
    rule()
        .v4()
        .source_prefix(d4, 32)
        .execute()
        .await
        .expect("add a rule");
    rule()
        .v6()
        .source_prefix(v6(k, 2), 128)
        .execute()
        .await
        .expect("add a rule");
}

fn answer(mut stream: TcpStream) -> bool {
    let block = vec![0x5a; 1 << 16];
    let mut request = [0; 8];
    while stream.read_exact(&mut request).is_ok() {
        let mut left = u64::from_be_bytes(request) as usize;
        if left == 0 {
            return true;
        }
        while left > 0 {
            let n = left.min(block.len());
            if stream.write_all(&block[..n]).is_err() {
                return false;
            }
            left -= n;
        }
    }
    false
}

/// Asks the server for `bytes` and reads them all.
pub fn fetch(stream: &mut TcpStream, bytes: u64) {
    ask(stream, bytes);
    let mut block = vec![0; 1 << 16];
    let mut left = bytes as usize;
    while left > 0 {
        let room = left.min(block.len());
        let n = stream.read(&mut block[..room]).expect("read");
        assert!(n > 0, "the server stopped {left} bytes too early");
        assert!(block[..n].iter().all(|&b| b == 0x5a), "a wrong byte");
        left -= n;
    }
}

/// Asks the server for `bytes`; 0 ends it.
pub fn ask(stream: &mut TcpStream, bytes: u64) {
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("set a timeout");
    stream.write_all(&bytes.to_be_bytes()).expect("write");
}

/// How long what has to happen may take.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Waits until `what` gives something, at most [`LIMIT`].
pub fn eventually<T>(what: &str, f: impl FnMut() -> Option<T>) -> T {
    eventually_within(LIMIT, what, f)
}

/// Waits until `what` gives something, at most so long.
pub fn eventually_within<T>(limit: Duration, what: &str, mut f: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + limit;
    loop {
        if let Some(t) = f() {
            return t;
        }
        assert!(Instant::now() < end, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The service's IPv4 address with a port.
pub fn service(port: u16) -> SocketAddr {
    SocketAddr::new(SERVICE.into(), port)
}
