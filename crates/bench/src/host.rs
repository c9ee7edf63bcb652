//! Hosts: network namespaces, each held by a thread that does things in it.

use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Sender, channel};

use anyhow::{Context, Result, anyhow};
use nix::mount::{MsFlags, mount};
use nix::net::if_::if_nametoindex;
use nix::sched::{CloneFlags, setns, unshare};
use rtnetlink::{LinkUnspec, LinkVeth};
use socket2::{Domain, Protocol, Socket, Type};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace. It lasts as long as this, or a socket or process in it.
pub(crate) struct Host {
    jobs: Sender<Job>,
}

impl Host {
    /// A host in a fresh namespace, with a view of `/run` of its own, so that
    /// what others put there (named namespaces) goes with it.
    pub(crate) fn new() -> Result<Self> {
        Self::start(|| {
            unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS)
                .context("cannot make a network namespace; run the benchmark as root")?;
            let private = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, private, None::<&str>)
                .context("cannot make mounts private")?;
            mount(
                Some("tmpfs"),
                "/run",
                Some("tmpfs"),
                MsFlags::empty(),
                None::<&str>,
            )
            .context("cannot mount a private /run")?;
            Ok(())
        })
    }

    /// A host in the namespace of the process `pid`.
    pub(crate) fn of_process(pid: i32) -> Result<Self> {
        Self::start(move || {
            let ns = File::open(format!("/proc/{pid}/ns/net"))
                .with_context(|| format!("cannot find the namespace of process {pid}"))?;
            setns(ns, CloneFlags::CLONE_NEWNET).context("cannot enter a network namespace")
        })
    }

    fn start(enter: impl FnOnce() -> Result<()> + Send + 'static) -> Result<Self> {
        let (jobs, todo) = channel::<Job>();
        let (entered, result) = channel();
        std::thread::Builder::new()
            .name("host".to_owned())
            .spawn(move || {
                let e = enter();
                let failed = e.is_err();
                if entered.send(e).is_ok() && !failed {
                    todo.into_iter().for_each(|job| job());
                }
            })
            .context("cannot start a thread")?;
        result.recv().context("a host's thread ended")??;
        Ok(Self { jobs })
    }

    /// Does `f` on the host's own thread.
    pub(crate) fn with<T: Send + 'static>(
        &self,
        f: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (done, result) = channel();
        let job = Box::new(move || {
            // Nobody waits for the answer any more: then nobody misses it.
            let _ = done.send(f());
        });
        self.jobs
            .send(job)
            .map_err(|_| anyhow!("a host's thread has ended"))?;
        result.recv().context("a host's thread panicked")?
    }

    fn netlink<F: Future<Output = Result<()>>>(
        &self,
        f: impl FnOnce(rtnetlink::Handle) -> F + Send + 'static,
    ) -> Result<()> {
        self.with(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(async {
                let (connection, handle, _) = rtnetlink::new_connection()?;
                tokio::spawn(connection);
                f(handle).await
            })
        })
    }

    /// Gives the interface `name` an address and switches it on.
    pub(crate) fn configure(&self, name: &'static str, address: Ipv4Addr) -> Result<()> {
        self.with(move || {
            // No router solicitations and the like between the measurements.
            std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1")?;
            Ok(())
        })?;
        self.netlink(move |h| async move {
            let index = if_nametoindex(name)?;
            // Room for a burst of super-packets before the emulator reads.
            let up = LinkUnspec::new_with_index(index)
                .up()
                .mtu(1500)
                .txqueuelen(5000);
            h.link().set(up.build()).execute().await?;
            h.address().add(index, address.into(), 30).execute().await?;
            Ok(())
        })
        .with_context(|| format!("cannot configure {name}"))
    }

    /// Lets TCP have windows for 10 Gbit/s and more.
    pub(crate) fn big_windows(&self) -> Result<()> {
        self.with(|| {
            for (key, value) in [
                ("tcp_wmem", "4096 65536 33554432"),
                ("tcp_rmem", "4096 131072 33554432"),
                ("tcp_no_metrics_save", "1"),
            ] {
                std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value)
                    .with_context(|| format!("cannot set {key}"))?;
            }
            Ok(())
        })
    }

    /// A veth pair named `name` on both hosts.
    pub(crate) fn join(&self, other: &Host, name: &'static str) -> Result<()> {
        let there: OwnedFd = other.with(|| Ok(File::open("/proc/thread-self/ns/net")?.into()))?;
        self.netlink(move |h| async move {
            let pair = LinkVeth::new(name, "far0").build();
            h.link().add(pair).execute().await?;
            let far = LinkUnspec::new_with_index(if_nametoindex("far0")?)
                .name(name.to_owned())
                .setns_by_fd(there.as_raw_fd())
                .build();
            h.link().set(far).execute().await?;
            Ok(())
        })
        .context("cannot make a veth pair")
    }

    /// A TCP or UDP socket on this host, bound to `at`.
    pub(crate) fn socket(&self, kind: Type, at: SocketAddr) -> Result<Socket> {
        self.with(move || {
            let protocol = if kind == Type::STREAM {
                Protocol::TCP
            } else {
                Protocol::UDP
            };
            let s = Socket::new(Domain::for_address(at), kind, Some(protocol))?;
            s.bind(&at.into())
                .with_context(|| format!("cannot bind to {at}"))?;
            Ok(s)
        })
    }

    /// Whether `address` is on one of the interfaces.
    pub(crate) fn has_address(&self, address: Ipv4Addr) -> Result<bool> {
        self.with(move || {
            let mut all = nix::ifaddrs::getifaddrs()?;
            Ok(all.any(|i| {
                i.address
                    .and_then(|a| a.as_sockaddr_in().map(|s| s.ip()))
                    .is_some_and(|ip| IpAddr::V4(ip) == IpAddr::V4(address))
            }))
        })
    }
}
