//! `[converter]`: connections of TCP over Multipath TCP to a converter at the proxy (RFC 8803).

use std::path::PathBuf;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::allow::Allow;
use super::text;
use crate::diagnostic::Problem;
use crate::{Engine, Role};

/// `[converter]`, at both ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Converter {
    /// Port of TCP at the proxy.
    #[serde(default = "Converter::usual_port")]
    pub port: u16,
    /// File with the secret that both ends know.
    pub cookie_file: PathBuf,
    /// Networks that devices connect from, at the proxy; empty: all.
    #[serde(
        default,
        with = "text::networks",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub sources: Vec<IpNet>,
    /// Destinations that the proxy connects to; absent: those of `[mpquic]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow: Option<Allow>,
}

impl Converter {
    /// Port of TCP at the proxy, beside that of `[probe]`.
    pub const PORT: u16 = 7726;

    fn usual_port() -> u16 {
        Self::PORT
    }

    pub(super) fn check(
        &self,
        role: Role,
        engines: &[Engine],
        has_proxy: bool,
    ) -> Result<(), Problem> {
        let at = |key: &str, what: &str| Err(Problem::at_key(&["converter", key], what));
        if !engines.contains(&Engine::Mptcp) {
            let what = "connections to a converter are of Multipath TCP: expected \"mptcp\" among \
                        `engines`";
            return Err(Problem::at_key(&["converter"], what));
        }
        if !has_proxy {
            let what = "it is at the proxy's address: proxy = \"ADDRESS\"";
            return Err(Problem::at_key(&["converter"], what));
        }
        if self.port == 0 {
            return at("port", "expected a port, 1 to 65535");
        }
        match role {
            Role::Device if !self.sources.is_empty() => at(
                "sources",
                "the proxy goes by where devices connect from: set it there",
            ),
            Role::Device if self.allow.is_some() => {
                at("allow", "what may be connected to is set at the proxy")
            }
            Role::Proxy if self.allow.is_none() && !engines.contains(&Engine::Mpquic) => {
                Err(Problem::at_key(
                    &["converter"],
                    "it says nothing of where it may connect to: expected allow = [\"internet\"], or a \
                     list of networks",
                ))
            }
            _ => Ok(()),
        }
    }
}
