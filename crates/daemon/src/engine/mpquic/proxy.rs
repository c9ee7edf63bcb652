//! The sessions that a proxy takes in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use braid_api::registration;
use braid_forward::tunnel::INTERFACE;
use braid_forward::tunnel::gateway::Gateway;
use braid_forward::{Allowed, Egress, Other, serve};
use braid_mpquic::{Options, Proxy, tls};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Mpquic;
use super::keys;
use crate::DaemonError;
use crate::config::quic::Who;
use crate::engine::Result;
use crate::lan::unforwarded;
use crate::registration::{Origin, Registering, take};
use crate::state::lock;

/// Registrations of one session that wait.
const REGISTERING: usize = 4;
/// Longest time for one: weights that are set with it may load programs.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn start(state: &Arc<Mpquic>) -> Result<BoxFuture<'static, ()>> {
    let quic = &state.quic;
    let identity = keys::identity(&quic.identity)?;
    state.tell(format!("this proxy's key is {}", identity.pin()));
    if quic.trust == Who::Anyone {
        state.note("this proxy is open to any device (anyone = true)".to_owned());
    }
    if quic.allow == Allowed::default() {
        state.note("nothing may be connected to: set allow in [mpquic]".to_owned());
    }
    let tls = tls::server(&identity, &keys::devices(quic)?, tls::alpn(quic.lane))
        .map_err(|e| DaemonError::Config(format!("[mpquic]: {e}")))?;
    let at = lock(&state.proxies).clone();
    let at = at.iter();
    let at: Vec<_> = at.map(|a| SocketAddr::new(*a, quic.port)).collect();
    let accesses = lock(&state.steered).configured_accesses();
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
    let egress = Egress {
        allowed: Arc::new(quic.allow.clone()),
        gateway: gateway(state).await?,
    };
    Ok(take_in(Arc::clone(state), proxy, egress).boxed())
}

/// Opens the end of the tunnels, if it is configured.
async fn gateway(state: &Mpquic) -> Result<Option<Arc<Gateway>>> {
    let Some(pools) = state.quic.gateway else {
        return Ok(None);
    };
    let made = Gateway::create(pools, &state.quic.allow).await;
    let gateway = made.map_err(|e| DaemonError::Failed(format!("[gateway]: {e}")))?;
    for what in unforwarded(pools.v6.is_some()) {
        state.note(format!(
            "packets of devices end here: {what} = 0 (sysctl -w {what}=1 has this machine forward)"
        ));
    }
    let gateway = Arc::new(gateway);
    let running = Arc::clone(&gateway);
    tokio::spawn(async move {
        let e = running.run().await;
        tracing::error!("no more packets go to devices: read from {INTERFACE}: {e}");
    });
    Ok(Some(gateway))
}

async fn take_in(state: Arc<Mpquic>, proxy: Arc<Proxy>, egress: Egress) {
    loop {
        match proxy.accept().await {
            Ok(session) => {
                let token = state.number(&session);
                let (others, registering) = mpsc::channel(REGISTERING);
                tokio::spawn(serve(session.clone(), egress.clone(), others));
                tokio::spawn(register(
                    registering,
                    token,
                    state.shared.registration.hands(),
                ));
                let state = Arc::clone(&state);
                tokio::spawn(async move {
                    state.follow(token, &session).await;
                });
            }
            Err(e) => {
                state.note(format!("{e}: no sessions are taken in any more"));
                return;
            }
        }
    }
}

/// Hands the registrations over that come on a session, one after the other, until it ends.
async fn register(
    mut streams: mpsc::Receiver<Other>,
    token: u32,
    hands: mpsc::Sender<Registering>,
) {
    while let Some(Other { first, mut stream }) = streams.recv().await {
        if first != registration::FIRST {
            continue;
        }
        let taken = take(&mut stream, Origin::Session(token), &hands);
        if let Ok(Ok(())) = timeout(PATIENCE, taken).await {
            // Dropped at once, the stream would be reset, and the reply might not arrive.
            let _ = timeout(PATIENCE, stream.shutdown()).await;
        }
    }
}
