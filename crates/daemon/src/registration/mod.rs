//! Registration of accesses: the device names them to its proxy, so that names, rates and weights
//! there need no public addresses in a file (messages: [`braid_api::registration`]).
//!
//! The device registers ([`device`]); the proxy takes registrations in ([`proxy`]) and keeps them
//! ([`registry`]). [`line`] reads the lines that both speak.

mod device;
mod identity;
mod line;
mod proxy;
mod registry;
#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Mutex;

use braid_api::registration::{Reply, Request};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::engine::ByName;
use crate::state::lock;

pub(crate) use device::{Device, follow as run_device};
pub(crate) use line::{converse, take};
pub(crate) use proxy::{fulfil_all, run as run_proxy};
pub(crate) use registry::{Registry, Wish};

/// Registrations that wait for their turn.
const QUEUE: usize = 64;

/// Way by which a registration came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// TCP from this address, as the proxy sees it.
    Address(IpAddr),
    /// Session with this token, whose device has shown its key.
    Session(u32),
}

/// Registration with whoever waits for the reply.
#[derive(Debug)]
pub(crate) struct Registering {
    pub(crate) from: Origin,
    pub(crate) request: Request,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// State of registration that the daemon shares with its engines and its API.
#[derive(Debug)]
pub(crate) struct Registration {
    /// Told when accesses, addresses or paths may be others, at the device.
    pub(crate) changed: Notify,
    to: mpsc::Sender<Registering>,
    from: tokio::sync::Mutex<mpsc::Receiver<Registering>>,
    /// Reason why the proxy does not know an access by its name, at the device.
    refused: Mutex<Option<String>>,
}

impl Default for Registration {
    fn default() -> Self {
        let (to, from) = mpsc::channel(QUEUE);
        Self {
            changed: Notify::new(),
            to,
            from: tokio::sync::Mutex::new(from),
            refused: Mutex::default(),
        }
    }
}

impl Registration {
    /// Returns where registrations are handed to, at the proxy.
    pub(crate) fn hands(&self) -> mpsc::Sender<Registering> {
        self.to.clone()
    }

    /// Returns what the user is to know of it, in a sentence.
    pub(crate) fn note(&self) -> Option<String> {
        let refused = lock(&self.refused).clone()?;
        Some(format!(
            "the proxy does not know the accesses by their names: {refused}"
        ))
    }

    /// Notes what the proxy has refused, or that it refuses nothing any more.
    fn set_refused(&self, why: Option<String>) {
        let mut refused = lock(&self.refused);
        if *refused == why {
            return;
        }
        if let Some(why) = &why {
            tracing::warn!("register the accesses at the proxy: {why}");
        }
        *refused = why;
    }
}
