//! Saturation theory of a channel on which every station always has a packet to
//! send: against it the simulation is held, and a scenario can be sized with it.
//!
//! - G. Bianchi, "Performance analysis of the IEEE 802.11 distributed
//!   coordination function", IEEE JSAC 18(3), 2000: a fixed point between the
//!   probability that a station sends in a slot and that it collides.
//! - H. Wu et al., "Performance of reliable transport protocol over IEEE 802.11
//!   wireless LAN", INFOCOM 2002: packets are given up after a number of tries.
//! - I. Tinnirello, G. Bianchi, Y. Xiao, "Refinements on IEEE 802.11 distributed
//!   coordination function modeling approaches", IEEE TVT 59(3), 2010: counters
//!   of the DCF stand still in the slot in which another station starts, so that
//!   only the one that has just sent can use the first slot after it. EDCA is as
//!   in Bianchi's model.
//! - M. Heusse et al., "Performance anomaly of 802.11b", INFOCOM 2003: stations
//!   with different rates.

use super::phy::{Phy, Psdu};
use super::spec::{WifiError, WifiSpec};

/// A saturated channel, in the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturation {
    /// IP throughput of every station, Mbit/s: all are given the same number of
    /// chances, and all have packets of one size.
    pub station_mbps: Vec<f64>,
    /// Throughput of all stations, Mbit/s.
    pub total_mbps: f64,
    /// Probability that a transmission collides.
    pub collision: f64,
    /// Share of the time that frames and acknowledgements take.
    pub busy: f64,
}

/// Model to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theory {
    /// Bianchi 2000 as it stands, for DCF and EDCA alike: repetition without
    /// end, and counters that also go down in the slot in which another station
    /// starts.
    Bianchi,
    /// With the retry limit of Wu et al., and for 802.11b and g the backoff of
    /// the DCF as Tinnirello et al. refine it.
    Refined,
}

struct Exchange {
    air: f64,
    reply: f64,
    packets: f64,
}

/// Seconds on the air, seconds of the reply, packets, of a full frame.
fn exchange(phy: &Phy, mbps: Option<f64>, ip_bytes: u32) -> Exchange {
    let mode = phy.mode(mbps);
    let mut psdu = Psdu::default();
    while let Some(longer) = phy.append(mode, psdu, ip_bytes) {
        psdu = longer;
    }
    Exchange {
        air: phy.air(mode, psdu).as_secs_f64(),
        reply: phy.reply(mode, psdu.packets).as_secs_f64(),
        packets: f64::from(psdu.packets),
    }
}

/// Saturated stations with packets of `ip_bytes`, one per item of `rates`
/// (Mbit/s; `None`: the channel's default), nothing lost but by collision.
///
/// # Errors
/// A setting that the standard does not allow.
pub fn saturation(
    theory: Theory,
    spec: &WifiSpec,
    rates: &[Option<f64>],
    ip_bytes: u32,
) -> Result<Saturation, WifiError> {
    let phy = Phy::new(spec)?;
    let n = rates.len() as i32;
    let slots_first = phy.edca || theory == Theory::Bianchi;
    // A thousand repetitions are as good as no limit.
    let tries = match theory {
        Theory::Bianchi => 1000,
        Theory::Refined => phy.retry_limit,
    };
    let (tau, p) = fixed_point(phy.cw, slots_first, tries, n);
    let (slot, difs) = (phy.slot.as_secs_f64(), phy.difs.as_secs_f64());
    let mut all: Vec<Exchange> = rates.iter().map(|&r| exchange(&phy, r, ip_bytes)).collect();
    let packets: Vec<f64> = all.iter().map(|x| x.packets).collect();

    // Under DCF a success is followed by another of the same station whenever it
    // draws zero, and every busy period by a slot that nobody else may use.
    let window = f64::from(phy.cw.0) + 1.0;
    let (repeats, extra) = if slots_first || phy.cw.0 == 0 {
        (1.0, 0.0)
    } else {
        (window / (window - 1.0), slot)
    };

    let alone = tau * (1.0 - tau).powi(n - 1);
    let mut slot_time = (1.0 - tau).powi(n) * slot;
    let mut busy_time = 0.0;
    for x in &all {
        slot_time += alone * (repeats * (x.air + x.reply + difs) + extra);
        busy_time += alone * repeats * (x.air + x.reply);
    }
    // A collision is as long as its longest frame: each station's, when it sends
    // with at least one of those with shorter frames and none with longer ones.
    all.sort_by(|a, b| b.air.total_cmp(&a.air));
    for (longer, x) in all.iter().enumerate() {
        let shorter = n - 1 - longer as i32;
        let collides = tau * (1.0 - tau).powi(longer as i32) * (1.0 - (1.0 - tau).powi(shorter));
        slot_time += collides * (x.air + phy.eifs.as_secs_f64() + extra);
        busy_time += collides * x.air;
    }
    let bits = f64::from(ip_bytes) * 8.0;
    let station_mbps: Vec<f64> = packets
        .iter()
        .map(|k| alone * repeats * k * bits / slot_time / 1e6)
        .collect();
    Ok(Saturation {
        total_mbps: station_mbps.iter().sum(),
        station_mbps,
        // Repeats after a success never collide.
        collision: p / (p + (1.0 - p) * repeats),
        busy: busy_time / slot_time,
    })
}

/// Probabilities that a station sends in a slot, and that it then collides.
fn fixed_point(cw: (u32, u32), slots_first: bool, tries: u32, n: i32) -> (f64, f64) {
    let (cw_min, cw_max) = cw;
    let tau = |p: f64| {
        let (mut sends, mut slots, mut weight) = (0.0, 0.0, 1.0);
        let mut cw = cw_min;
        for _ in 0..tries {
            // Mean of 0..=cw; under DCF the first of these slots is the one
            // after the busy period, in which the station cannot collide.
            let idle = if slots_first {
                f64::from(cw)
            } else {
                f64::from(cw) - 1.0
            } / 2.0;
            sends += weight;
            slots += weight * (1.0 + idle.max(0.0));
            weight *= p;
            cw = (2 * cw + 1).min(cw_max);
        }
        sends / slots
    };
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if 1.0 - (1.0 - tau(p)).powi(n - 1) > p {
            low = p;
        } else {
            high = p;
        }
    }
    (tau(low), low)
}

/// Throughput of every one of `stations` 802.11b stations, Mbit/s of IP, when
/// one sends at `slow_mbps` and the others at `fast_mbps` (Heusse et al. 2003,
/// section III): the same for all of them.
///
/// # Errors
/// A setting that the standard does not allow.
pub fn heusse(
    spec: &WifiSpec,
    stations: u32,
    slow_mbps: f64,
    fast_mbps: f64,
    ip_bytes: u32,
) -> Result<f64, WifiError> {
    let phy = Phy::new(spec)?;
    let n = f64::from(stations);
    let window = f64::from(phy.cw.0) + 1.0;
    let collision = 1.0 - (1.0 - 1.0 / window).powf(n - 1.0);
    let contention = phy.slot.as_secs_f64() * (1.0 + collision) / (2.0 * n) * window / 2.0;
    let time = |mbps| {
        let x = exchange(&phy, Some(mbps), ip_bytes);
        phy.difs.as_secs_f64() + contention + x.air + x.reply
    };
    let (slow, fast) = (time(slow_mbps), time(fast_mbps));
    let jam = 2.0 / n * slow + (1.0 - 2.0 / n) * fast;
    let cycle = slow + (n - 1.0) * fast + collision * jam * n;
    Ok(f64::from(ip_bytes) * 8.0 / cycle / 1e6)
}
