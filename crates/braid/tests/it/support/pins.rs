//! Pins of daemons, and what the kernel has registered of them.

use std::path::{Path, PathBuf};

use braid_mptcp::bpf::{self, Pins};
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
