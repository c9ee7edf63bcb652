//! The sessions that a proxy takes in.

use std::net::SocketAddr;
use std::sync::Arc;

use braid_mpquic::forward::{Allowed, serve};
use braid_mpquic::{Options, Proxy, tls};
use tokio::task::JoinHandle;

use super::keys;
use super::state::State;
use crate::DaemonError;
use crate::config::quic::Who;
use crate::state::lock;

pub(super) fn start(state: &Arc<State>) -> Result<JoinHandle<()>, DaemonError> {
    let quic = &state.quic;
    let identity = keys::identity(&quic.identity)?;
    state.note(format!("this proxy's key is {}", identity.pin()));
    if quic.trust == Who::Anyone {
        state.note("this proxy is open to any device (anyone = true)".to_owned());
    }
    if quic.allow.is_empty() {
        state.note("nothing may be connected to: set allow in [mpquic]".to_owned());
    }
    let tls = tls::server(&identity, &keys::devices(quic)?, tls::alpn(quic.lane))
        .map_err(|e| DaemonError::Config(format!("[mpquic]: {e}")))?;
    let at: Vec<SocketAddr> = {
        let config = lock(&state.config);
        let at = config.proxy.iter();
        at.map(|a| SocketAddr::new(*a, quic.port)).collect()
    };
    let accesses = lock(&state.steered).accesses.clone();
    let options = Options {
        reset_key: Some(identity.reset_key()),
        ..state.options()
    };
    let proxy = Proxy::listen(&at, tls, &options, accesses).map_err(|e| {
        DaemonError::Failed(format!(
            "{e} (as proxy and [mpquic] port say; ss -ulnp tells who listens there already)"
        ))
    })?;
    let proxy = Arc::new(proxy);
    *lock(&state.proxy) = Some(Arc::clone(&proxy));
    Ok(tokio::spawn(take_in(Arc::clone(state), proxy)))
}

async fn take_in(state: Arc<State>, proxy: Arc<Proxy>) {
    loop {
        match proxy.accept().await {
            Ok(session) => {
                let allowed = Allowed(state.quic.allow.clone());
                tokio::spawn(serve(session.clone(), allowed));
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    state.follow(&session).await;
                });
            }
            Err(e) => {
                state.note(format!("{e}: no sessions are taken in any more"));
                return;
            }
        }
    }
}
