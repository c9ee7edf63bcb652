//! Facts about the machine, as they were found. Looking changes nothing.

use braid_mptcp::buffers::Sizes;
use braid_mptcp::support::Support;

/// Everything that [`super::judge`] judges.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) support: Support,
    /// The kernel's description of its types is there.
    pub(super) btf: bool,
    pub(super) capabilities: u64,
    /// Congestion controls of Braid's as eBPF programs.
    pub(super) struct_ops: Trial,
    /// A bound of what waits on subflows.
    pub(super) queues: Trial,
    /// A congestion control for the connections of a cgroup.
    pub(super) sockops: Trial,
    /// MPTCP for the sockets of a cgroup.
    pub(super) fmod_ret: Trial,
    pub(super) bpffs: bool,
    pub(super) orphans: Orphans,
    pub(super) cgroup: Trial,
    pub(super) tun: Trial,
    /// Why no user namespace can be made by users.
    pub(super) user_namespaces: UserNamespaces,
    pub(super) interfaces: Vec<Interface>,
    /// Where each of them has IPv4.
    pub(super) arp: Vec<Arp>,
    /// And what the daemon would begin with here.
    pub(super) receive: Option<(Buffers, Sizes)>,
    pub(super) send: Option<Buffers>,
    pub(super) stale_loss_cnt: Option<u32>,
    pub(super) rto_max_ms: Option<u64>,
    pub(super) retries2: Option<u32>,
    pub(super) managers: Managers,
    pub(super) daemon: Daemon,
}

/// Whether something worked when it was tried, or why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trial {
    Works,
    Fails {
        what: String,
        /// The line that enables it, where there is one.
        remedy: Option<String>,
    },
}

impl Trial {
    pub(super) fn fails(what: impl Into<String>, remedy: Option<&str>) -> Self {
        Self::Fails {
            what: what.into(),
            remedy: remedy.map(str::to_owned),
        }
    }
}

impl<T> From<braid_mptcp::Result<T>> for Trial {
    fn from(result: braid_mptcp::Result<T>) -> Self {
        match result {
            Ok(_) => Self::Works,
            Err(braid_mptcp::Error::Lacking { what, remedy }) => Self::Fails {
                what,
                remedy: Some(remedy),
            },
            Err(e) => Self::fails(e.to_string(), None),
        }
    }
}

/// Pins of killed daemons in network namespaces that are gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Orphans {
    /// Where, and the line that takes it away.
    Known(Vec<(String, String)>),
    /// There are pins, and why their namespaces cannot be told.
    Unknown(String),
}

/// Right of users to make namespaces of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UserNamespaces {
    Allowed,
    /// The kernel has none, or none are left to make.
    None,
    /// Debian's and Ubuntu's switches.
    SwitchedOff(&'static str, &'static str),
}

/// An interface by which traffic leaves, and what its driver does for it; `None`
/// where it does not tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) name: String,
    pub(super) offloads: Option<Offloads>,
}

/// How an interface answers and asks ARP, and checks sources: the values in force, the larger ones
/// of `all` and its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) interface: String,
    /// `arp_ignore`.
    pub(super) ignore: u32,
    /// `arp_announce`.
    pub(super) announce: u32,
    /// `rp_filter`, which checks the sources of what arrives: 1 is strict (RFC 3704 2.2).
    pub(super) source_check: u32,
}

/// Generic receive offload, generic and TCP segmentation offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Offloads {
    pub(super) gro: bool,
    pub(super) gso: bool,
    pub(super) tso: bool,
}

/// `tcp_rmem` or `tcp_wmem`, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Buffers {
    pub(super) initial: u64,
    pub(super) most: u64,
}

impl Buffers {
    /// The least is of no use to us.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let [_, initial, most] = braid_mptcp::buffers::read(text)?.map(u64::from);
        Some(Self { initial, most })
    }
}

/// Programs that set up networks, if they run in this namespace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Managers {
    /// Whether NetworkManager sets MPTCP endpoints.
    pub(super) network_manager: Option<bool>,
    /// Whether systemd-networkd removes rules and routes of others.
    pub(super) networkd: Option<bool>,
}

/// Whether the daemon answers on its control socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Daemon {
    /// With so many accesses, and what it notes on some of them: name and note.
    Serves(usize, Vec<(String, String)>),
    NotRunning,
    /// No right to query the daemon, or no answer from it.
    Unknown(String),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buffers_are_three_numbers() {
        let b = Buffers::parse("4096\t131072\t33554432").unwrap();
        assert_eq!((b.initial, b.most), (131_072, 33_554_432));
        for bad in ["", "1 2", "a b c", "1 2 -3"] {
            assert_eq!(Buffers::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(s in "\\PC*") {
            let _ = Buffers::parse(&s);
        }
    }
}
