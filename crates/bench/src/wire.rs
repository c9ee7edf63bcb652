//! The emulator as a process of its own, between two hosts.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Context, Result, bail};
use braid_radio::emulator::api::Stats;
use braid_radio::emulator::{
    Client, EmulatorConfig, PathConfig, PortConfig, PortKind, Tuning, tun,
};
use braid_radio::model::{LinkChange, LinkSpec};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use socket2::{Socket, Type};

use crate::host::Host;
use crate::udp::{Flood, Route};

/// Names of the paths' interfaces, the same on both hosts.
const DEVICES: [&str; 8] = ["p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"];

/// Two hosts and paths between them. Data flows from `near` to `far`, over the
/// `up` link of a path.
pub(crate) struct Wire {
    pub(crate) near: Host,
    pub(crate) far: Host,
    paths: usize,
    child: Child,
    client: Client,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

/// Ports are never used twice in a run.
static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);

/// A port nobody used yet.
pub(crate) fn fresh_port() -> u16 {
    NEXT_PORT.fetch_add(1, Ordering::Relaxed)
}

fn near_address(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, path as u8, 1)
}

fn far_address(path: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 78, path as u8, 2)
}

impl Wire {
    /// Starts an emulator whose paths have `ups` as links from near to far, and
    /// unlimited ones back with the same delay.
    pub(crate) fn start(ups: &[LinkSpec]) -> Result<Self> {
        let (near, far) = (Host::new()?, Host::new()?);
        let mut paths = Vec::new();
        // Open until the child has them; then they must go, or the interfaces stay.
        let mut passed: Vec<OwnedFd> = Vec::new();
        for (i, up) in ups.iter().enumerate() {
            let name = DEVICES.get(i).copied().context("too many paths")?;
            let mut port = |host: &Host, address| -> Result<PortConfig> {
                let tun = host.with(move || Ok(tun::create(name)?))?;
                host.configure(name, address)?;
                fcntl(&tun.fd, FcntlArg::F_SETFD(FdFlag::empty()))?;
                let fd = tun.fd.as_raw_fd();
                passed.push(tun.fd);
                Ok(PortConfig {
                    fd,
                    kind: PortKind::Tun,
                })
            };
            paths.push(PathConfig {
                name: format!("p{i}"),
                device: port(&near, near_address(i))?,
                proxy: port(&far, far_address(i))?,
                down: LinkSpec {
                    delay: up.delay.clone(),
                    ..LinkSpec::default()
                },
                up: up.clone(),
            });
        }
        near.big_windows()?;
        far.big_windows()?;
        let config = EmulatorConfig {
            run_id: "bench".to_owned(),
            seed: 1,
            epoch_ns: None,
            paths,
            media: Vec::new(),
            backhauls: Vec::new(),
            verify: false,
            pcap: None,
            tuning: Tuning::default(),
        };
        let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
        let (file, socket) = (dir.path().join("config.json"), dir.path().join("control"));
        std::fs::write(&file, serde_json::to_vec(&config)?)
            .with_context(|| format!("cannot write {}", file.display()))?;
        let child = spawn(&file, &socket)?;
        drop(passed);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        Ok(Self {
            near,
            far,
            paths: ups.len(),
            child,
            client: Client::new(socket),
            runtime,
            _dir: dir,
        })
    }

    /// Process number of the emulator.
    pub(crate) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The emulator's statistics.
    pub(crate) fn stats(&self) -> Result<Stats> {
        self.runtime.block_on(self.client.stats())
    }

    /// Changes the link of `path` from near to far.
    pub(crate) fn change(&self, path: usize, change: &LinkChange) -> Result<()> {
        let name = format!("p{path}.up");
        self.runtime
            .block_on(self.client.change(&name, change, None))
    }

    /// Connected UDP sockets at the ends of `path`.
    pub(crate) fn udp(&self, path: usize) -> Result<(Socket, Socket)> {
        assert!(path < self.paths, "a path that exists");
        let at = SocketAddr::new(far_address(path).into(), fresh_port());
        let to = self.far.socket(Type::DGRAM, at)?;
        let from = SocketAddr::new(near_address(path).into(), 0);
        let from = self.near.socket(Type::DGRAM, from)?;
        from.connect(&at.into())?;
        Ok((from, to))
    }

    /// A flood over `path`.
    pub(crate) fn route(&self, name: &str, path: usize, flood: Flood) -> Result<Route> {
        let (from, to) = self.udp(path)?;
        Ok(Route {
            name: name.to_owned(),
            from,
            to,
            flood,
        })
    }

    /// A TCP socket ready to connect, and a listening one, at the ends of `path`.
    pub(crate) fn tcp(&self, path: usize) -> Result<(Socket, Socket)> {
        let at = SocketAddr::new(far_address(path).into(), fresh_port());
        let to = self.far.socket(Type::STREAM, at)?;
        to.listen(1)?;
        let from = SocketAddr::new(near_address(path).into(), 0);
        Ok((self.near.socket(Type::STREAM, from)?, to))
    }
}

fn spawn(config: &PathBuf, socket: &PathBuf) -> Result<Child> {
    let mut child = Command::new(std::env::current_exe()?)
        .arg("__radio")
        .arg("--config")
        .arg(config)
        .arg("--control")
        .arg(socket)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the emulator")?;
    let out = child
        .stdout
        .take()
        .context("the emulator has no standard output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    if line.trim() != "ready" {
        let status = child.wait()?;
        bail!("the emulator did not become ready: {status}");
    }
    Ok(child)
}

impl Drop for Wire {
    fn drop(&mut self) {
        // It may have ended by itself: then there is nothing to kill.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
