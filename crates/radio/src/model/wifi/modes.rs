//! Data rates, and how bytes become time at each (IEEE 802.11-2020).

use std::time::Duration;

use super::spec::{Standard, WifiSpec};

/// Ack (9.3.1.4) and compressed BlockAck (9.3.1.8) with their FCS.
const ACK_BYTES: u32 = 14;
const BLOCK_ACK_BYTES: u32 = 32;

pub(super) const fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// How bytes become time at one data rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mode {
    pub(super) mbps: f64,
    preamble: Duration,
    coding: Coding,
    /// Durations of the replies to a frame in this mode.
    pub(super) ack: Duration,
    pub(super) block_ack: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    /// DSSS and CCK: bits at the rate, up to a whole microsecond (16.3.4).
    Dsss,
    /// OFDM: SERVICE (16 bits), data and tail bits in whole symbols (17.4.3,
    /// 19.4.3, 21.4.3), and what follows the last one.
    Ofdm {
        bits_per_symbol: u32,
        symbol_ns: u32,
        tail_bits: u32,
        extension: Duration,
    },
}

impl Mode {
    pub(super) fn air(&self, bytes: u32) -> Duration {
        let bits = u64::from(bytes) * 8;
        match self.coding {
            Coding::Dsss => self.preamble + us((bits as f64 / self.mbps).ceil() as u64),
            Coding::Ofdm {
                bits_per_symbol,
                symbol_ns,
                tail_bits,
                extension,
            } => {
                let symbols = (16 + bits + u64::from(tail_bits)).div_ceil(bits_per_symbol.into());
                // With short guard intervals the frame still ends on a 4 us
                // boundary (equations 19-90 and 21-107).
                let ns = (symbols * u64::from(symbol_ns)).next_multiple_of(4000);
                self.preamble + Duration::from_nanos(ns) + extension
            }
        }
    }
}

pub(super) fn rounded(mbps: f64) -> String {
    let s = format!("{mbps:.1}");
    s.strip_suffix(".0").map_or(s.clone(), str::to_owned)
}

/// Modes in which control frames are sent, the replies to them in turn unused.
fn control(modes: &[Mode], reference_mbps: f64, bytes: u32) -> Duration {
    // 10.6.6.5.2: the highest basic rate that is not above the frame's.
    let mode = modes.iter().rev().find(|m| m.mbps <= reference_mbps);
    mode.unwrap_or(&modes[0]).air(bytes)
}

/// HR/DSSS. Basic rates are 1 and 2 Mbit/s, as access points are delivered.
pub(super) fn dsss_modes(short: bool) -> (Vec<Mode>, Duration) {
    let mode = |mbps: f64| Mode {
        mbps,
        // 16.2.2: PLCP preamble and header; 1 Mbit/s has the long one only.
        preamble: us(if short && mbps > 1.0 {
            72 + 24
        } else {
            144 + 48
        }),
        coding: Coding::Dsss,
        ack: Duration::ZERO,
        block_ack: Duration::ZERO,
    };
    let basic = [mode(1.0), mode(2.0)];
    let with_replies = |mbps| Mode {
        ack: control(&basic, mbps, ACK_BYTES),
        block_ack: control(&basic, mbps, BLOCK_ACK_BYTES),
        ..mode(mbps)
    };
    let modes = [1.0, 2.0, 5.5, 11.0].map(with_replies).to_vec();
    (modes, mode(1.0).air(ACK_BYTES))
}

/// Non-HT OFDM at 20 MHz: symbols of 4 us, 6 tail bits, a preamble of 16 us
/// and SIGNAL of one symbol (17.3.2).
fn ofdm(mbps: u32, extension: Duration) -> Mode {
    Mode {
        mbps: f64::from(mbps),
        preamble: us(16 + 4),
        coding: Coding::Ofdm {
            bits_per_symbol: mbps * 4,
            symbol_ns: 4000,
            tail_bits: 6,
            extension,
        },
        ack: Duration::ZERO,
        block_ack: Duration::ZERO,
    }
}

/// The mandatory rates, in which control frames are sent (17.1.1).
fn ofdm_basic(extension: Duration) -> [Mode; 3] {
    [6, 12, 24].map(|mbps| ofdm(mbps, extension))
}

