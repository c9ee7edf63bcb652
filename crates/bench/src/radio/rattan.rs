//! The published emulator `rattan` (crates.io), run as its guide says: its own
//! namespaces, veth pairs and packet sockets, the templated channel.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use socket2::{Socket, Type};

use crate::host::Host;
use crate::wire::fresh_port;

/// The version compared with.
pub(super) const VERSION: &str = "0.1.1";
/// Addresses that rattan gives its sides.
const LEFT: Ipv4Addr = Ipv4Addr::new(10, 1, 1, 1);
const RIGHT: Ipv4Addr = Ipv4Addr::new(10, 2, 1, 1);

/// Rattan at work between two hosts; data flows from `near` to `far`.
pub(super) struct Rattan {
    near: Host,
    far: Host,
    child: Child,
    /// The process that keeps its left side busy.
    keeper: i32,
}

/// Path of the program, installed under `tools` if it is not there.
pub(super) fn install(tools: &Path) -> Result<PathBuf> {
    let tools = std::path::absolute(tools)?;
    let program = tools.join("bin/rattan");
    let there = std::fs::metadata(&program).is_ok_and(|m| m.permissions().mode() & 0o111 != 0);
    if !there {
        eprintln!("installing rattan {VERSION} to {}", tools.display());
        let status = Command::new("cargo")
            .args([
                "install",
                "rattan",
                "--locked",
                "--version",
                VERSION,
                "--root",
            ])
            .arg(&tools)
            // Its own build, not ours.
            .env_remove("CARGO_TARGET_DIR")
            .status()
            .context("cannot run cargo")?;
        ensure!(status.success(), "cargo install rattan failed: {status}");
    }
    Ok(program)
}

impl Rattan {
    /// Starts it with `arguments` of `rattan link`.
    pub(super) fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let far = Host::new()?;
        far.big_windows()?;
        let mut command = Command::new(program);
        command
            .arg("link")
            .args(arguments)
            .args(["--", "sh", "-c", "echo keeper $$; exec sleep 3600"])
            .env("RUST_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = far.with(move || command.spawn().context("cannot start rattan"))?;
        let out = child
            .stdout
            .take()
            .context("rattan has no standard output")?;
        let mut keeper = None;
        for line in BufReader::new(out).lines() {
            if let Some(pid) = line?.strip_prefix("keeper ") {
                keeper = pid.trim().parse().ok();
                break;
            }
        }
        let Some(keeper) = keeper else {
            bail!("rattan did not start: {}", child.wait()?);
        };
        let near = Host::of_process(keeper)?;
        near.big_windows()?;
        let rattan = Self {
            near,
            far,
            child,
            keeper,
        };
        let end = Instant::now() + Duration::from_secs(10);
        while !rattan.far.has_address(RIGHT)? {
            ensure!(Instant::now() < end, "rattan did not set up its right side");
            std::thread::sleep(Duration::from_millis(20));
        }
        // Its threads start to forward a little later than its command.
        std::thread::sleep(Duration::from_millis(500));
        Ok(rattan)
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    fn sockets(&self, kind: Type) -> Result<(Socket, Socket)> {
        let to = self
            .far
            .socket(kind, SocketAddr::new(RIGHT.into(), fresh_port()))?;
        let from = self.near.socket(kind, SocketAddr::new(LEFT.into(), 0))?;
        Ok((from, to))
    }

    /// Connected UDP sockets at its ends.
    pub(super) fn udp(&self) -> Result<(Socket, Socket)> {
        let (from, to) = self.sockets(Type::DGRAM)?;
        from.connect(&to.local_addr()?)?;
        Ok((from, to))
    }

    /// A TCP socket ready to connect, and a listening one.
    pub(super) fn tcp(&self) -> Result<(Socket, Socket)> {
        let (from, to) = self.sockets(Type::STREAM)?;
        to.listen(1)?;
        Ok((from, to))
    }
}

impl Rattan {
    /// Ends rattan's command, and with that rattan itself, which cleans up.
    fn end(&mut self) {
        let _ = kill(Pid::from_raw(self.keeper), Signal::SIGTERM);
        let end = Instant::now() + Duration::from_secs(5);
        while Instant::now() < end {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Rattan {
    fn drop(&mut self) {
        self.end();
        // What it leaves behind, unless another one uses it.
        for dir in ["/tmp/rattan/ip_lock", "/tmp/rattan"] {
            let _ = std::fs::remove_dir(dir);
        }
    }
}
