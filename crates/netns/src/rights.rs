//! How to get the rights that a topology takes, and what is missing without.
//!
//! Root has them. Anyone else gets them in a user namespace of their own, over
//! network namespaces made there: enough for everything but what touches the
//! host (real-time priority, locked memory, large socket buffers).

use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result};
use braid_mptcp::capabilities::{effective, has};
use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::sys::resource::{Resource, getrlimit};
use nix::unistd::{getgid, getuid};

use super::namespace::Namespace;
use super::ports::tun_usable;
use crate::error::{LabError, Missing};

/// Says that this process runs in a user namespace made by [`acquire`], and
/// whose user outside it is.
const USERNS_VARIABLE: &str = "BRAID_LAB_USERNS";

/// Bits of a capability set, capabilities(7).
const CAP_NET_ADMIN: u32 = 12;
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;

/// Locked memory that an emulator may want, bytes.
const LOCKED_MEMORY: u64 = 256 << 20;

/// Where the rights of this process come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Rights of the process as it is.
    Direct,
    /// Rights of root in a user namespace of the process's own.
    UserNamespace,
}

/// Makes sure that this process may build topologies. Where it may not, it
/// enters a user namespace and starts itself again there, so `main` calls this
/// first, before any thread is started.
///
/// `first` is run once, before that: the place for a sweep, as the processes
/// of other runs are out of reach from inside of a user namespace.
///
/// # Errors
/// [`LabError::Missing`] when there is no way; and the errors of `first`.
pub fn acquire(first: impl FnOnce() -> Result<(), LabError>) -> Result<Rights, LabError> {
    let capabilities = effective().map_err(anyhow::Error::from)?;
    let capable = has(capabilities, CAP_NET_ADMIN) && has(capabilities, CAP_SYS_ADMIN);
    if capable && current() == Rights::UserNamespace {
        return Ok(Rights::UserNamespace);
    }
    first()?;
    if capable {
        return Ok(Rights::Direct);
    }
    match enter_user_namespace() {
        Ok(never) => match never {},
        Err(e) => Err(e.into()),
    }
}

/// Where the rights of this process come from, if it has any.
pub fn current() -> Rights {
    if std::env::var_os(USERNS_VARIABLE).is_some() {
        Rights::UserNamespace
    } else {
        Rights::Direct
    }
}

/// The user id outside of a user namespace of ours.
pub(super) fn real_uid() -> u32 {
    let outside = std::env::var(USERNS_VARIABLE)
        .ok()
        .and_then(|v| v.parse().ok());
    outside.unwrap_or_else(|| getuid().as_raw())
}

/// Lists what cannot be done here, what is done instead, and what would enable it.
pub fn limits() -> Result<Vec<Missing>, LabError> {
    let direct = current() == Rights::Direct;
    let capabilities = effective().map_err(anyhow::Error::from)?;
    let may = |capability| direct && has(capabilities, capability);
    let limit = |resource| getrlimit(resource).map_or(0, |(soft, _)| soft);
    let mut limits = Vec::new();
    let mut add = |what: &str, fix: &str| {
        limits.push(Missing {
            what: what.into(),
            fix: fix.into(),
        })
    };
    if let Err(LabError::Missing(Missing { what, fix })) = tun_usable() {
        add(
            &format!(
                "{what}: links run over veth pairs and packet sockets, which cost more CPU time"
            ),
            &fix,
        );
    }
    if !may(CAP_SYS_NICE) && limit(Resource::RLIMIT_RTPRIO) == 0 {
        add(
            "no real-time priority (SCHED_FIFO): other programs can make the emulator late",
            "run as root: sudo braid ...; or: echo \"$USER - rtprio 50\" | sudo tee -a /etc/security/limits.conf, and log in again",
        );
    }
    if !may(CAP_IPC_LOCK) && limit(Resource::RLIMIT_MEMLOCK) < LOCKED_MEMORY {
        add(
            "memory cannot be locked (mlockall): under memory pressure the emulator can be late",
            "run as root: sudo braid ...; or: echo \"$USER - memlock unlimited\" | sudo tee -a /etc/security/limits.conf, and log in again",
        );
    }
    if !may(CAP_NET_ADMIN) {
        add(
            "socket buffers stay below the host's limit (net.core.rmem_max): packet sockets can drop bursts",
            "run as root: sudo braid ...; or: sudo sysctl -w net.core.rmem_max=33554432 net.core.wmem_max=33554432",
        );
    }
    Ok(limits)
}

