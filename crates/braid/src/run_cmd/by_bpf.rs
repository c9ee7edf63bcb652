//! MPTCP by eBPF, for a cgroup that is made for the run.

use std::io;
use std::process::{Child, Command};

use anyhow::Result;
use braid_mptcp::Error;
use braid_mptcp::cgroup::Made;

use super::machine;

/// Programs and group that stand for the time of the run, taken back in this order.
pub(super) struct Attached {
    #[cfg(feature = "bpf")]
    _programs: Vec<braid_mptcp::bpf::Attached>,
    group: Made,
}

impl Attached {
    /// Makes the group and attaches what gives it MPTCP, with the congestion
    /// control `cc`.
    ///
    /// # Errors
    /// Why this machine, or this user, cannot.
    pub(super) fn new(cc: Option<&str>) -> Result<Self, Error> {
        #[cfg(feature = "bpf")]
        {
            use braid_mptcp::bpf;
            // Said first where it is the reason: without it, no group can be made.
            bpf::require()?;
            let group = Made::new()?;
            let mut programs = vec![bpf::use_mptcp(group.path())?];
            if let Some(cc) = cc {
                programs.push(bpf::use_congestion_control(group.path(), cc)?);
            }
            Ok(Self {
                _programs: programs,
                group,
            })
        }
        #[cfg(not(feature = "bpf"))]
        {
            let _ = cc;
            Err(without_bpf())
        }
    }

    /// Starts the program in the group.
    ///
    /// # Errors
    /// The group cannot be entered.
    pub(super) fn spawn(&self, command: &mut Command) -> Result<io::Result<Child>> {
        self.group.start(|| command.spawn()).map_err(machine)
    }
}

/// Error that a build without eBPF reports.
#[cfg(not(feature = "bpf"))]
pub(super) fn without_bpf() -> Error {
    Error::Lacking {
        what: "this braid was built without eBPF".into(),
        remedy: "apt-get install clang libelf-dev zlib1g-dev pkg-config, then make build".into(),
    }
}
