//! MPTCP features of the kernel, and what to do where it lacks them.
//!
//! `net.mptcp.*` belongs to a network namespace; these functions read and write
//! that of the calling thread.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use crate::error::{Error, Result};
use crate::offer::{self, Offer};
use crate::sockopt;

/// Features of this kernel in the calling thread's network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Support {
    /// The kernel's release, such as `6.18.44`.
    pub kernel: String,
    /// Whether MPTCP is built in.
    pub compiled: bool,
    /// `net.mptcp.enabled`.
    pub enabled: bool,
    /// Path managers (`kernel`, `userspace`).
    pub path_managers: Vec<String>,
    /// Packet schedulers; mainline kernels have only `default`.
    pub schedulers: Vec<String>,
    /// The scheduler of new connections.
    pub scheduler: Option<String>,
    /// Congestion controls that are loaded.
    pub congestion_controls: Vec<String>,
    /// The one that new sockets get.
    pub default_congestion_control: String,
}

impl Support {
    /// Looks.
    pub fn detect() -> Self {
        let mptcp = |name: &str| sysctl(&format!("net.mptcp.{name}"));
        let words = |s: Option<String>| -> Vec<String> {
            s.unwrap_or_default()
                .split_whitespace()
                .map(str::to_owned)
                .collect()
        };
        let enabled = mptcp("enabled");
        let mut path_managers = words(mptcp("available_path_managers"));
        if path_managers.is_empty() && mptcp("pm_type").is_some() {
            // Before Linux 6.15 both were there, unnamed.
            path_managers = vec!["kernel".into(), "userspace".into()];
        }
        Self {
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map(|s| s.trim().to_owned())
                .unwrap_or_default(),
            compiled: enabled.is_some(),
            enabled: enabled.as_deref() == Some("1"),
            path_managers,
            schedulers: words(mptcp("available_schedulers")),
            scheduler: mptcp("scheduler"),
            congestion_controls: words(sysctl("net.ipv4.tcp_available_congestion_control")),
            default_congestion_control: sysctl(CONGESTION_CONTROL).unwrap_or_default(),
        }
    }

    /// Whether MPTCP can be used here as it stands.
    ///
    /// # Errors
    /// [`Error::Lacking`], with the line that enables it.
    pub fn require(&self) -> Result<()> {
        if !self.compiled {
            return Err(no_mptcp());
        }
        if !self.enabled {
            return Err(mptcp_disabled());
        }
        Ok(())
    }

    /// Whether this packet scheduler can be used.
    ///
    /// # Errors
    /// [`Error::Scheduler`], which names those that can be had, those by eBPF among them.
    pub fn require_scheduler(&self, name: &str) -> Result<()> {
        let offer = Offer::schedulers(self, offer::ebpf());
        if offer.kernel.iter().any(|s| s == name) {
            return Ok(());
        }
        let in_braids_kernel = offer::BRAIDS_KERNEL.contains(&name);
        let near = offer.nearest_scheduler(name).filter(|_| !in_braids_kernel);
        Err(Error::Scheduler {
            asked: name.to_owned(),
            release: self.kernel.clone(),
            offer: Box::new(offer),
            near,
            in_braids_kernel,
        })
    }

    /// Whether this congestion control can be used.
    ///
    /// # Errors
    /// [`Error::CongestionControl`], which names those that exist.
    pub fn require_congestion_control(&self, name: &str) -> Result<()> {
        if self.congestion_controls.iter().any(|c| c == name) {
            return Ok(());
        }
        Err(unavailable(name, self))
    }
}

/// The sysctl of the congestion control that sockets of a namespace begin with.
pub const CONGESTION_CONTROL: &str = "net.ipv4.tcp_congestion_control";

/// A sysctl of the calling thread's namespace by its dotted name.
pub fn sysctl(name: &str) -> Option<String> {
    fs::read_to_string(sysctl_path(name))
        .ok()
        .map(|s| s.trim().to_owned())
}

/// Sets a sysctl of the calling thread's namespace.
///
/// # Errors
/// It does not exist, the value is refused, or there is no right to write it.
pub fn set_sysctl(name: &str, value: &str) -> Result<()> {
    fs::write(sysctl_path(name), value)
        .map_err(|e| Error::io(format!("set sysctl {name} to {value}"), e))
}

fn sysctl_path(name: &str) -> std::path::PathBuf {
    Path::new("/proc/sys").join(name.replace('.', "/"))
}

/// The number of the calling thread's network namespace, which the kernel gives to no other
/// before the next boot (`SO_NETNS_COOKIE`).
///
/// # Errors
/// No descriptors left, or a kernel before 5.14.
pub fn namespace_cookie() -> Result<u64> {
    let attempted = "tell this network namespace from others";
    let socket = UnixDatagram::unbound().map_err(|e| Error::io(attempted, e))?;
    let mut cookie = [0; 8];
    sockopt::get(
        socket.as_fd(),
        libc::SOL_SOCKET,
        libc::SO_NETNS_COOKIE,
        &mut cookie,
    )
    .map_err(|e| Error::io(attempted, e))?;
    Ok(u64::from_ne_bytes(cookie))
}

