//! The kernel's token bucket, `tc qdisc ... tbf`, on a veth pair.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use anyhow::{Context, Result, bail};
use socket2::Type;

use crate::host::Host;
use crate::udp::{Flood, Route};
use crate::wire::fresh_port;

const NAME: &str = "v0";

/// Two hosts behind a token bucket.
pub(super) struct Shaper {
    near: Host,
    far: Host,
}

impl Shaper {
    /// A bucket of `mbps` by its own count: with the Ethernet header.
    pub(super) fn start(mbps: f64) -> Result<Self> {
        let (near, far) = (Host::new()?, Host::new()?);
        near.join(&far, NAME)?;
        near.configure(NAME, Ipv4Addr::new(10, 79, 0, 1))?;
        far.configure(NAME, Ipv4Addr::new(10, 79, 0, 2))?;
        near.with(move || {
            // As its manual asks: a bucket of at least rate / HZ.
            let burst = (mbps * 1e6 / 8.0 / 250.0).max(20_000.0) as u64;
            let output = Command::new("tc")
                .args([
                    "qdisc", "add", "dev", NAME, "root", "tbf", "latency", "50ms",
                ])
                .args(["rate", &format!("{}bit", (mbps * 1e6) as u64)])
                .args(["burst", &burst.to_string()])
                .output()
                .context("cannot run tc (package iproute2)")?;
            if !output.status.success() {
                bail!("tc: {}", String::from_utf8_lossy(&output.stderr).trim());
            }
            Ok(())
        })?;
        Ok(Self { near, far })
    }

    /// A flood through it.
    pub(super) fn route(&self, flood: Flood) -> Result<Route> {
        let at = SocketAddr::new(Ipv4Addr::new(10, 79, 0, 2).into(), fresh_port());
        let to = self.far.socket(Type::DGRAM, at)?;
        let from = SocketAddr::new(Ipv4Addr::new(10, 79, 0, 1).into(), 0);
        let from = self.near.socket(Type::DGRAM, from)?;
        from.connect(&at.into())?;
        Ok(Route {
            name: "tbf".to_owned(),
            from,
            to,
            flood,
        })
    }
}
