//! A video session paced by the player's buffer, downlink.

use std::time::Duration;

use braid_core::Rate;
use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::{Given, TrafficKind};
use crate::scenario::diagnostic::Problem;
use crate::scenario::text::Text;

/// A video session paced by the player's buffer, downlink.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Video {
    /// Bit rates that the player can choose from, ascending.
    pub bitrates: Vec<Rate>,
    /// Length of a segment.
    pub segment: Duration,
    /// Buffer that the player fills.
    pub buffer: Duration,
}

impl TrafficKind for Video {
    const NAME: &'static str = "video";
    const KEYS: &'static [&'static str] = &["bitrates", "segment", "buffer"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let Some(list) = &given.table.bitrates else {
            return Err(Problem::at(
                given.span.clone(),
                "traffic \"video\" needs `bitrates`, such as [\"4 Mbit/s\"]",
            ));
        };
        let mut bitrates: Vec<Rate> = list.get_ref().iter().map(|r| r.0).collect();
        bitrates.sort_unstable();
        if bitrates.first().is_none_or(|r| *r == Rate::ZERO) {
            return Err(Problem::at(
                list.span(),
                "expected one bit rate or more, none of them zero",
            ));
        }
        let time = |t: &Option<Spanned<Text<Duration>>>, default| {
            t.as_ref()
                .map_or(Duration::from_secs(default), |t| t.get_ref().0)
        };
        let segment = time(&given.table.segment, 2);
        let buffer = time(&given.table.buffer, 12);
        if segment < Duration::from_millis(100) || buffer < segment {
            return Err(Problem::at(
                given.span.clone(),
                "expected a segment of at least 100 ms and a buffer of at least one segment",
            ));
        }
        Ok(Self {
            bitrates,
            segment,
            buffer,
        })
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let own = braid_traffic::Video {
            bitrates: self.bitrates.clone(),
            segment: self.segment,
            buffer: self.buffer,
            startup: self.segment,
        };
        Some(braid_traffic::Kind::Video(own))
    }
}
