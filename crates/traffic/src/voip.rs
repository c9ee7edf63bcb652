//! A call: a packet of speech every 20 ms each way, played by a receiver with a fixed jitter buffer,
//! and judged by the E-model.

use std::ops::RangeInclusive;
use std::time::Duration;

use braid_core::Rate;
use serde::{Deserialize, Serialize};

use super::emodel::{self, Equipment};
use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::message::Schedule;
use super::paced::{self, Delays};
use super::report::VoiceReport;
use super::session::Session;
use super::spec::{TrafficSpec, Transport};

/// Speech in a packet.
const PACKET: Duration = Duration::from_millis(20);
/// Packets in a second.
const PER_SECOND: u32 = 50;
/// Header of RTP (RFC 3550), bytes. The lab's own header has its place, and that of speech.
const RTP_BYTES: u32 = 12;
/// Length of the stretches that are scored apart, packets: 8 s, about as long as what an opinion
/// is asked of (ITU-T P.800).
const STRETCH: usize = 8 * PER_SECOND as usize;

/// Codec of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VoiceCodec {
    /// G.711, 64 kbit/s, which plays silence for what is missing.
    G711,
    /// G.711 that conceals losses (its Appendix I).
    #[default]
    G711Plc,
    /// G.729A, 8 kbit/s.
    G729,
}

impl VoiceCodec {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::G711, Self::G711Plc, Self::G729];

    /// Returns the name in a specification and in a scenario.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::G711 => "g711",
            Self::G711Plc => "g711-plc",
            Self::G729 => "g729",
        }
    }

    /// Bytes of speech in a packet.
    const fn speech_bytes(self) -> u32 {
        match self {
            Self::G711 | Self::G711Plc => 160,
            Self::G729 => 20,
        }
    }

    /// Speech that the coder waits for beyond that of the packet.
    const fn lookahead(self) -> Duration {
        match self {
            Self::G711 | Self::G711Plc => Duration::ZERO,
            Self::G729 => Duration::from_millis(5),
        }
    }

    /// ITU-T G.113 Appendix I.
    const fn equipment(self) -> Equipment {
        let (impairment, robustness) = match self {
            Self::G711 => (0.0, 4.3),
            Self::G711Plc => (0.0, 25.1),
            Self::G729 => (11.0, 19.0),
        };
        Equipment {
            impairment,
            robustness,
        }
    }
}

/// A call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Voip {
    /// Codec.
    #[serde(default)]
    pub codec: VoiceCodec,
    /// Time that the receiver holds the fastest packet back, to play later ones in turn, ms.
    #[serde(default = "usual")]
    pub jitter_buffer_ms: u32,
}

fn usual() -> u32 {
    Voip::JITTER_BUFFER
}

impl Voip {
    /// Jitter buffers that there may be, ms.
    pub const JITTER_BUFFERS: RangeInclusive<u32> = 10..=500;
    /// Jitter buffer where none is named, ms.
    pub const JITTER_BUFFER: u32 = 60;

    /// Payload of a packet, bytes, RTP's header included.
    fn packet_bytes(&self) -> u32 {
        RTP_BYTES + self.codec.speech_bytes()
    }

    fn rate(&self) -> Rate {
        Rate::from_bps(u64::from(self.packet_bytes() * 8 * PER_SECOND))
    }

    /// Judges packets with these delays, those that are due in the measured time.
    fn judge(&self, delays: &[Option<Duration>]) -> VoiceReport {
        let fastest = delays.iter().flatten().min().copied().unwrap_or_default();
        let held = Duration::from_millis(self.jitter_buffer_ms.into());
        let playout = fastest + held;
        let heard_after = playout + PACKET + self.codec.lookahead();
        let mouth_to_ear_ms = heard_after.as_secs_f64() * 1e3;
        let score = |of: Unplayed| {
            let r = emodel::rating(mouth_to_ear_ms, self.codec.equipment(), of.fraction());
            (r, emodel::mos(r))
        };
        let mut whole = Unplayed::default();
        let mut worst_mos = f64::INFINITY;
        for stretch in stretches(delays) {
            let of = Unplayed::of(stretch, playout);
            worst_mos = worst_mos.min(score(of).1);
            whole.due += of.due;
            whole.lost += of.lost;
            whole.late += of.late;
        }
        let (r_factor, mos) = score(whole);
        VoiceReport {
            mos,
            worst_mos: worst_mos.min(mos),
            r_factor,
            mouth_to_ear_ms,
            unplayed: whole.lost + whole.late,
            late: whole.late,
        }
    }
}

/// Packets of a stretch, and those that are not played.
#[derive(Clone, Copy, Debug, Default)]
struct Unplayed {
    due: u64,
    lost: u64,
    late: u64,
}

impl Unplayed {
    fn of(delays: &[Option<Duration>], playout: Duration) -> Self {
        let count =
            |f: &dyn Fn(&Option<Duration>) -> bool| delays.iter().filter(|d| f(d)).count() as u64;
        Self {
            due: delays.len() as u64,
            lost: count(&|d| d.is_none()),
            late: count(&|d| d.is_some_and(|d| d > playout)),
        }
    }

    fn fraction(self) -> f64 {
        (self.lost + self.late) as f64 / self.due.max(1) as f64
    }
}

/// Cuts packets into stretches; the last one has what is left over.
fn stretches(delays: &[Option<Duration>]) -> impl Iterator<Item = &[Option<Duration>]> {
    let whole = (delays.len() / STRETCH).max(1);
    (0..whole).map(move |i| {
        let end = if i + 1 == whole {
            delays.len()
        } else {
            (i + 1) * STRETCH
        };
        &delays[i * STRETCH..end]
    })
}

impl TrafficKind for Voip {
    fn name(&self) -> &'static str {
        "voip"
    }

    fn check(&self, spec: &TrafficSpec) -> Result<()> {
        let bad = |m: String| Err(TrafficError::Spec(m));
        if spec.transport != Transport::Udp {
            return bad("voip traffic goes over udp: expected transport \"udp\"".into());
        }
        let (ms, all) = (self.jitter_buffer_ms, Self::JITTER_BUFFERS);
        if !all.contains(&ms) {
            return bad(format!(
                "jitter_buffer_ms is {ms}; expected {} to {}",
                all.start(),
                all.end()
            ));
        }
        Ok(())
    }

    fn over_udp(&self) -> bool {
        true
    }

    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        let mut delays = Delays::new();
        let result = paced::run(s, self.rate(), self.packet_bytes(), Some(&mut delays));
        if s.spec.receives() && s.messages.is_some() {
            let schedule = Schedule::new(s.plan, self.rate(), self.packet_bytes());
            let window = schedule.window();
            let (from, to) = (window.start as usize, window.end as usize);
            delays.resize(to, None);
            s.voice = (from < to).then(|| self.judge(&delays[from..to]));
        }
        result
    }
}

#[cfg(test)]
mod tests;