/// Enters a user namespace as `unshare --user --map-root-user` does. Returns only if it fails.
fn enter_user_namespace() -> Result<Infallible> {
    let (uid, gid) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| explain_user_namespace(e, &Settings::read()))?;
    let map = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|e| match e.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                explain_user_namespace(Errno::EPERM, &Settings::read()).into()
            }
            _ => anyhow::Error::from(e).context(format!("write /proc/self/{file}")),
        })
    };
    // user_namespaces(7): without this, the groups cannot be mapped.
    map("setgroups", "deny".into())?;
    map("uid_map", format!("0 {uid} 1"))?;
    map("gid_map", format!("0 {gid} 1"))?;
    // Some systems give a user namespace, but no rights in it.
    Namespace::create("a probe")?;
    let mut args = std::env::args_os();
    let mut again = Command::new("/proc/self/exe");
    if let Some(name) = args.next() {
        again.arg0(name);
    }
    let error = again
        .args(args)
        .env(USERNS_VARIABLE, uid.to_string())
        .exec();
    Err(error).context("start again in a user namespace")
}

/// Settings of the kernel that forbid user namespaces; `None`: it has none
/// such.
#[derive(Debug, Default)]
struct Settings {
    max_user_namespaces: Option<u64>,
    unprivileged_userns_clone: Option<u64>,
    apparmor_restrict: Option<u64>,
}

impl Settings {
    fn read() -> Self {
        let get = |path: &str| {
            fs::read_to_string(format!("/proc/sys/{path}"))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        Self {
            max_user_namespaces: get("user/max_user_namespaces"),
            unprivileged_userns_clone: get("kernel/unprivileged_userns_clone"),
            apparmor_restrict: get("kernel/apparmor_restrict_unprivileged_userns"),
        }
    }
}

/// Why there can be no user namespace, and what would enable it.
fn explain_user_namespace(error: Errno, settings: &Settings) -> LabError {
    let what = |why: &str| {
        format!(
            "without root, a user namespace is needed, and this system {why} ({})",
            error.desc()
        )
    };
    if settings.max_user_namespaces == Some(0) {
        LabError::missing(
            what("allows none"),
            "sudo sysctl -w user.max_user_namespaces=15000",
        )
    } else if settings.unprivileged_userns_clone == Some(0) {
        LabError::missing(
            what("gives them to root only"),
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        )
    } else if settings.apparmor_restrict == Some(1) {
        let fix = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
        LabError::missing(what("gives no rights in them (AppArmor)"), fix)
    } else if error == Errno::ENOSPC {
        LabError::missing(
            what("has too many already"),
            "sudo sysctl -w user.max_user_namespaces=100000",
        )
    } else {
        LabError::missing(what("gives none"), "run it as root: sudo braid ...")
    }
}

/// Turns the refusal of a new network namespace into what the machine lacks.
pub(super) fn explain_namespace_error(error: io::Error) -> anyhow::Error {
    let what = format!("make a network namespace: {error}");
    match error.raw_os_error() {
        Some(libc::EPERM) if Settings::read().apparmor_restrict == Some(1) => {
            explain_user_namespace(Errno::EPERM, &Settings::read()).into()
        }
        Some(libc::EPERM) => {
            let fix =
                "run it as root: sudo braid ... (in a container, one started with --privileged)";
            LabError::missing(what, fix).into()
        }
        Some(libc::ENOSPC) => {
            LabError::missing(what, "sudo sysctl -w user.max_net_namespaces=100000").into()
        }
        Some(libc::EINVAL) => LabError::missing(what, "use a kernel with CONFIG_NET_NS").into(),
        _ => anyhow::Error::from(error).context("make a network namespace"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_forbid_user_namespaces_has_its_remedy() {
        let none = Settings {
            max_user_namespaces: Some(0),
            ..Settings::default()
        };
        let debian = Settings {
            unprivileged_userns_clone: Some(0),
            ..Settings::default()
        };
        let ubuntu = Settings {
            max_user_namespaces: Some(9),
            apparmor_restrict: Some(1),
            ..Settings::default()
        };
        let open = Settings {
            max_user_namespaces: Some(9),
            apparmor_restrict: Some(0),
            ..Settings::default()
        };
        for (errno, settings, fix) in [
            (Errno::ENOSPC, none, "user.max_user_namespaces=15000"),
            (Errno::EPERM, debian, "kernel.unprivileged_userns_clone=1"),
            (
                Errno::EPERM,
                ubuntu,
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (Errno::EPERM, open, "sudo braid"),
            (
                Errno::ENOSPC,
                Settings::default(),
                "user.max_user_namespaces=100000",
            ),
        ] {
            let error = explain_user_namespace(errno, &settings);
            assert_eq!(error.exit_code(), 3);
            assert!(error.to_string().contains(fix), "{error}");
        }
    }

    #[test]
    fn a_refused_network_namespace_is_explained() {
        for (code, status) in [
            (libc::EPERM, 3),
            (libc::ENOSPC, 3),
            (libc::EINVAL, 3),
            (libc::EIO, 1),
        ] {
            let error = explain_namespace_error(io::Error::from_raw_os_error(code));
            assert_eq!(crate::error::exit_code(&error), status, "{error:#}");
        }
    }
}
