//! Looks at the machine.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;

use braid_api::client::Client;
use braid_mptcp::buffers::to_receive;
use braid_mptcp::support::{Support, sysctl};
use braid_mptcp::{capabilities, cgroup};

use super::facts::{Arp, Buffers, Daemon, Facts, Interface, Orphans, Trial, UserNamespaces};
use super::{managers, offloads, routes};

const TUN: &str = "/dev/net/tun";

/// Looks; `control` is the daemon's socket.
pub(super) async fn look(control: &Path) -> Facts {
    let (daemon, accesses) = ask(control).await;
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let mut names = routes::defaults(&read("/proc/net/route"), &read("/proc/net/ipv6_route"));
    names.extend(accesses);
    let number = |name: &str| sysctl(name).and_then(|s| s.parse().ok());
    let buffers = |name: &str| sysctl(name).and_then(|s| Buffers::parse(&s));
    let [struct_ops, queues, sockops, fmod_ret] = ebpf();
    Facts {
        support: Support::detect(),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        capabilities: capabilities::effective().unwrap_or(0),
        struct_ops,
        queues,
        sockops,
        fmod_ret,
        bpffs: is_bpffs(),
        orphans: orphans(),
        cgroup: group(),
        tun: tun(),
        user_namespaces: user_namespaces(),
        arp: names.iter().filter_map(|n| arp(n)).collect(),
        interfaces: interfaces(names).await,
        receive: buffers("net.ipv4.tcp_rmem").map(|b| (b, to_receive())),
        send: buffers("net.ipv4.tcp_wmem"),
        stale_loss_cnt: number("net.mptcp.stale_loss_cnt"),
        rto_max_ms: sysctl("net.ipv4.tcp_rto_max_ms").and_then(|s| s.parse().ok()),
        retries2: number("net.ipv4.tcp_retries2"),
        managers: managers::look(),
        daemon,
    }
}

#[cfg(feature = "bpf")]
fn ebpf() -> [Trial; 4] {
    use braid_mptcp::bpf;
    [
        bpf::can_register().into(),
        bpf::can_bound_queues().into(),
        bpf::can_use_congestion_control().into(),
        bpf::can_use_mptcp().into(),
    ]
}

#[cfg(not(feature = "bpf"))]
fn ebpf() -> [Trial; 4] {
    let lacks = Trial::fails(
        "this braid was built without eBPF",
        Some("apt-get install clang libelf-dev zlib1g-dev pkg-config, then make build"),
    );
    [0; 4].map(|_| lacks.clone())
}

#[cfg(feature = "bpf")]
fn orphans() -> Orphans {
    match braid_mptcp::bpf::orphans() {
        Ok(all) => {
            let one = |o: &braid_mptcp::bpf::Orphan| {
                let at = o.directory().display().to_string();
                (at, o.remedy())
            };
            Orphans::Known(all.iter().map(one).collect())
        }
        Err(e) => Orphans::Unknown(e.to_string()),
    }
}

#[cfg(not(feature = "bpf"))]
fn orphans() -> Orphans {
    Orphans::Known(vec![])
}

fn is_bpffs() -> bool {
    nix::sys::statfs::statfs("/sys/fs/bpf")
        .is_ok_and(|s| s.filesystem_type() == nix::sys::statfs::BPF_FS_MAGIC)
}

fn group() -> Trial {
    let own = match cgroup::own() {
        Ok(own) => own,
        Err(e) => return Err::<(), _>(e).into(),
    };
    match nix::unistd::access(&own, nix::unistd::AccessFlags::W_OK) {
        Ok(()) => Trial::Works,
        Err(e) => Trial::fails(
            format!("no cgroup can be made in {}: {}", own.display(), e.desc()),
            Some("run it as root: sudo braid doctor"),
        ),
    }
}

fn tun() -> Trial {
    match OpenOptions::new().read(true).write(true).open(TUN) {
        Ok(_) => Trial::Works,
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Trial::fails(
            format!("{TUN} may not be used by this user"),
            Some("chmod 0666 /dev/net/tun"),
        ),
        Err(e) => Trial::fails(format!("{TUN}: {e}"), Some("modprobe tun")),
    }
}

fn user_namespaces() -> UserNamespaces {
    let is = |name, value| sysctl(name).as_deref() == Some(value);
    let most = sysctl("user.max_user_namespaces").and_then(|s| s.parse::<u64>().ok());
    if !Path::new("/proc/self/ns/user").exists() || most == Some(0) {
        UserNamespaces::None
    } else if is("kernel.unprivileged_userns_clone", "0") {
        UserNamespaces::SwitchedOff(
            "kernel.unprivileged_userns_clone is 0",
            "sysctl -w kernel.unprivileged_userns_clone=1",
        )
    } else if is("kernel.apparmor_restrict_unprivileged_userns", "1") {
        UserNamespaces::SwitchedOff(
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
        )
    } else {
        UserNamespaces::Allowed
    }
}

/// `None` for an interface without IPv4.
fn arp(interface: &str) -> Option<Arp> {
    let value = |of: &str, name: &str| -> Option<u32> {
        let path = Path::new("/proc/sys/net/ipv4/conf").join(of).join(name);
        fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let in_force = |name: &str| Some(value(interface, name)?.max(value("all", name)?));
    Some(Arp {
        interface: interface.to_owned(),
        ignore: in_force("arp_ignore")?,
        announce: in_force("arp_announce")?,
        source_check: in_force("rp_filter")?,
    })
}

async fn interfaces(names: BTreeSet<String>) -> Vec<Interface> {
    let mut all = Vec::new();
    for name in names {
        let offloads = offloads::of(&name).await;
        all.push(Interface { name, offloads });
    }
    all
}

/// How the daemon is, and the interfaces of its accesses.
async fn ask(control: &Path) -> (Daemon, Vec<String>) {
    // Only what is needed, so that a daemon of another version is understood.
    #[derive(serde::Deserialize)]
    struct Said {
        accesses: Vec<Access>,
    }
    #[derive(serde::Deserialize)]
    struct Access {
        #[serde(default)]
        name: String,
        #[serde(default)]
        interface: Option<String>,
        #[serde(default)]
        note: Option<String>,
    }
    match Client::new(control).get::<Said>("/v1/status").await {
        Ok(s) => {
            let count = s.accesses.len();
            let names = s.accesses.iter().filter_map(|a| a.interface.clone());
            let names = names.collect();
            let noted = s
                .accesses
                .into_iter()
                .filter_map(|a| Some((a.name, a.note?)));
            (Daemon::Serves(count, noted.collect()), names)
        }
        Err(braid_api::client::Error::Unreachable { source, .. })
            if source.kind() != std::io::ErrorKind::PermissionDenied =>
        {
            (Daemon::NotRunning, vec![])
        }
        Err(e) => (Daemon::Unknown(e.to_string()), vec![]),
    }
}