pub(crate) fn no_mptcp() -> Error {
    Error::Lacking {
        what: "this kernel is built without MPTCP".into(),
        remedy: "install a kernel with CONFIG_MPTCP=y and CONFIG_MPTCP_IPV6=y, such as that of \
                 Debian 12 or later: apt-get install linux-image-amd64, then reboot"
            .into(),
    }
}

pub(crate) fn mptcp_disabled() -> Error {
    Error::Lacking {
        what: "MPTCP is switched off in this network namespace".into(),
        remedy: "switch it on: sysctl -w net.mptcp.enabled=1".into(),
    }
}

/// `name` was refused: says what could be chosen instead.
pub(crate) fn no_congestion_control(name: &str) -> Error {
    unavailable(name, &Support::detect())
}

fn unavailable(name: &str, support: &Support) -> Error {
    let modules = Path::new("/lib/modules").join(&support.kernel);
    let modules = fs::read_to_string(modules.join("modules.dep")).unwrap_or_default();
    let module = module(name, &modules);
    let offer = Offer::congestion_controls(support, offer::ebpf());
    let exists = module.is_some() || offer::is_known_congestion_control(name);
    Error::CongestionControl {
        asked: name.to_owned(),
        near: offer.nearest_congestion_control(name).filter(|_| !exists),
        offer: Box::new(offer),
        module,
    }
}

/// The module of a congestion control, if `modules.dep` has it: `kernel/net/ipv4/tcp_NAME.ko`,
/// perhaps compressed, then what it needs.
fn module(name: &str, modules: &str) -> Option<String> {
    let wanted = format!("tcp_{name}");
    let is = |line: &str| {
        let path = line.split(':').next()?;
        let file = path.rsplit('/').next()?;
        Some(file.split_once(".ko")?.0 == wanted)
    };
    modules
        .lines()
        .any(|l| is(l) == Some(true))
        .then_some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support() -> Support {
        Support {
            kernel: "6.1.0".into(),
            compiled: true,
            enabled: true,
            path_managers: vec!["kernel".into()],
            schedulers: vec!["default".into()],
            scheduler: Some("default".into()),
            congestion_controls: vec!["reno".into(), "cubic".into()],
            default_congestion_control: "cubic".into(),
        }
    }

    #[test]
    fn what_lacks_comes_with_its_remedy() {
        assert!(support().require().is_ok());
        let off = Support {
            enabled: false,
            ..support()
        };
        let e = off.require().unwrap_err();
        assert!(
            e.is_lacking() && e.to_string().contains("sysctl -w net.mptcp.enabled=1"),
            "{e}"
        );
        let none = Support {
            compiled: false,
            ..support()
        };
        assert!(
            none.require()
                .unwrap_err()
                .to_string()
                .contains("CONFIG_MPTCP=y")
        );
    }

    #[test]
    fn an_unknown_scheduler_names_the_known() {
        assert!(support().require_scheduler("default").is_ok());
        let e = support().require_scheduler("blest").unwrap_err();
        assert!(e.is_lacking() && !e.is_misnamed());
        let e = e.to_string();
        let words = "\"blest\" takes Braid's own kernel: this machine (Linux 6.1.0) has default";
        assert!(e.contains(words) && !e.contains("--clock"), "{e}");
        let e = support().require_scheduler("blesst").unwrap_err();
        assert!(e.is_misnamed() && !e.is_lacking());
        let e = e.to_string();
        assert!(
            e.starts_with("there is no packet scheduler \"blesst\": ")
                && e.ends_with("; did you mean \"blest\"?"),
            "{e}"
        );
    }

    #[test]
    fn an_unknown_congestion_control_names_the_known() {
        let e = support().require_congestion_control("vegas").unwrap_err();
        assert!(e.is_lacking());
        let e = e.to_string();
        assert!(e.contains("\"vegas\"") && e.contains("reno, cubic"), "{e}");
        let e = support().require_congestion_control("cubik").unwrap_err();
        assert!(e.is_misnamed(), "{e}");
        let e = e.to_string();
        assert!(e.ends_with("; did you mean \"cubic\"?"), "{e}");
    }

    #[test]
    fn only_a_module_that_is_there_is_to_be_loaded() {
        let modules = "kernel/net/ipv4/tcp_vegas.ko.xz: kernel/lib/some.ko.xz\n\
            kernel/net/ipv4/tcp_bbr.ko:\nkernel/net/mptcp/mptcp_diag.ko: kernel/tcp_lp.ko\n";
        let of = |name| module(name, modules);
        assert_eq!(of("vegas").as_deref(), Some("tcp_vegas"));
        assert_eq!(of("bbr").as_deref(), Some("tcp_bbr"));
        for none in ["bb", "lp", "none", "", "wrr_1_0", "../bbr"] {
            assert_eq!(of(none), None, "{none}");
        }
        let say = |module| {
            let e = Error::CongestionControl {
                asked: "vegas".into(),
                offer: Box::new(Offer::congestion_controls(&support(), false)),
                near: None,
                module,
            };
            e.to_string()
        };
        assert!(say(of("vegas")).ends_with("reno, cubic, or load it: modprobe tcp_vegas"));
        assert!(say(None).ends_with("choose one of reno, cubic"));
    }
}
