//! Durations on the air, computed from IEEE 802.11-2020 (clause numbers below).

use std::time::Duration;

use super::modes::{
    Mode, dsss_modes, erp_modes, ht_bits_per_symbol, ht_modes, ht_symbol_ns, rounded, us,
};
use super::spec::{Band, PPDU_MAX_US, Standard, WifiError, WifiSpec, list};

/// LLC and SNAP in front of every IP packet (RFC 1042).
const LLC_SNAP: u32 = 8;
/// MAC header with three addresses, and FCS (9.2.3).
const MAC_HEADER: u32 = 24 + 4;
/// QoS control field (9.2.4.5), in the header of 802.11n and ac data.
const QOS_CONTROL: u32 = 2;
/// MPDU delimiter in an A-MPDU (9.7.1), whose subframes are aligned to 4 bytes.
const DELIMITER: u32 = 4;
/// AIFSN of best effort (table 9-155).
const AIFSN_BE: u32 = 3;

/// A frame's data, before it is known whether it is one packet or an aggregate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Psdu {
    pub(super) packets: u32,
    first: u32,
    aggregate: u32,
}

/// Timing of one channel.
#[derive(Clone, Debug)]
pub(super) struct Phy {
    pub(super) slot: Duration,
    pub(super) sifs: Duration,
    /// DIFS, or AIFS of best effort (10.3.2.3).
    pub(super) difs: Duration,
    /// From the end of a frame that could not be decoded (10.3.2.3.7).
    pub(super) eifs: Duration,
    pub(super) cw: (u32, u32),
    pub(super) retry_limit: u32,
    /// Backoff counts down at slot boundaries, the first one after AIFS
    /// included (EDCA, 10.23.2.4), not after idle slots (DCF, 10.3.4.3).
    pub(super) edca: bool,
    pub(super) max_packets: u32,
    max_bytes: u32,
    max_air: Duration,
    /// Even a single packet travels as an A-MPDU (10.12.8).
    always_aggregate: bool,
    header: u32,
    modes: Vec<Mode>,
    default_mode: usize,
}

impl Phy {
    pub(super) fn new(spec: &WifiSpec) -> Result<Self, WifiError> {
        spec.check()?;
        let five_ghz = match spec.standard {
            Standard::B | Standard::G => false,
            Standard::N => spec.band != Some(Band::Ghz2),
            Standard::Ac => true,
        };
        let edca = spec.high_throughput();
        let slot = us(if spec.standard == Standard::B { 20 } else { 9 });
        let sifs = us(if five_ghz { 16 } else { 10 });
        let difs = sifs + slot * if edca { AIFSN_BE } else { 2 };
        // 18.3.2.4 and 19.3.2: OFDM at 2.4 GHz ends with 6 us of silence.
        let extension = if five_ghz { Duration::ZERO } else { us(6) };
        let (modes, slowest_ack) = match spec.standard {
            Standard::B => dsss_modes(spec.short_preamble),
            Standard::G => erp_modes(extension),
            Standard::N | Standard::Ac => ht_modes(spec, extension),
        };
        let bound = spec.ampdu_bytes_bound();
        let mut phy = Self {
            slot,
            sifs,
            difs,
            eifs: sifs + slowest_ack + difs,
            cw: spec.contention_windows(),
            retry_limit: spec.retry_limit,
            edca,
            max_packets: if edca {
                spec.max_ampdu.unwrap_or(64)
            } else {
                1
            },
            max_bytes: spec.max_ampdu_bytes.unwrap_or(bound),
            max_air: us(u64::from(spec.max_ampdu_us.unwrap_or(PPDU_MAX_US))),
            always_aggregate: spec.standard == Standard::Ac,
            header: LLC_SNAP + MAC_HEADER + if edca { QOS_CONTROL } else { 0 },
            modes,
            default_mode: 0,
        };
        phy.default_mode = phy.choose(spec)?;
        Ok(phy)
    }

    /// Index of the mode that the spec asks for.
    fn choose(&self, spec: &WifiSpec) -> Result<usize, WifiError> {
        let streams = u32::from(spec.streams.unwrap_or(1));
        let chosen = match spec.mcs {
            None => self.modes.iter().map(|m| m.mbps).next_back(),
            Some(mcs) => ht_bits_per_symbol(spec, mcs, streams)
                .map(|bits| f64::from(bits) * 1e3 / f64::from(ht_symbol_ns(spec))),
        };
        let Some(chosen) = chosen else {
            let valid: Vec<u8> = (0..10)
                .filter(|&mcs| ht_bits_per_symbol(spec, mcs, streams).is_some())
                .collect();
            let given = spec.mcs.unwrap_or_default().to_string();
            let expected = format!(
                "one of {} at {} MHz with {streams} streams",
                list(&valid),
                spec.width()
            );
            return Err(spec.error("mcs", given, &expected));
        };
        let want = match (spec.phy_mbps, spec.mcs) {
            (Some(mbps), Some(_)) if (mbps - chosen).abs() > 0.06 => {
                let expected = format!("{chosen:.1}, or only one of mcs and phy_mbps");
                return Err(spec.error("phy_mbps", mbps.to_string(), &expected));
            }
            (Some(mbps), None) => mbps,
            _ => chosen,
        };
        // Rates are written with one decimal: 433.3.
        let found = self.modes.iter().position(|m| (m.mbps - want).abs() < 0.06);
        found.ok_or_else(|| {
            let rates: Vec<String> = self.modes.iter().map(|m| rounded(m.mbps)).collect();
            let expected = format!("one of {} Mbit/s", list(&rates));
            spec.error("phy_mbps", want.to_string(), &expected)
        })
    }

    /// Rates of the channel, Mbit/s, ascending.
    pub(super) fn rates(&self) -> impl Iterator<Item = f64> {
        self.modes.iter().map(|m| m.mbps)
    }

    /// The fastest mode not above `mbps` (the slowest when there is none), or
    /// the channel's default.
    pub(super) fn mode(&self, mbps: Option<f64>) -> &Mode {
        let index = mbps.map_or(self.default_mode, |limit| {
            let above = self.modes.partition_point(|m| m.mbps <= limit + 0.06);
            above.saturating_sub(1)
        });
        &self.modes[index]
    }

    /// `psdu` with one more packet of `ip_bytes`, or `None` when the limits of
    /// aggregation leave no room. The first one always fits.
    pub(super) fn append(&self, mode: &Mode, psdu: Psdu, ip_bytes: u32) -> Option<Psdu> {
        let mpdu = self.header + ip_bytes;
        if psdu.packets == 0 {
            let aggregate = DELIMITER + mpdu;
            return Some(Psdu {
                packets: 1,
                first: mpdu,
                aggregate,
            });
        }
        let aggregate = psdu.aggregate.next_multiple_of(4) + DELIMITER + mpdu;
        let fits = psdu.packets < self.max_packets
            && aggregate <= self.max_bytes
            && mode.air(aggregate) <= self.max_air;
        fits.then_some(Psdu {
            packets: psdu.packets + 1,
            aggregate,
            ..psdu
        })
    }

    /// Time on the air of a frame, reply excluded.
    pub(super) fn air(&self, mode: &Mode, psdu: Psdu) -> Duration {
        let alone = psdu.packets == 1 && !self.always_aggregate;
        mode.air(if alone { psdu.first } else { psdu.aggregate })
    }

    /// SIFS and the acknowledgement of a frame of `packets`.
    pub(super) fn reply(&self, mode: &Mode, packets: u32) -> Duration {
        self.sifs
            + if packets == 1 {
                mode.ack
            } else {
                mode.block_ack
            }
    }
}
