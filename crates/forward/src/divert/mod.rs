//! Diversion of connections of a LAN, and of this machine's own programs, to the daemon
//! ([`Tproxy`](crate::inbound::Tproxy)), and what keeps them from leaving in the clear when no daemon
//! is there.
//!
//! Packets of a connection get a mark, by which a rule leads them to a route that delivers them to
//! this machine, and there to the transparent listener. When the daemon ends, also by a crash, its
//! table goes, and the kernel would forward the LAN's packets by the routes of this machine. The
//! kill switch is a table of its own that refuses these, and that stays until it is taken back.
//!
//! Rules of steering ([`braid_core::rules`]) may have flows leave [directly](Direct) by an access, or
//! refuse them.

mod direct;
mod groups;
mod names;
mod own;
pub(crate) mod routes;
mod steering;
mod tables;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Instant;

use braid_core::domain::Answer;
use thiserror::Error;

use crate::conntrack::{self, ConntrackError};
use crate::inbound::Ports;
use crate::nft::{NftError, Nftables};
use crate::tunnel::{self, TunnelError};
pub use direct::{Direct, Exit, Exits, Turned, Unled};
pub use groups::{Group, Groups, find as find_groups};
use names::{Changes, Names};
use own::Own;
pub use own::OwnRoutes;
pub use routes::RouteError;
use routes::{Hop, Marked, loopback};
use steering::Facts;
pub use steering::{Counts, DEFAULT, Numbered, RuleCount, Steered};
use tables::{Diversion, OwnPrograms};

/// Mark of packets that are delivered to this machine, whatever their destination.
pub const MARK: u32 = 0xb1d;
/// Mark of questions to resolvers that leave past the bond where there is no tunnel.
pub(crate) const RESOLVING: u32 = 0xb1c;
/// Mark of packets that leave directly by the first way; the others follow.
pub const DIRECT: u32 = 0xb20;
/// Bits by which marks of ways are told from others.
pub const DIRECT_MASK: u32 = 0xffff_ffe0;
/// Ways at most: lists of accesses that rules name, of an old configuration beside those of a new one.
pub const MAX_WAYS: u8 = 32;

/// Why connections cannot be diverted.
#[derive(Debug, Error)]
pub enum DivertError {
    /// The rules.
    #[error(transparent)]
    Rules(#[from] NftError),
    /// The route by which diverted packets reach the listeners.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// Flows that were to be forgotten.
    #[error(transparent)]
    Conntrack(#[from] ConntrackError),
    /// The interface that own programs are led to.
    #[error(transparent)]
    Interface(#[from] TunnelError),
}

/// Traffic that is diverted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// Interfaces to the hosts of a LAN. One that is not there yet counts as soon as it is.
    pub lan: Vec<String>,
    /// Lead into the tunnel, while there is one, what this machine asks of resolvers: it may be for
    /// hosts.
    pub dns: bool,
    /// Own programs of this machine; absent: these leave as its routes say.
    pub own: Option<Programs>,
}

/// Diversion of this machine's own programs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs {
    /// Addresses to which they leave past the bond: the proxy's.
    pub past: Vec<IpAddr>,
    /// Refuse them when no daemon runs.
    pub refuse: bool,
    /// Let what they ask of resolvers leave past the bond while there is no tunnel: the proxy is known by
    /// its name.
    pub resolves_past: bool,
}

/// Delivery of diverted packets to this machine.
const TO_THIS_MACHINE: Marked = Marked {
    mark: MARK,
    table: 76_999_999,
    priority: 770,
};

/// Diversion, which goes when this is dropped; its routes and the kill switch stay.
pub struct Divert {
    // Its table goes with this socket.
    nftables: Nftables,
    diversion: Diversion,
    // What they send leads nowhere without the table.
    own: Option<Own>,
}

impl Divert {
    /// Diverts TCP connections, in the network namespace of the calling thread, and marks the other
    /// packets, but for what `rules` say otherwise. `ports`: transparent listeners by the numbers of the
    /// classes that they are for; those of the default are needed.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn start(
        setting: &Setting,
        ports: BTreeMap<u8, Ports>,
        rules: Vec<Steered>,
    ) -> Result<Self, DivertError> {
        let lo = loopback()?;
        for v4 in [true, false] {
            if v4 || ports.values().any(|p| p.v6.is_some()) {
                TO_THIS_MACHINE.add(v4, Hop::ThisMachine(lo)).await?;
            }
        }
        let diversion = Diversion {
            lan: setting.lan.clone(),
            own: setting.own.as_ref().map(|own| OwnPrograms {
                carried: false,
                resolves_past: own.resolves_past,
            }),
            ports,
            v6: true,
            dns: setting.dns,
            resolvers: None,
            facts: Facts::default(),
            rules: vec![],
        };
        let diversion = diversion.with_rules(steering::numbered(rules, &[]));
        // Flows of an earlier daemon have the numbers of its rules.
        if !diversion.rules.is_empty() {
            conntrack::forget_all()?;
        }
        let mut nftables = Nftables::open()?;
        nftables.replace(&diversion.table(&Counts::new()))?;
        let own = match &setting.own {
            Some(own) => {
                let made = Own::create(own.refuse).await?;
                made.routes().lay(&own.past).await?;
                Some(made)
            }
            None => {
                own::remove().await?;
                None
            }
        };
        Ok(Self {
            nftables,
            diversion,
            own,
        })
    }

