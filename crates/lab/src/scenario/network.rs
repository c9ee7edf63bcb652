//! `[network]`: what the namespaces of a lab have in common.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use braid_mptcp::buffers::{self, TCP_WMEM};
use braid_radio::model::{LinkSpec, QueueSpec, RateSpec};
use toml::Spanned;

use super::diagnostic::Problem;
use super::raw::{Family, RawNetwork};
use super::{AccessSetup, Network};

pub(super) fn build(raw: &RawNetwork) -> Result<Network, Problem> {
    let ipv6 = raw.family == Some(Family::Ipv6);
    let mtu = raw.mtu.as_ref().map_or(1500, |m| *m.get_ref());
    if !(1280..=9000).contains(&mtu) {
        let span = raw.mtu.as_ref().map_or(0..0, Spanned::span);
        return Err(Problem::at(
            span,
            format!("an MTU of {mtu} is not supported: expected 1280 to 9000"),
        ));
    }
    let prefix = match &raw.prefix {
        None => None,
        Some(p) => {
            let parsed = p.get_ref().split_once('/').and_then(|(a, l)| {
                let addr: IpAddr = a.parse().ok()?;
                let len: u8 = l.parse().ok()?;
                (len <= if addr.is_ipv6() { 128 } else { 32 }).then_some((addr, len))
            });
            match parsed {
                Some(found) if found.0.is_ipv6() == ipv6 => Some(found),
                Some(_) => {
                    return Err(Problem::at(
                        p.span(),
                        "this prefix is not of the `family` of this network",
                    ));
                }
                None => {
                    return Err(Problem::at(
                        p.span(),
                        format!(
                            "\"{}\" is not a prefix: expected one such as \"10.77.0.0/16\"",
                            p.get_ref()
                        ),
                    ));
                }
            }
        }
    };
    let mut module_parameters = BTreeMap::new();
    for (name, value) in &raw.module_parameters {
        let word =
            |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match name.get_ref().split_once('.') {
            Some((module, parameter)) if word(module) && word(parameter) => {}
            _ => {
                return Err(Problem::at(
                    name.span(),
                    "expected a module and its parameter, such as \"tcp_vegas.alpha\"",
                ));
            }
        }
        module_parameters.insert(name.get_ref().clone(), *value);
    }
    Ok(Network {
        ipv6,
        module_parameters,
        prefix,
        mtu,
        tcp_rmem: buffer(raw.tcp_rmem.as_ref(), "tcp_rmem")?,
        tcp_wmem: buffer(raw.tcp_wmem.as_ref(), "tcp_wmem")?,
        short_queues: raw.short_queues.unwrap_or(true),
    })
}

/// Send buffers for what the accesses carry at best.
pub(super) fn send_buffers(accesses: &[AccessSetup]) -> [u32; 3] {
    let [least, _, greatest] = TCP_WMEM;
    let initial = |way: fn(&AccessSetup) -> &LinkSpec| {
        let rates = || accesses.iter().map(|a| highest(&way(a).rate) / 8.0);
        let slowest = rates().filter(|r| *r > 0.0).fold(f64::INFINITY, f64::min);
        let trips = accesses.iter().map(|a| {
            let delays = a.down.longest_delay() + a.up.longest_delay();
            delays + queued(&way(a).queue)
        });
        let longest = trips.max().unwrap_or_default();
        buffers::initial_send(rates().sum(), slowest, longest, accesses.len())
    };
    [
        least,
        initial(|a| &a.down).max(initial(|a| &a.up)),
        greatest,
    ]
}

/// How long a packet may wait in a queue, or a guess.
pub(crate) fn queued(queue: &QueueSpec) -> Duration {
    match queue {
        QueueSpec::Time(t) => *t,
        QueueSpec::Bytes(_) | QueueSpec::Packets(_) | QueueSpec::Codel { .. } => {
            Duration::from_millis(100)
        }
    }
}

/// Bit/s.
fn highest(rate: &RateSpec) -> f64 {
    match rate {
        RateSpec::Unlimited => f64::INFINITY,
        RateSpec::Constant(r) => r.as_bps() as f64,
        RateSpec::Steps { points, .. } => {
            let most = points.iter().map(|p| p.1.as_bps()).max();
            most.unwrap_or_default() as f64
        }
        RateSpec::Opportunities { ms, packet_bytes } => {
            let seconds = ms.last().copied().unwrap_or_default().max(1) as f64 / 1e3;
            ms.len() as f64 * f64::from(*packet_bytes) * 8.0 / seconds
        }
    }
}

/// Least, initial and greatest buffer of a TCP socket, bytes, as the kernel takes them.
pub(super) fn buffer(
    given: Option<&Spanned<[u32; 3]>>,
    key: &str,
) -> Result<Option<[u32; 3]>, Problem> {
    let Some(given) = given else {
        return Ok(None);
    };
    let sizes @ [least, initial, greatest] = *given.get_ref();
    if 4096 <= least && least <= initial && initial <= greatest && greatest <= i32::MAX as u32 {
        return Ok(Some(sizes));
    }
    Err(Problem::at(
        given.span(),
        format!(
            "`{key}` cannot be {sizes:?}: expected the least, the initial and the greatest size in bytes, rising, from 4096 to {}",
            i32::MAX
        ),
    ))
}
