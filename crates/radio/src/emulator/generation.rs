//! The models since one epoch, on the monotonic clock.

use std::time::Duration;

use anyhow::{Context, Result};
use braid_core::{Time, seed};
use rand::RngExt;

use super::compensation;
use super::config::{EmulatorConfig, StationConfig, StationLinkConfig};
use super::outbox::Outbox;
use crate::model::wifi::Dcf;
use crate::model::{LinkChange, LinkId, Network, StationLink, Train};

/// A network of models and the time at which its time zero lies.
#[derive(Debug)]
pub(crate) struct Generation {
    pub(crate) network: Network,
    /// Link by the index that the loop uses.
    ids: Vec<LinkId>,
    /// `CLOCK_MONOTONIC`, nanoseconds.
    base: u64,
    /// See [`compensation::most`].
    reserve: Duration,
}

impl Generation {
    /// Models of the links of `config`, in the order of [`link_names`].
    pub(crate) fn new(config: &EmulatorConfig, base: u64) -> Result<Self> {
        let mut network = Network::new(config.seed);
        let mut ids = Vec::new();
        let reserve = compensation::most(config.tuning.simulated);
        for p in &config.paths {
            for (name, spec) in [("down", &p.down), ("up", &p.up)] {
                let spec = compensation::link(spec, reserve);
                ids.push(network.add_link(&format!("{}.{name}", p.name), &spec));
            }
        }
        for m in &config.media {
            // Each medium draws from a stream of its own.
            let seed = seed::stream(config.seed, &format!("medium/{}", m.name)).random();
            let medium = Dcf::new(&m.wifi, m.stations.len(), seed)
                .with_context(|| format!("medium \"{}\"", m.name))?;
            let station = |s: &StationConfig| {
                let link = |l: &StationLinkConfig| StationLink {
                    // The configuration was checked: the link exists.
                    link: network.link(&l.link).unwrap_or(LinkId(u32::MAX)),
                    phy_mbps: l.phy_mbps,
                };
                s.links.iter().map(link).collect()
            };
            let stations = m.stations.iter().map(station).collect();
            network.add_medium(&m.name, Box::new(medium), stations);
        }
        for b in &config.backhauls {
            let links: Vec<LinkId> = b.links.iter().filter_map(|l| network.link(l)).collect();
            network.add_backhaul(&b.rate, &links);
        }
        Ok(Self {
            network,
            ids,
            base,
            reserve,
        })
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn id(&self, link: usize) -> Option<LinkId> {
        self.ids.get(link).copied()
    }

    pub(crate) fn monotonic(&self, t: Time) -> u64 {
        self.base.saturating_add(t.as_nanos())
    }

    pub(crate) fn time(&self, monotonic: u64) -> Time {
        Time::from_nanos(monotonic.saturating_sub(self.base))
    }

    pub(crate) fn next_event(&self) -> Option<u64> {
        self.network.next_event().map(|t| self.monotonic(t))
    }

    pub(crate) fn enqueue(&mut self, link: usize, now: u64, train: Train, out: &mut Outbox) {
        let now = self.time(now);
        // The loop's links are this network's, in the same order.
        self.network
            .enqueue(self.ids[link], now, train, &mut out.since(self.base));
    }

    pub(crate) fn advance(&mut self, now: u64, out: &mut Outbox) {
        let now = self.time(now);
        self.network.advance(now, &mut out.since(self.base));
    }

    /// Goes on at `now` with what waits in `former`, see [`Network::succeed`].
    pub(crate) fn succeed(&mut self, former: &mut Self, now: u64, out: &mut Outbox) {
        let then = former.time(now);
        // What comes out meanwhile is of the former's time.
        let mut sink = out.since(former.base);
        let now = self.time(now);
        self.network
            .succeed(now, &mut former.network, then, &mut sink);
    }

    pub(crate) fn apply(&mut self, link: LinkId, at: Time, change: LinkChange, out: &mut Outbox) {
        let (change, reserve) = compensation::change(change, self.reserve);
        if let (Some(r), Some(i)) = (reserve, self.ids.iter().position(|&id| id == link)) {
            out.links[i].set_reserve(r);
        }
        self.network
            .apply(link, at, &change, &mut out.since(self.base));
    }
}

/// Names of the links of `config`: down and up of each path.
pub(crate) fn link_names(config: &EmulatorConfig) -> Vec<String> {
    config
        .paths
        .iter()
        .flat_map(|p| [format!("{}.down", p.name), format!("{}.up", p.name)])
        .collect()
}
