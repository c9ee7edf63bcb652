//! Diversion of a LAN's connections to the daemon ([`Tproxy`](crate::inbound::Tproxy)), and what
//! keeps them from leaving in the clear when no daemon is there.
//!
//! Packets of a connection get a mark, by which a rule leads them to a route that delivers them to
//! this machine, and there to the transparent listener. When the daemon ends, also by a crash, its
//! table goes, and the kernel would forward the LAN's packets by the routes of this machine. The
//! kill switch is a table of its own that refuses these, and that stays until it is taken back.
//!
//! Rules of steering ([`braid_core::rules`]) may have flows leave [directly](Direct) by an access, or
//! refuse them.

mod direct;
pub(crate) mod routes;
mod steering;
mod tables;

use std::collections::BTreeMap;

use thiserror::Error;

use crate::conntrack::{self, ConntrackError};
use crate::inbound::Ports;
use crate::nft::{NftError, Nftables};
use crate::tunnel;
pub use direct::{Direct, Exit, Exits, Turned};
pub use routes::RouteError;
use routes::{Hop, Marked, loopback};
pub use steering::{Counts, DEFAULT, Numbered, RuleCount, Steered};
use tables::Diversion;

/// Mark of packets that are delivered to this machine, whatever their destination.
pub const MARK: u32 = 0xb1d;
/// Mark of packets that leave directly by the first way; the others follow.
pub const DIRECT: u32 = 0xb20;
/// Bits by which marks of ways are told from others.
pub const DIRECT_MASK: u32 = 0xffff_ffe0;
/// Ways at most: lists of accesses that rules name, of an old configuration beside those of a new one.
pub const MAX_WAYS: u8 = 32;

/// Why a LAN's connections cannot be diverted.
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
}

/// Delivery of diverted packets to this machine.
const TO_THIS_MACHINE: Marked = Marked {
    mark: MARK,
    table: 76_999_999,
    priority: 770,
};

/// Diversion of a LAN, which goes when this is dropped; its route and the kill switch stay.
#[derive(Debug)]
pub struct Divert {
    // Its table goes with this socket.
    nftables: Nftables,
    diversion: Diversion,
}

impl Divert {
    /// Diverts the TCP connections that arrive on the interfaces `lan`, in the network namespace
    /// of the calling thread, and marks the other packets, but for what `rules` say otherwise.
    /// Interfaces that are not there yet count as soon as they are. With `dns`, what this machine
    /// asks of resolvers is marked, too. `ports`: transparent listeners by the numbers of the classes
    /// that they are for; those of the default are needed.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn start(
        lan: &[String],
        ports: BTreeMap<u8, Ports>,
        dns: bool,
        rules: Vec<Steered>,
    ) -> Result<Self, DivertError> {
        let lo = loopback()?;
        for v4 in [true, false] {
            if v4 || ports.values().any(|p| p.v6.is_some()) {
                TO_THIS_MACHINE.add(v4, Hop::ThisMachine(lo)).await?;
            }
        }
        let diversion = Diversion {
            lan: lan.to_vec(),
            ports,
            v6: true,
            dns,
            rules: steering::numbered(rules, &[]),
        };
        // Flows of an earlier daemon have the numbers of its rules.
        if !diversion.rules.is_empty() {
            conntrack::forget_all()?;
        }
        let mut nftables = Nftables::open()?;
        nftables.replace(&diversion.table(&Counts::new()))?;
        Ok(Self {
            nftables,
            diversion,
        })
    }

    /// Diverts IPv6, or refuses it, where the proxy reaches none.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn divert_v6(&mut self, v6: bool) -> Result<(), NftError> {
        if self.diversion.v6 == v6 {
            return Ok(());
        }
        let counts = self.counts()?;
        let new = Diversion {
            v6,
            ..self.diversion.clone()
        };
        self.set(new, &counts)
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
        let new = Diversion {
            ports,
            rules: steering::numbered(rules, &self.diversion.rules),
            ..self.diversion.clone()
        };
        let old = self.diversion.rules.iter();
        let gone = old.filter(|r| !new.rules.contains(r));
        let gone: Vec<u8> = gone.map(|r| r.number).collect();
        counts.retain(|number, _| !gone.contains(number));
        self.set(new, &counts)?;
        gone.into_iter().try_for_each(conntrack::forget)?;
        Ok(())
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

    /// Ends it, and removes its route.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn close(self) -> Result<(), DivertError> {
        drop(self);
        remove_routes().await
    }
}

/// Removes the routes of a diversion, of its rules and of a tunnel that have ended with their process,
/// if they are there.
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

/// Refuses what the LAN at these interfaces would send past a daemon, from now on, whether one
/// runs or not.
///
/// # Errors
/// What the kernel refuses.
pub fn engage_kill_switch(lan: &[String]) -> Result<(), NftError> {
    Nftables::open()?.replace(&tables::kill_switch(lan))
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
