//! Request-response: one small message and its answer at a time.

use serde::{Deserialize, Serialize};

use super::{Given, TrafficKind, message};
use crate::scenario::diagnostic::Problem;

/// One small message and its answer at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestResponse {
    /// Bytes of a request.
    pub request_bytes: u32,
    /// Bytes of a response.
    pub response_bytes: u32,
}

impl TrafficKind for RequestResponse {
    const NAME: &'static str = "request-response";
    const KEYS: &'static [&'static str] = &["request_bytes", "response_bytes"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        Ok(Self {
            request_bytes: message(given.table.request_bytes.as_ref(), 1)?,
            response_bytes: message(given.table.response_bytes.as_ref(), 1)?,
        })
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let own = braid_traffic::RequestResponse {
            request_bytes: self.request_bytes,
            response_bytes: self.response_bytes,
        };
        Some(braid_traffic::Kind::RequestResponse(own))
    }
}
