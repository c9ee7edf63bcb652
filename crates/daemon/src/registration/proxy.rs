//! The proxy takes registrations in: its engines go by the names, and by the weights that a device
//! requests for its own accesses.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use braid_api::registration::{Reply, Request};
use braid_api::{Role, Weights as Given};
use braid_core::Time;

use super::registry::Facts;
use super::{ByName, Origin, Registering, Wish};
use crate::DaemonError;
use crate::config::{Config, access_at};
use crate::daemon::Daemon;
use crate::engine::Engine;
use crate::state::now;

/// Takes registrations in, one after the other, for ever.
pub(crate) async fn run(daemon: Arc<Daemon>) -> DaemonError {
    if daemon.shared().role == Role::Device {
        return std::future::pending().await;
    }
    daemon.adopt_registered().await;
    fulfil_all(&daemon).await;
    let mut from = daemon.shared().registration.from.lock().await;
    while let Some(registering) = from.recv().await {
        let Registering {
            from,
            request,
            reply,
        } = registering;
        let answer = match daemon.config().registration.enabled {
            true => register(&daemon, &from, &request).await,
            false => Reply::refusal("the proxy takes none: enabled = true in its [registration]"),
        };
        let _ = reply.send(answer);
    }
    DaemonError::Failed("take registrations in: the daemon ends".into())
}

/// Sets the weights again that devices have requested, after they were taken back.
pub(crate) async fn fulfil_all(daemon: &Daemon) {
    for (id, from) in daemon.registered_devices() {
        if let Err(why) = fulfil(daemon, &from, id).await {
            tracing::warn!("weights that a device had requested: {why}");
        }
    }
}

/// Takes one in, and has the engines go by it.
pub(super) async fn register(daemon: &Daemon, from: &Origin, request: &Request) -> Reply {
    let placed = daemon.learn(from, request).await.err();
    let set = fulfil(daemon, from, request.id).await.err();
    let accesses = daemon.names_of(request.id);
    let in_force = daemon.weights_of_all();
    let of = |(name, here): (&String, &String)| Some((name.clone(), *in_force.get(here)?));
    let mut weights: ByName = accesses.iter().filter_map(of).collect();
    if set.is_none() {
        weights.extend(daemon.requested_by(request.id));
    }
    Reply {
        weights,
        accesses,
        refused: placed.or(set),
    }
}

/// Sets the weights that a device has requested, if they are not in force yet.
async fn fulfil(daemon: &Daemon, from: &Origin, id: u64) -> Result<(), String> {
    let words = |e: DaemonError| format!("the proxy refuses the weights: {e}");
    let wish = daemon.wish(id, from);
    if wish.is_some() && matches!(from, Origin::Address(_)) && !daemon.goes_by_weights() {
        return Err(
            "the proxy goes by no weights, and who registers by TCP cannot change that: set \
             [scheduler] name = \"wrr\" there"
                .to_owned(),
        );
    }
    // Also those of devices that have gone, or want none any more.
    daemon.set_address_weights().await.map_err(words)?;
    let Some(wish) = wish else {
        return Ok(());
    };
    let Wish {
        mut all, session, ..
    } = wish.clone();
    // The device says it (MP_PRIO), for both directions.
    if !daemon.leaves_out() {
        all.retain(|_, w| *w > 0.0);
    }
    if !all.is_empty() {
        daemon.set_weights(&Given(all)).await.map_err(words)?;
    }
    if let (Origin::Session(token), false) = (from, session.is_empty()) {
        let (token, session) = (token.to_string(), Given(session));
        let set = daemon.set_connection_weights(&token, Some(&session));
        set.await.map_err(words)?;
    }
    daemon.fulfilled(id, from, wish);
    Ok(())
}

impl Daemon {
    /// Takes a registration in; where accesses are new, or have other addresses, the engines go
    /// by them.
    ///
    /// # Errors
    /// Why the access that it came over gets no name.
    async fn learn(&self, from: &Origin, request: &Request) -> Result<(), String> {
        let _turn = self.turn().await;
        let config = self.config();
        let networks = Config::networks(&config.accesses);
        let named = |address| access_at(&networks, address).map(str::to_owned);
        let port = config.probe.port;
        let engines = self.engines();
        let peers = engines.iter().filter_map(|e| e.peers(port).ok());
        let peers: BTreeSet<IpAddr> = peers.flatten().collect();
        let sessions = engines.iter().map(|e| e.sessions());
        let sessions: BTreeSet<u32> = sessions.flatten().collect();
        let engine = session_of(engines, from);
        let paths = engine.map(|(e, token)| e.configured_paths(token));
        let facts = Facts {
            configured: &named,
            paths: &paths.unwrap_or_default(),
            peers: &peers,
            sessions: &sessions,
        };
        let at = Time::from_nanos(now());
        let (placed, accesses) = {
            let mut registry = self.registry();
            let placed = registry.register(at, from, request, &facts);
            (placed, registry.accesses())
        };
        self.go_by_registered(accesses).await;
        self.save_registered();
        if let Some((engine, token)) = engine {
            let names = self.names_of(request.id);
            let of = |(path, access): (&u32, &String)| Some((*path, names.get(access)?.clone()));
            engine.name_paths(token, &request.paths.iter().filter_map(of).collect());
            // An access that has no name yet has one by the next registration.
            let here = |name: &str| names.get(name).cloned();
            let classes = request.classes.iter();
            let classes = classes.map(|(number, class)| (*number, class.renamed(here)));
            engine.steer_classes(token, classes.collect());
            let limits = request.accesses.iter();
            let limits = limits.filter_map(|(name, a)| Some((here(name)?, a.limit_bps?)));
            engine.limit_accesses(token, limits.collect());
        }
        placed
    }
}

/// Returns the engine whose session a registration came on, with its token.
fn session_of<'a>(engines: &'a [Arc<dyn Engine>], from: &Origin) -> Option<(&'a dyn Engine, u32)> {
    let Origin::Session(token) = from else {
        return None;
    };
    let engine = engines.iter().find(|e| e.sessions().contains(token))?;
    Some((&**engine, *token))
}
