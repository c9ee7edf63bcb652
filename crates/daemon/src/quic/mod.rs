//! The daemon of the engine `mpquic`: at the device it keeps a session with the proxy
//! over all accesses, and forwards ports of the device over it; at the proxy it takes
//! sessions in, and connects to where they ask for.

mod api;
mod arp;
mod device;
mod keys;
mod proxy;
mod state;
mod told;
mod weights;

use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use braid_api::Role;

use super::arp::Arp;
use super::config::Config;
use super::state::{lock, now};
use super::{DaemonError, RemoveOnDrop, meter, metrics, serve};
pub(super) use keys::identity;
use state::State;

/// Sets up, serves and follows until `stop`.
pub(super) async fn serve_until(
    role: Role,
    file: &Path,
    config: Config,
    control: &Path,
    stop: impl Future<Output = ()> + Send + 'static,
) -> Result<(), DaemonError> {
    let listener = serve::listen(control)?;
    let _remove = RemoveOnDrop(control);
    let state = Arc::new(State::new(role, file, config)?);
    let engine = match role {
        Role::Device => device::start(&state).await,
        Role::Proxy => proxy::start(&state),
    };
    let engine = engine.map_err(|e| match e {
        DaemonError::Config(e) => DaemonError::Config(format!("{}: {e}", file.display())),
        other => other,
    })?;
    state::reload_on_hangup(Arc::clone(&state))?;
    let at = lock(&state.config).metrics;
    let metrics = match at {
        Some(at) => Some(metrics::listen(at).await?),
        None => None,
    };
    let metrics = metrics.map(|l| tokio::spawn(metrics::serve(l, Arc::clone(&state))));
    let metered = tokio::spawn(meter_paths(Arc::clone(&state)));
    let arp = (role == Role::Device).then(|| arp::follow(Arc::clone(&state), Arp::bound(control)));
    let served = axum::serve(listener, serve::routes(Arc::clone(&state)));
    let done = tokio::select! {
        r = async { served.await } => {
            r.map_err(|e| DaemonError::Failed(format!("serve the control socket: {e}")))
        }
        () = stop => Ok(()),
    };
    engine.abort();
    metered.abort();
    if let Some(metrics) = metrics {
        metrics.abort();
    }
    if let Some(arp) = arp {
        arp.end().await;
    }
    state.close().await;
    done
}

/// Meters what flows over the paths, for ever.
async fn meter_paths(state: Arc<State>) {
    let mut every = tokio::time::interval(meter::EVERY);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        every.tick().await;
        let paths = state.paths();
        lock(&state.meter).read(now(), meter::paths(&paths));
    }
}
