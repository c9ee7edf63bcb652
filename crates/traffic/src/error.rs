//! Errors of traffic.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;

use super::pattern::Corruption;

/// Why traffic could not run, or not to its end.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// The specification contradicts itself or the machine's types.
    #[error("traffic specification: {0}")]
    Spec(String),
    /// The machine lacks something: what, and how to get it.
    #[error("{0}")]
    Missing(String),
    /// A system call failed.
    #[error("cannot {attempt}: {source}{advice}")]
    Io {
        /// Attempt that was made, and on what.
        attempt: String,
        /// Error from the kernel.
        source: io::Error,
        /// Advice on what to check, with a leading separator; may be empty.
        advice: &'static str,
    },
    /// The kernel refused something of MPTCP or TCP.
    #[error("cannot {0}")]
    Kernel(braid_mptcp::Error),
    /// The other end did something it should not, or nothing.
    #[error("{0}")]
    Peer(String),
    /// SIGTERM or SIGINT.
    #[error("interrupted by a signal; the report covers the time until then")]
    Interrupted,
}

impl TrafficError {
    pub(crate) fn io(attempt: impl Into<String>, source: impl Into<io::Error>) -> Self {
        Self::Io {
            attempt: attempt.into(),
            source: source.into(),
            advice: "",
        }
    }

    pub(crate) fn io_advice(
        attempt: impl Into<String>,
        source: impl Into<io::Error>,
        advice: &'static str,
    ) -> Self {
        Self::Io {
            attempt: attempt.into(),
            source: source.into(),
            advice,
        }
    }

    pub(crate) fn corrupt(peer: SocketAddr, c: &Corruption) -> Self {
        let belongs = c.belongs_at.map_or(String::new(), |at| {
            format!("; what stands there belongs at byte {at}")
        });
        Self::Peer(format!(
            "the payload from {peer} is damaged: byte {} is {:#04x} and should be {:#04x}{belongs}",
            c.offset, c.found, c.expected
        ))
    }

    /// The exit status of a process that ends with this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Spec(_) => 2,
            Self::Missing(_) => 3,
            Self::Interrupted => 130,
            Self::Io { .. } | Self::Kernel(_) | Self::Peer(_) => 1,
        }
    }
}

impl From<braid_mptcp::Error> for TrafficError {
    fn from(e: braid_mptcp::Error) -> Self {
        if e.is_lacking() {
            Self::Missing(e.to_string())
        } else if e.is_misnamed() {
            Self::Spec(e.to_string())
        } else {
            Self::Kernel(e)
        }
    }
}

/// Results of this module.
pub type Result<T> = std::result::Result<T, TrafficError>;
