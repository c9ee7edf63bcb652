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

impl Engine {
    /// Every engine, in the order of the type.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Mptcp, Self::Mpquic];

    /// The word that configurations, the API and metrics use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Mpquic => "mpquic",
        }
    }
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

impl Role {
    /// Both roles, in the order of the type.
    pub const ALL: [Self; 2] = [Self::Device, Self::Proxy];

    /// The word that the API and metrics use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Proxy => "proxy",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_serde() {
        for engine in Engine::ALL {
            assert_eq!(serde_json::to_value(engine).unwrap(), engine.as_str());
        }
        for role in Role::ALL {
            assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
        }
    }
}