pub(super) fn erp_modes(extension: Duration) -> (Vec<Mode>, Duration) {
    let basic = ofdm_basic(extension);
    let modes = [6, 9, 12, 18, 24, 36, 48, 54].map(|mbps| Mode {
        ack: control(&basic, f64::from(mbps), ACK_BYTES),
        block_ack: control(&basic, f64::from(mbps), BLOCK_ACK_BYTES),
        ..ofdm(mbps, extension)
    });
    (modes.to_vec(), basic[0].air(ACK_BYTES))
}

/// Bits per subcarrier, coding rate, and the non-HT rate with the same
/// modulation and coding or the next below (tables 19-27, 21-30 and 10-8).
const MCS: [(u32, (u32, u32), f64); 10] = [
    (1, (1, 2), 6.0),
    (2, (1, 2), 12.0),
    (2, (3, 4), 18.0),
    (4, (1, 2), 24.0),
    (4, (3, 4), 36.0),
    (6, (2, 3), 48.0),
    (6, (3, 4), 54.0),
    (6, (5, 6), 54.0),
    (8, (3, 4), 54.0),
    (8, (5, 6), 54.0),
];

pub(super) fn ht_symbol_ns(spec: &WifiSpec) -> u32 {
    if spec.short_gi { 3600 } else { 4000 }
}

/// Data bits of a symbol over all streams; `None` when the standard lacks the
/// combination.
pub(super) fn ht_bits_per_symbol(spec: &WifiSpec, mcs: u8, streams: u32) -> Option<u32> {
    let vht = spec.standard == Standard::Ac;
    let most = if vht { 9 } else { 7 };
    let &(bits, (num, den), _) = MCS.get(usize::from(mcs)).filter(|_| mcs <= most)?;
    let subcarriers = match spec.width() {
        20 => 52,
        40 => 108,
        80 => 234,
        _ => 468,
    };
    // 21.5: combinations that do not divide evenly are left out.
    let absent = match (spec.width(), mcs) {
        (20, 9) => streams != 3,
        (80, 6) | (160, 9) => streams == 3,
        _ => false,
    };
    (!(vht && absent)).then_some(subcarriers * bits * streams * num / den)
}

pub(super) fn ht_modes(spec: &WifiSpec, extension: Duration) -> (Vec<Mode>, Duration) {
    let vht = spec.standard == Standard::Ac;
    let basic = ofdm_basic(extension);
    let mut modes: Vec<Mode> = Vec::new();
    for streams in 1..=u32::from(spec.streams.unwrap_or(1)) {
        // 19.3.2 and 21.3.2: STF 8, LTF 8, SIG 4; then HT-SIG 8 and HT-STF 4, or
        // VHT-SIG-A 8, VHT-STF 4 and VHT-SIG-B 4; then a training field each
        // stream, of which there are 1, 2 or 4.
        let trainings = u64::from(streams.next_power_of_two());
        let preamble = us(20 + 12 + 4 * trainings + if vht { 4 } else { 0 });
        for mcs in 0..10 {
            let Some(bits_per_symbol) = ht_bits_per_symbol(spec, mcs, streams) else {
                continue;
            };
            // 19.3.5 and 21.5: a second encoder from 300 Mbit/s (HT) on, one
            // more each 540 Mbit/s (VHT), at the long guard interval.
            let per_encoder = 4 * if vht { 540 } else { 300 };
            let reference = MCS[usize::from(mcs)].2;
            modes.push(Mode {
                mbps: f64::from(bits_per_symbol) * 1e3 / f64::from(ht_symbol_ns(spec)),
                preamble,
                coding: Coding::Ofdm {
                    bits_per_symbol,
                    symbol_ns: ht_symbol_ns(spec),
                    tail_bits: 6 * bits_per_symbol.div_ceil(per_encoder),
                    extension,
                },
                ack: control(&basic, reference, ACK_BYTES),
                block_ack: control(&basic, reference, BLOCK_ACK_BYTES),
            });
        }
    }
    // Of equal rates the one with the fewest streams; the sort is stable.
    modes.sort_by(|a, b| a.mbps.total_cmp(&b.mbps));
    modes.dedup_by(|b, a| a.mbps == b.mbps);
    (modes, basic[0].air(ACK_BYTES))
}
