//! Errors of this crate.

use std::io;

use crate::offer::{self, Offer};

fn meant(near: Option<&str>) -> String {
    near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"))
}

/// Failure of this crate: what was attempted, what went wrong, and what can be done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused a netlink request.
    #[error("{attempted}: {source}{}", kernel.as_deref().map(|k| format!(" (the kernel says: {k})")).unwrap_or_default())]
    Netlink {
        /// Request that failed, in words.
        attempted: String,
        /// The kernel's own words (extended acknowledgement), if it had any.
        kernel: Option<String>,
        /// The error number.
        source: io::Error,
    },
    /// A system call or a file failed.
    #[error("{attempted}: {source}")]
    Io {
        /// Attempt that failed, in words.
        attempted: String,
        /// The error number.
        source: io::Error,
    },
    /// A subscription to the kernel's messages failed.
    #[error(transparent)]
    Access(#[from] braid_access::Error),
    /// The kernel's answer was not what its documentation says.
    #[error("{attempted}: cannot read the kernel's answer: {what}")]
    Answer {
        /// Request, in words.
        attempted: String,
        /// Fault found in the answer.
        what: String,
    },
    /// An eBPF program or one of its maps cannot be loaded, attached or written.
    #[error("{attempted}: {what}")]
    Bpf {
        /// Attempt that failed, in words.
        attempted: String,
        /// Reason, mostly libbpf's.
        what: String,
    },
    /// Saved state of another process, or state that it holds, cannot be used.
    #[error("{attempted}: {what}")]
    Left {
        /// Attempt in words, and its object.
        attempted: String,
        /// Reason why it cannot be used.
        what: String,
    },
    /// The machine lacks something; exit status 3.
    #[error("{what}; {remedy}")]
    Lacking {
        /// Description of what is missing.
        what: String,
        /// The exact line that installs or enables it.
        remedy: String,
    },
    /// A congestion control that this machine does not have; exit status 3 where other machines
    /// have one of that name, else 2.
    #[error(
        "congestion control \"{asked}\" is not available here: choose one of {offer}{}{}",
        module.as_deref().map(|m| format!(", or load it: modprobe {m}")).unwrap_or_default(),
        meant(near.as_deref())
    )]
    CongestionControl {
        /// The one asked for.
        asked: String,
        /// Congestion controls that can be had.
        offer: Box<Offer>,
        /// Name that was meant, where one is near enough.
        near: Option<String>,
        /// The module that has it, where this machine has one.
        module: Option<String>,
    },
    /// A packet scheduler that this machine does not have; exit status 3 where Braid's own kernel
    /// has it, else 2.
    #[error(
        "{} \"{asked}\"{}: this machine (Linux {release}) has {offer}{}",
        if *in_braids_kernel { "the packet scheduler" } else { "there is no packet scheduler" },
        if *in_braids_kernel { " takes Braid's own kernel" } else { "" },
        meant(near.as_deref())
    )]
    Scheduler {
        /// The one asked for.
        asked: String,
        /// The kernel's release.
        release: String,
        /// Packet schedulers that can be had.
        offer: Box<Offer>,
        /// Name that was meant, where one is near enough.
        near: Option<String>,
        /// Whether Braid's own kernel has it.
        in_braids_kernel: bool,
    },
}

impl Error {
    pub(crate) fn io(attempted: impl Into<String>, source: io::Error) -> Self {
        Self::Io {
            attempted: attempted.into(),
            source,
        }
    }

    pub(crate) fn answer(attempted: impl Into<String>, what: impl ToString) -> Self {
        Self::Answer {
            attempted: attempted.into(),
            what: what.to_string(),
        }
    }

    #[cfg(feature = "bpf")]
    pub(crate) fn bpf(attempted: impl Into<String>, what: impl ToString) -> Self {
        Self::Bpf {
            attempted: attempted.into(),
            what: what.to_string(),
        }
    }

    #[cfg(feature = "bpf")]
    pub(crate) fn left(attempted: impl Into<String>, what: impl ToString) -> Self {
        Self::Left {
            attempted: attempted.into(),
            what: what.to_string(),
        }
    }

    /// Whether the machine lacks something that the user can install or enable.
    pub fn is_lacking(&self) -> bool {
        match self {
            Self::Lacking { .. } => true,
            Self::CongestionControl { asked, module, .. } => {
                module.is_some() || offer::is_known_congestion_control(asked)
            }
            Self::Scheduler {
                in_braids_kernel, ..
            } => *in_braids_kernel,
            _ => false,
        }
    }

    /// Whether a name was asked for that no kernel and no part of Braid is known to have.
    pub fn is_misnamed(&self) -> bool {
        let named = matches!(
            self,
            Self::CongestionControl { .. } | Self::Scheduler { .. }
        );
        named && !self.is_lacking()
    }

    /// The error number, if the kernel gave one.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::Netlink { source, .. } | Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
