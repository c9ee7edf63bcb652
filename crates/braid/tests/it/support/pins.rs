//! Pins of daemons, and what the kernel has registered of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use braid_mptcp::bpf::{self, Pins};
use braid_mptcp::offer::is_registered;
use braid_mptcp::support;

use braid_netns::world::{Ns, World};

/// Default congestion control of a proxy's namespace before a daemon comes.
pub(crate) const BEFORE: &str = "reno";

/// Two accesses, where eBPF programs can be loaded.
pub(crate) fn world() -> Option<World> {
    if let Err(e) = bpf::require() {
        println!("skipped: {e}");
        return None;
    }
    let w = World::new(2)?;
    w.proxy
        .run(|| support::set_sysctl(support::CONGESTION_CONTROL, BEFORE).unwrap());
    Some(w)
}

/// The default congestion control of a namespace.
pub(crate) fn default(ns: &Ns) -> String {
    ns.run(|| support::sysctl(support::CONGESTION_CONTROL).unwrap())
}

/// Where the pins of this owner are; `None` if nowhere.
pub(crate) fn place(ns: &Ns, owner: &str) -> Option<PathBuf> {
    let all = ns.run(|| Pins::places(owner).unwrap());
    all.into_iter().find(|p| p.is_dir())
}

/// The directory of the version that is pinned there.
pub(crate) fn version(place: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(place).unwrap().map(|e| e.unwrap().path());
    all.find(|p| p.is_dir()).expect("a version")
}

/// Whether the kernel has a congestion control of this name.
pub(crate) fn registered(name: &str) -> bool {
    let all = support::sysctl("net.ipv4.tcp_available_congestion_control").unwrap();
    all.split_whitespace().any(|n| n == name)
}

/// Congestion controls of established connections from `port` in a namespace: Braid's, and those
/// that are built in.
pub(crate) fn in_use(ns: &Ns, port: u16) -> Vec<String> {
    let port = format!(":{port}");
    let out = ns.run(|| {
        let mut ss = Command::new("ss");
        ss.args(["-tinOH", "state", "established", "sport", "=", &port]);
        ss.output().unwrap()
    });
    let text = String::from_utf8(out.stdout).unwrap();
    let known = |w: &&str| is_registered(w) || ["reno", "cubic"].contains(w);
    let all = text
        .lines()
        .filter_map(|l| l.split_whitespace().find(known));
    all.map(str::to_owned).collect()
}
