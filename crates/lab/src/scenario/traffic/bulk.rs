//! Bulk: as much as passes, for a time or of a size.

use serde::{Deserialize, Serialize};

use super::{Given, TrafficKind};
use crate::scenario::Direction;
use crate::scenario::diagnostic::Problem;

/// As much as passes, for a time or of a size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bulk {
    /// Size of the transfer, bytes; without it the case's duration ends it.
    pub bytes: Option<u64>,
    /// Direction of the data.
    pub direction: Direction,
}

impl TrafficKind for Bulk {
    const NAME: &'static str = "bulk";
    const KEYS: &'static [&'static str] = &["bytes", "direction"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let bytes = given.table.bytes.as_ref();
        let bytes = bytes.map(|b| (b.span(), b.get_ref().0.0));
        match bytes {
            Some((span, 0)) => Err(Problem::at(
                span,
                "a transfer of no bytes: expected at least 1 B",
            )),
            _ => Ok(Self {
                bytes: bytes.map(|b| b.1),
                direction: given.direction(),
            }),
        }
    }

    fn ends_by_itself(&self) -> bool {
        self.bytes.is_some()
    }

    fn direction(&self) -> Direction {
        self.direction
    }

    fn as_much_as_passes(&self) -> bool {
        true
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let bytes = self.bytes;
        Some(braid_traffic::Kind::Bulk(braid_traffic::Bulk { bytes }))
    }
}
