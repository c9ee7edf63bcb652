//! Questions to resolvers, which are asked by TCP where packets cannot go over the bond.

use std::sync::{Arc, Mutex};

use braid_forward::Carrier;
use braid_forward::divert::Divert;
use braid_forward::inbound::{Dns, Ports};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{domains, failed};
use crate::engine::Result;
use crate::state::lock;

/// Asks them over a carrier of connections while these fall back, or always without sessions.
///
/// # Errors
/// The socket's.
pub(super) fn serve(
    carrier: Arc<dyn Carrier>,
    falls_back: watch::Receiver<bool>,
    has_sessions: bool,
    divert: &Arc<Mutex<Divert>>,
) -> Result<[JoinHandle<()>; 2]> {
    let dns = Dns::listen();
    let dns = dns.map_err(|e| failed("listen for questions to resolvers (IP_TRANSPARENT)", &e))?;
    let dns = dns.with_answers(domains::listen(divert));
    let ports = dns.ports();
    let following = follow(ports, falls_back, has_sessions, Arc::clone(divert));
    Ok([tokio::spawn(dns.serve(carrier)), tokio::spawn(following)])
}

async fn follow(
    ports: Ports,
    mut falls_back: watch::Receiver<bool>,
    has_sessions: bool,
    divert: Arc<Mutex<Divert>>,
) {
    loop {
        let by_tcp = *falls_back.borrow_and_update() || !has_sessions;
        if let Err(e) = lock(&divert).resolve_by_tcp(by_tcp.then_some(ports)) {
            tracing::warn!("divert questions to resolvers: {e}");
        }
        if falls_back.changed().await.is_err() {
            return;
        }
    }
}
