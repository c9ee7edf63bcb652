//! Constant bit rate: paced messages over a stream or as UDP datagrams.

use braid_core::Rate;
use serde::{Deserialize, Serialize};

use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::paced;
use super::session::Session;
use super::spec::{MESSAGE_HEADER_BYTES, MESSAGE_MAX_BYTES, TrafficSpec, Transport};

/// The longest UDP payload over IPv4, bytes.
const DATAGRAM_MAX_BYTES: u32 = 65_507;

/// Messages at a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cbr {
    /// Payload rate of messages, headers of the transport not counted.
    pub rate: Rate,
    /// Length of a message, bytes, from [`MESSAGE_HEADER_BYTES`].
    pub message_bytes: u32,
}

impl TrafficKind for Cbr {
    fn name(&self) -> &'static str {
        "cbr"
    }

    fn check(&self, spec: &TrafficSpec) -> Result<()> {
        let bad = |m: String| Err(TrafficError::Spec(m));
        let most = match spec.transport {
            Transport::Udp => DATAGRAM_MAX_BYTES,
            Transport::Tcp | Transport::Mptcp => MESSAGE_MAX_BYTES,
        };
        let message_bytes = self.message_bytes;
        if !(MESSAGE_HEADER_BYTES..=most).contains(&message_bytes) {
            return bad(format!(
                "message_bytes is {message_bytes}; expected {MESSAGE_HEADER_BYTES} (its \
                 header) to {most}"
            ));
        }
        if self.rate == Rate::ZERO {
            return bad("rate is 0; expected more than 0".into());
        }
        Ok(())
    }

    fn over_udp(&self) -> bool {
        true
    }

    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        paced::run(s, self.rate, self.message_bytes, None)
    }
}
