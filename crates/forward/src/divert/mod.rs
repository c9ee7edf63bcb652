//! Diversion of a LAN's connections to the daemon ([`Tproxy`](crate::inbound::Tproxy)), and what
//! keeps them from leaving in the clear when no daemon is there.
//!
//! Packets of a connection get a mark, by which a rule leads them to a route that delivers them to
//! this machine, and there to the transparent listener. When the daemon ends, also by a crash, its
//! table goes, and the kernel would forward the LAN's packets by the routes of this machine. The
//! kill switch is a table of its own that refuses these, and that stays until it is taken back.

pub(crate) mod routes;
mod tables;

use thiserror::Error;

use crate::inbound::Ports;
use crate::nft::{NftError, Nftables};
use crate::tunnel;
pub use routes::RouteError;
use routes::{Marked, loopback};

/// Mark of packets that are delivered to this machine, whatever their destination.
pub const MARK: u32 = 0xb1d;

/// Why a LAN's connections cannot be diverted.
#[derive(Debug, Error)]
pub enum DivertError {
    /// The rules.
    #[error(transparent)]
    Rules(#[from] NftError),
    /// The route by which diverted packets reach the listeners.
    #[error(transparent)]
    Route(#[from] RouteError),
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
    lan: Vec<String>,
    ports: Ports,
    v6: bool,
    dns: bool,
}

impl Divert {
    /// Diverts the TCP connections that arrive on the interfaces `lan`, in the network namespace
    /// of the calling thread, and marks the other packets. Interfaces that are not there yet count
    /// as soon as they are. With `dns`, what this machine asks of resolvers is marked, too.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub async fn start(lan: &[String], ports: Ports, dns: bool) -> Result<Self, DivertError> {
        let lo = loopback()?;
        for v4 in [true, false] {
            if v4 || ports.v6.is_some() {
                TO_THIS_MACHINE.add(v4, lo, true).await?;
            }
        }
        let mut divert = Self {
            nftables: Nftables::open()?,
            lan: lan.to_vec(),
            ports,
            v6: true,
            dns,
        };
        divert.set()?;
        Ok(divert)
    }

    /// Diverts IPv6, or refuses it, where the proxy reaches none.
    ///
    /// # Errors
    /// What the kernel refuses; then all is as it was.
    pub fn divert_v6(&mut self, v6: bool) -> Result<(), NftError> {
        if self.v6 == v6 {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.v6, v6);
        self.set().inspect_err(|_| self.v6 = before)
    }

    fn set(&mut self) -> Result<(), NftError> {
        let table = tables::diversion(&self.lan, self.ports, self.v6, self.dns);
        self.nftables.replace(&table)
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

/// Removes the routes of a diversion and of a tunnel that have ended with their process, if they are there.
///
/// # Errors
/// What the kernel refuses.
pub async fn remove_routes() -> Result<(), DivertError> {
    TO_THIS_MACHINE.remove(loopback()?, true).await?;
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
