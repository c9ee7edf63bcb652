//! Errors of this crate.

use std::io;

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
    /// The kernel's answer was not what its documentation says.
    #[error("{attempted}: cannot read the kernel's answer: {what}")]
    Answer {
        /// Request, in words.
        attempted: String,
        /// Fault found in the answer.
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
    /// A congestion control that this kernel does not have; exit status 3.
    #[error(
        "congestion control \"{asked}\" is not available in this kernel: choose one of {available}{}",
        module.as_deref().map(|m| format!(", or load it: modprobe {m}")).unwrap_or_default()
    )]
    CongestionControl {
        /// The one asked for.
        asked: String,
        /// Congestion controls that exist, separated by commas.
        available: String,
        /// The module that has it, where this machine has one.
        module: Option<String>,
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
    pub(crate) fn left(attempted: impl Into<String>, what: impl ToString) -> Self {
        Self::Left {
            attempted: attempted.into(),
            what: what.to_string(),
        }
    }

    /// Whether the machine lacks something that the user can install or enable.
    pub fn is_lacking(&self) -> bool {
        matches!(self, Self::Lacking { .. } | Self::CongestionControl { .. })
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
