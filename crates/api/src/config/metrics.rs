//! `[metrics]`: counters for Prometheus.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::diagnostic::Problem;

/// `[metrics]`. The control socket serves them in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Loopback address and port at which `/metrics` is served over HTTP, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listen: Option<SocketAddr>,
}

impl Metrics {
    pub(super) fn check(&self) -> Result<(), Problem> {
        match self.listen {
            Some(at) if !at.ip().is_loopback() || at.port() == 0 => Err(Problem::at_key(
                &["metrics", "listen"],
                "nobody is asked who they are here: expected a loopback address and a port, such \
                 as \"127.0.0.1:9464\"",
            )),
            _ => Ok(()),
        }
    }
}
