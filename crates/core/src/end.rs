//! Ends of a bond: the role of each, and the engine that moves its traffic.

use serde::{Deserialize, Serialize};

/// Engine that an end runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Plain TCP on one access: nothing is set up, only observed.
    Tcp,
    /// The kernel's Multipath TCP with its in-kernel path manager.
    Mptcp,
    /// Multipath QUIC, which this process speaks itself.
    Mpquic,
}

/// Role of a process: the end of the accesses that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The end that has the accesses (a CPE, a vehicle).
    Device,
    /// The end in the network.
    Proxy,
}
