//! Ceiling of the rate of an application: the rates of the links, less headers.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use braid_core::Time;
use braid_core::overhead::Transport;
use braid_radio::model::RateSpec;

use super::radio::Radio;
use super::result::Inputs;
use super::sampler::data_links;
use crate::scenario::Traffic;

/// Payload / IP packet of the measured device.
pub(super) fn fraction(i: &Inputs<'_>) -> f64 {
    let transport = if i.case.traffic.is_udp() {
        Transport::Udp
    } else {
        i.case.engine.get().transport()
    };
    transport.payload_fraction(i.mtu, if i.ipv6 { 40 } else { 20 })
}

/// Payload / IP packet of others.
pub(super) fn payload(i: &Inputs<'_>, traffic: &Traffic, mptcp: bool) -> f64 {
    let transport = match (traffic.is_udp(), mptcp) {
        (true, _) => Transport::Udp,
        (_, false) => Transport::Tcp,
        (_, true) => Transport::Mptcp,
    };
    transport.payload_fraction(i.mtu, if i.ipv6 { 40 } else { 20 })
}

/// Payload that the wire allows, Mbit/s: the capacity of every access in use
/// over the measured time, less headers. `None` where a link has no rate of
/// its own (a shared medium).
pub(super) async fn ceiling(
    i: &Inputs<'_>,
    radio: &Radio,
    from: Time,
    to: Time,
) -> Result<Option<f64>> {
    let seconds = to.since(from).as_secs_f64();
    if seconds <= 0.0 {
        return Ok(None);
    }
    let mut bits = 0.0;
    let mut lines = BTreeSet::new();
    for access in &i.case.accesses {
        let only = i.case.engine.get().access();
        if only.is_some_and(|only| only != access.name) {
            continue;
        }
        if access.medium.is_some() {
            return Ok(None);
        }
        // What accesses share is there once.
        if let Some(line) = &access.backhaul
            && !lines.insert(line)
        {
            continue;
        }
        for link in data_links(&access.name, i.case.traffic.direction()) {
            match radio
                .capacity(&link, from.since(i.start), to.since(i.start))
                .await?
            {
                Some(b) => bits += b,
                None => return Ok(None),
            }
        }
    }
    Ok(Some(bits * fraction(i) / seconds / 1e6))
}

/// Mean of a rate over a time, Mbit/s; `None` where it has no limit.
pub(super) fn mean_rate(rate: &RateSpec, from: Duration, to: Duration) -> Option<f64> {
    let RateSpec::Steps { points, .. } = rate else {
        return None;
    };
    let ends = points.iter().skip(1).map(|p| p.0).chain([Duration::MAX]);
    let mbits = points.iter().zip(ends).map(|((begin, rate), end)| {
        let within = end.min(to).saturating_sub(from.max(*begin));
        within.as_secs_f64() * rate.as_mbps()
    });
    let seconds = to.saturating_sub(from).as_secs_f64();
    (seconds > 0.0).then(|| mbits.sum::<f64>() / seconds)
}

#[cfg(test)]
mod tests {
    use braid_core::Rate;

    use super::*;

    #[test]
    fn a_mean_rate_weighs_every_step_by_its_time() {
        let s = Duration::from_secs;
        let rate = RateSpec::Steps {
            points: vec![
                (s(0), Rate::from_mbps(10.0)),
                (s(4), Rate::ZERO),
                (s(5), Rate::from_mbps(40.0)),
            ],
            period: None,
        };
        assert_eq!(mean_rate(&rate, s(0), s(10)), Some(24.0));
        assert_eq!(mean_rate(&rate, s(2), s(6)), Some(15.0));
        assert_eq!(mean_rate(&rate, s(7), s(9)), Some(40.0));
        assert_eq!(mean_rate(&rate, s(7), s(7)), None);
    }
}