    /// Returns the routes of own programs, which somebody may remove.
    pub fn own_routes(&self) -> Option<OwnRoutes> {
        self.own.as_ref().map(Own::routes)
    }

    /// Carries what own programs send beside connections, or refuses it: whether there is a tunnel.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn carry_own(&mut self, carried: bool) -> Result<(), NftError> {
        let Some(own) = self.diversion.own.filter(|own| own.carried != carried) else {
            return Ok(());
        };
        self.change(|d| d.own = Some(OwnPrograms { carried, ..own }))
    }

    /// Refuses at once what own programs would send by ways that lead nowhere ([`Direct::unled`]).
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn refuse_unled(&mut self, unled: Unled) -> Result<(), NftError> {
        let facts = Facts {
            unled,
            ..self.diversion.facts.clone()
        };
        self.set_facts(facts)
    }

    /// Goes by these control groups of the units that rules name ([`find_groups`]), as far as flows begin
    /// from now on.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn set_groups(&mut self, groups: Groups) -> Result<(), NftError> {
        let facts = Facts {
            groups,
            ..self.diversion.facts.clone()
        };
        self.set_facts(facts)
    }

    /// Learns the addresses of an answer of a resolver, as far as rules name its domain: flows to these
    /// that begin from now on meet them.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn learn(&mut self, answer: &Answer, now: Instant) -> Result<(), NftError> {
        if !self.diversion.facts.names.asks_for(&answer.name) {
            return Ok(());
        }
        self.change_names(|names| names.learn(answer, now))
    }

    /// Forgets addresses of domains that are not valid any more.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn forget_ended(&mut self, now: Instant) -> Result<(), NftError> {
        self.change_names(|names| names.forget_ended(now))
    }

    fn change_names(&mut self, change: impl FnOnce(&mut Names) -> Changes) -> Result<(), NftError> {
        let mut names = self.diversion.facts.names.clone();
        let Changes { deleted, added } = change(&mut names);
        self.nftables
            .change_sets(tables::DIVERSION, &deleted, &added)?;
        self.diversion.facts.names = names;
        Ok(())
    }

    fn set_facts(&mut self, facts: Facts) -> Result<(), NftError> {
        if self.diversion.own.is_none() || self.diversion.facts == facts {
            return Ok(());
        }
        self.change(|d| d.facts = facts)
    }

    /// Hands questions to resolvers by UDP to the sockets at these ports ([`Dns`](crate::inbound::Dns)),
    /// or treats them as all packets.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn resolve_by_tcp(&mut self, resolvers: Option<Ports>) -> Result<(), NftError> {
        if self.diversion.resolvers == resolvers {
            return Ok(());
        }
        self.change(|d| d.resolvers = resolvers)
    }

    /// Diverts IPv6, or refuses it, where the proxy reaches none.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn divert_v6(&mut self, v6: bool) -> Result<(), NftError> {
        if self.diversion.v6 == v6 {
            return Ok(());
        }
        self.change(|d| d.v6 = v6)
    }

    /// Goes by other rules, as far as flows begin from now on. Flows of rules that are gone are judged
    /// anew. A rule that is there as it was goes on counting. `ports`: as for [`Divert::start`].
    ///
    /// # Errors
    /// What the kernel refuses; if it is about the rules, all is as it was.
    pub fn set_rules(
        &mut self,
        rules: Vec<Steered>,
        ports: BTreeMap<u8, Ports>,
    ) -> Result<(), DivertError> {
        let mut counts = self.counts()?;
        let rules = steering::numbered(rules, &self.diversion.rules);
        let new = Diversion {
            ports,
            ..self.diversion.clone()
        };
        let new = new.with_rules(rules);
        let old = self.diversion.rules.iter();
        let gone = old.filter(|r| !new.rules.contains(r));
        let gone: Vec<u8> = gone.map(|r| r.number).collect();
        counts.retain(|number, _| !gone.contains(number));
        self.set(new, &counts)?;
        gone.into_iter().try_for_each(conntrack::forget)?;
        Ok(())
    }

    /// Changes it; rules go on counting.
    fn change(&mut self, change: impl FnOnce(&mut Diversion)) -> Result<(), NftError> {
        let counts = self.counts()?;
        let mut new = self.diversion.clone();
        change(&mut new);
        self.set(new, &counts)
    }

    fn set(&mut self, new: Diversion, counts: &Counts) -> Result<(), NftError> {
        self.nftables.replace(&new.table(counts))?;
        self.diversion = new;
        Ok(())
    }

    /// Returns the rules, in the order of precedence.
    pub fn rules(&self) -> &[Numbered] {
        &self.diversion.rules
    }

    /// Reads what has met each rule, by its number; nothing where there are no rules.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn counts(&mut self) -> Result<Counts, NftError> {
        if self.diversion.rules.is_empty() {
            return Ok(Counts::new());
        }
        let read = self.nftables.counters(tables::DIVERSION)?;
        Ok(steering::counts(&self.diversion.rules, &read))
    }

    /// Ends it, and removes its routes, but for those of own programs: [`release_own`].
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn close(self) -> Result<(), DivertError> {
        drop(self);
        remove_routes().await
    }
}

