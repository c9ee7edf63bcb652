//! Constant bit rate, over the case's engine or as UDP datagrams.

use braid_core::Rate;
use serde::{Deserialize, Serialize};

use super::{Given, TrafficKind, message};
use crate::scenario::Direction;
use crate::scenario::diagnostic::Problem;

/// Constant bit rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cbr {
    /// Payload rate.
    pub rate: Rate,
    /// Payload of one message, bytes.
    pub message_bytes: u32,
    /// UDP datagrams instead of the case's engine.
    pub udp: bool,
    /// Direction of the data.
    pub direction: Direction,
}

impl TrafficKind for Cbr {
    const NAME: &'static str = "cbr";
    const KEYS: &'static [&'static str] = &["rate", "message_bytes", "transport", "direction"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let Some(rate) = &given.table.rate else {
            return Err(Problem::at(
                given.span.clone(),
                "traffic \"cbr\" needs a `rate`, such as \"4 Mbit/s\"",
            ));
        };
        if rate.get_ref().0 == Rate::ZERO {
            return Err(Problem::at(rate.span(), "a rate of zero sends nothing"));
        }
        let udp = match &given.table.transport {
            None => false,
            Some(t) => match t.get_ref().as_str() {
                "udp" => true,
                "stream" => false,
                other => {
                    return Err(Problem::at(
                        t.span(),
                        format!(
                            "unknown transport \"{other}\": expected \"udp\", or \"stream\" for \
                             the case's engine"
                        ),
                    ));
                }
            },
        };
        let message_bytes = message(given.table.message_bytes.as_ref(), 1200)?;
        if message_bytes < 32 || (udp && message_bytes > 1400) {
            return Err(Problem::at(
                given.span.clone(),
                "message_bytes: expected 32 or more, and 1400 at most for udp",
            ));
        }
        Ok(Self {
            rate: rate.get_ref().0,
            message_bytes,
            udp,
            direction: given.direction(),
        })
    }

    fn direction(&self) -> Direction {
        self.direction
    }

    fn is_udp(&self) -> bool {
        self.udp
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let own = braid_traffic::Cbr {
            rate: self.rate,
            message_bytes: self.message_bytes,
        };
        Some(braid_traffic::Kind::Cbr(own))
    }
}
