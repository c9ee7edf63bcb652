//! Steering: which link carries the next packet of a bearer.
//!
//! One file per policy; [`REGISTRY`] lists them. A policy sees both links as they are
//! ([`LinkView`]) and names one, or waits. What it names is sent only when the link takes it, so
//! a choice may be asked for again; only [`Steering::sent`] counts.

mod backlog;
mod duplicate;
mod phy;
mod ratio;
mod rtt;
mod static_ratio;
mod switched;
#[cfg(test)]
mod tests;

use std::fmt;
use std::time::Duration;

use braid_core::{Rate, Time};
use thiserror::Error;

use crate::link::Link;

/// A link as steering sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkView {
    /// Whether it may carry packets: configured, not silent.
    pub usable: bool,
    /// Whether the queue below takes a packet now.
    pub room: bool,
    /// Rate of the radio as the modem or the access point tells it (MCS, bandwidth).
    pub phy_rate: Option<Rate>,
    /// Smoothed round trip of the probes (SLRTT).
    pub slrtt: Option<Duration>,
    /// Rate at which packets were delivered while the link was busy.
    pub delivery_rate: Option<Rate>,
    /// Shortest time from sending to the report of delivery.
    pub min_delay: Option<Duration>,
    /// Time between reports of delivery.
    pub report_interval: Duration,
    /// Whether the shortest delay is being measured anew, with less in flight.
    pub draining: bool,
    /// Bytes sent and not reported as delivered or lost.
    pub in_flight_bytes: u64,
    /// Bytes that the far side wants in flight at most (Xw-U desired buffer size).
    pub desired_bytes: u64,
}

/// Packet to be steered, and what waits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Bytes of the packet with its headers.
    pub packet_bytes: u64,
    /// Bytes of the bearer that wait, this packet included.
    pub waiting_bytes: u64,
}

/// Choice of the link that carries the next packet.
pub trait Steering: fmt::Debug + Send {
    /// Link for the packet, or none to let it wait. Choosing changes nothing.
    fn choose(&self, now: Time, links: &[LinkView; 2], demand: Demand) -> Option<Link>;

    /// Notes that the packet left over `link`.
    fn sent(&mut self, _now: Time, _links: &[LinkView; 2], _link: Link) {}

    /// Interval of the probes that it wants, if it needs round trips.
    fn probe_interval(&self) -> Option<Duration> {
        None
    }

    /// Weight of the newest round trip in the smoothed one.
    fn newest_weight(&self) -> f64 {
        1.0 / 8.0
    }

    /// Whether each packet is sent over the other link too (PDCP duplication, TS 38.323 5.11).
    fn duplicates(&self) -> bool {
        false
    }
}

/// One policy of the registry.
pub struct Entry {
    /// Name in configurations; an argument follows behind a colon.
    pub name: &'static str,
    /// Argument it takes, as a usage line writes it; empty for none.
    pub argument: &'static str,
    /// One line about it.
    pub about: &'static str,
    make: fn(&str) -> Option<Box<dyn Steering>>,
}

/// Every policy.
pub const REGISTRY: &[Entry] = &[
    static_ratio::ENTRY,
    phy::ENTRY,
    rtt::PAPER,
    rtt::CODE,
    backlog::ENTRY,
    switched::LTE,
    switched::WLAN,
    duplicate::ENTRY,
];

/// Why a steering could not be made from its text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("steering {0:?}: expected {1}")]
pub struct UnknownSteering(String, String);

/// Makes the policy that `text` names: `static:1:4`, `rtt`, `backlog`, `lte`, ...
pub fn parse(text: &str) -> Result<Box<dyn Steering>, UnknownSteering> {
    let (name, argument) = text.split_once(':').unwrap_or((text, ""));
    (REGISTRY.iter().find(|e| e.name == name))
        .and_then(|e| (e.make)(argument))
        .ok_or_else(|| {
            let all: Vec<String> = (REGISTRY.iter())
                .map(|e| match e.argument {
                    "" => e.name.to_owned(),
                    argument => format!("{}:{argument}", e.name),
                })
                .collect();
            UnknownSteering(text.to_owned(), all.join(", "))
        })
}

/// Whether the link can take the packet now within its desired buffer.
fn takes(view: &LinkView, demand: Demand) -> bool {
    view.usable && view.room && view.in_flight_bytes + demand.packet_bytes <= view.desired_bytes
}

/// `wanted` where it is usable, else the other; then only if there is room.
fn prefer(links: &[LinkView; 2], demand: Demand, wanted: Link) -> Option<Link> {
    let link = if links[wanted.index()].usable {
        wanted
    } else {
        wanted.other()
    };
    takes(&links[link.index()], demand).then_some(link)
}