/// Takes the routes of own programs back, if they are there: these leave as the routes of this machine
/// say.
///
/// # Errors
/// What the kernel refuses.
pub async fn release_own() -> Result<(), DivertError> {
    Ok(own::remove().await?)
}

/// Removes the routes of a diversion, of its rules and of a tunnel that have ended with their process,
/// if they are there; those of own programs stay.
///
/// # Errors
/// What the kernel refuses.
pub async fn remove_routes() -> Result<(), DivertError> {
    let to_this_machine = Hop::ThisMachine(loopback()?);
    TO_THIS_MACHINE.remove(to_this_machine).await?;
    direct::remove_all().await?;
    tunnel::remove_routes().await?;
    Ok(())
}

/// Refuses what the LAN at these interfaces would send past a daemon, and with `own` what own programs
/// would, from now on, whether one runs or not.
///
/// # Errors
/// What the kernel refuses.
pub fn engage_kill_switch(lan: &[String], own: bool) -> Result<(), NftError> {
    Nftables::open()?.replace(&tables::kill_switch(lan, own))
}

/// Whether a kill switch is in place.
///
/// # Errors
/// The kernel does not say.
pub fn is_kill_switch_engaged() -> Result<bool, NftError> {
    Nftables::open()?.has(tables::KILL_SWITCH)
}

/// Takes the kill switch back: the kernel forwards again as its routes say.
///
/// # Errors
/// What the kernel refuses.
pub fn release_kill_switch() -> Result<(), NftError> {
    Nftables::open()?.remove(tables::KILL_SWITCH)
}
