//! Programs of the device itself: their packets while there is a tunnel, and their routes, which
//! others may remove.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_forward::divert::{Divert, OwnRoutes};
use braid_forward::tunnel::device::State;
use tokio::sync::watch;

use crate::engine::Result;
use crate::shared::Shared;
use crate::state::lock;

/// Between two looks at the routes. systemd-networkd, as it is installed, removes rules that it has not
/// made whenever it configures anew.
const EVERY: Duration = Duration::from_secs(2);

/// Carries packets of programs while there is a tunnel.
pub(super) async fn follow_tunnel(mut state: watch::Receiver<State>, divert: Arc<Mutex<Divert>>) {
    loop {
        let is_up = matches!(*state.borrow_and_update(), State::Up(_));
        if let Err(e) = lock(&divert).carry_own(is_up) {
            tracing::warn!("default = \"bond\": {e}");
        }
        if state.changed().await.is_err() {
            return;
        }
    }
}

/// Lays the routes again when others have removed some, for ever.
pub(super) async fn keep_routes(routes: OwnRoutes, shared: Arc<Shared>) {
    let mut told = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let proxy = shared.proxies.addresses(shared.proxies.used());
        let trouble = match routes.are_laid(&proxy).await {
            Ok(true) => None,
            Ok(false) => {
                tracing::warn!(
                    "somebody has removed rules of routing for programs (ip rule; systemd-networkd does \
                     without ManageForeignRoutingPolicyRules=no): they are set again"
                );
                lay(routes, &proxy).await.err().map(|e| e.to_string())
            }
            Err(e) => Some(e.to_string()),
        };
        if let Some(e) = trouble.as_ref().filter(|e| told.as_ref() != Some(*e)) {
            tracing::warn!("{e}");
        }
        told = trouble;
    }
}

/// Leads programs, but for what goes to these addresses of the proxy.
pub(super) async fn lay(routes: OwnRoutes, proxy: &[IpAddr]) -> Result<()> {
    let laid = routes.lay(proxy).await;
    laid.map_err(|e| super::failed("lead programs over the bond", &e))
}
