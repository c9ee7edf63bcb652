//! A call, over UDP.

use std::time::Duration;

use braid_traffic::VoiceCodec;
use serde::{Deserialize, Serialize};

use super::{Given, TrafficKind};
use crate::scenario::diagnostic::Problem;
use crate::scenario::{Direction, unknown};

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Voip {
    /// Codec of both ends.
    pub codec: VoiceCodec,
    /// Time that the receiver holds the fastest packet back.
    pub jitter_buffer: Duration,
    /// Direction of the speech.
    pub direction: Direction,
}

impl TrafficKind for Voip {
    const NAME: &'static str = "voip";
    const KEYS: &'static [&'static str] = &["codec", "jitter_buffer", "direction"];

    fn parse(given: &Given<'_>) -> Result<Self, Problem> {
        let codec = match &given.table.codec {
            None => VoiceCodec::default(),
            Some(word) => {
                let mut all = VoiceCodec::ALL.into_iter();
                let found = all.find(|c| c.as_str() == word.get_ref());
                found.ok_or_else(|| {
                    unknown(word, "codec", VoiceCodec::ALL.map(VoiceCodec::as_str))
                })?
            }
        };
        let all = braid_traffic::Voip::JITTER_BUFFERS;
        let jitter_buffer = match &given.table.jitter_buffer {
            None => Duration::from_millis(braid_traffic::Voip::JITTER_BUFFER.into()),
            Some(text) => {
                let of = text.get_ref().0;
                let whole = Duration::from_millis(of.as_millis() as u64) == of;
                let fits = u32::try_from(of.as_millis()).is_ok_and(|ms| all.contains(&ms));
                if !whole || !fits {
                    let (least, most) = (all.start(), all.end());
                    let m = format!("expected {least} to {most} ms, in whole ones");
                    return Err(Problem::at(text.span(), m));
                }
                of
            }
        };
        Ok(Self {
            codec,
            jitter_buffer,
            direction: match given.table.direction {
                None => Direction::Both,
                Some(_) => given.direction(),
            },
        })
    }

    fn direction(&self) -> Direction {
        self.direction
    }

    fn is_udp(&self) -> bool {
        true
    }

    fn ours(&self) -> Option<braid_traffic::Kind> {
        let own = braid_traffic::Voip {
            codec: self.codec,
            jitter_buffer_ms: self.jitter_buffer.as_millis() as u32,
        };
        Some(braid_traffic::Kind::Voip(own))
    }
}
