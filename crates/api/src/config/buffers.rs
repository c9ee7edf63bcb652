//! `[buffers]`: memory of TCP sockets.

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// Least, initial and greatest buffer of a TCP socket, bytes.
pub type Sizes = [u32; 3];

/// `[buffers]`: what TCP sockets of the namespace may hold at least, if `manage`, and what
/// subflows may have waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffers {
    /// Raise the sysctls to these, and open subflows that join again as wide as is needed.
    pub manage: bool,
    /// Receive buffers; absent: what the kernel of this machine needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_rmem: Option<Sizes>,
    /// Send buffers, of each subflow; absent: as for receiving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp_wmem: Option<Sizes>,
    /// Bound what waits on a subflow and has not been sent, where the kernel permits it.
    pub short_queues: bool,
}

impl Default for Buffers {
    fn default() -> Self {
        Self {
            manage: true,
            tcp_rmem: None,
            tcp_wmem: None,
            short_queues: true,
        }
    }
}

impl Buffers {
    pub(super) fn check(&self) -> Result<(), Problem> {
        for (key, sizes) in [("tcp_rmem", self.tcp_rmem), ("tcp_wmem", self.tcp_wmem)] {
            let wrong = |s: Sizes| !s.is_sorted() || s[0] == 0 || s[2] > i32::MAX as u32;
            if sizes.is_some_and(wrong) {
                let what = "a buffer is its least, initial and greatest size in bytes, above 0, \
                            each at least the one before, at most 2147483647";
                return Err(Problem::at_key(&["buffers", key], what));
            }
        }
        Ok(())
    }
}
