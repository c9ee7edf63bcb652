//! The device's session, which is made again whenever it is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use braid_mpquic::forward::Forward;
use braid_mpquic::{Device, tls};
use tokio::task::JoinHandle;

use super::api::is_missing;
use super::keys;
use super::state::State;
use crate::daemon::DaemonError;
use crate::daemon::state::lock;

/// Between two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens on the ports that are forwarded, and begins to connect.
pub(super) async fn start(state: &Arc<State>) -> Result<JoinHandle<()>, DaemonError> {
    let quic = &state.quic;
    let identity = keys::identity(&quic.identity)?;
    state.note(format!("this device's key is {}", identity.pin()));
    let nobody = || DaemonError::Config("[mpquic] pins: the proxy's key is missing".to_owned());
    let trust = keys::trust(quic)?.ok_or_else(nobody)?;
    let tls = tls::client(&trust, Some(&identity), tls::alpn(quic.lane))
        .map_err(|e| DaemonError::Config(format!("[mpquic]: {e}")))?;
    for f in &quic.forward {
        let forward = Forward::listen(f.listen, f.to).await.map_err(|e| {
            DaemonError::Failed(format!(
                "listen at TCP {} to forward it ([mpquic] forward): {e}",
                f.listen
            ))
        })?;
        let told = |what| eprintln!("braid: {what}");
        tokio::spawn(forward.serve(state.current.subscribe(), told));
    }
    for a in &lock(&state.config).accesses {
        if let Some(interface) = a.interface.as_ref().map(ToString::to_string)
            && is_missing(&interface)
        {
            eprintln!(
                "braid: access {}: there is no interface {interface} yet; used once it is there \
                 (ip link lists those that there are)",
                a.name
            );
        }
    }
    let at = lock(&state.config).proxy.first().copied();
    let at = at.ok_or_else(|| DaemonError::Config("the proxy's address is missing".to_owned()))?;
    let remote = SocketAddr::new(at, quic.port);
    Ok(tokio::spawn(keep(Arc::clone(state), remote, tls)))
}

fn without_digits(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "")
}

async fn keep(state: Arc<State>, remote: SocketAddr, tls: braid_mpquic::ClientConfig) {
    let name = state.quic.name.clone();
    let mut said: Option<String> = None;
    loop {
        let accesses = lock(&state.steered).accesses.clone();
        let options = state.options();
        match Device::connect(remote, &name, tls.clone(), options, accesses).await {
            Ok((device, session)) => {
                said = None;
                for name in lock(&state.steered).disabled.clone() {
                    let _ = device.enable(&name, false);
                }
                *lock(&state.device) = Some(device);
                state.current.send_replace(Some(session.clone()));
                let why = state.follow(&session).await;
                state.current.send_replace(None);
                *lock(&state.device) = None;
                eprintln!("braid: {why}; connecting again");
            }
            Err(e) => {
                // Once is enough for what stays as it is, but for the time that some tell.
                let text = e.to_string();
                if said.as_deref().map(without_digits) != Some(without_digits(&text)) {
                    eprintln!("braid: {text}; trying again every {} s", PAUSE.as_secs());
                    said = Some(text);
                }
            }
        }
        lock(&state.trouble).clone_from(&said);
        tokio::time::sleep(PAUSE).await;
    }
}
