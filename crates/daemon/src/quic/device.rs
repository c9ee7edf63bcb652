//! The device's session, which is made again whenever it is lost.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use braid_mpquic::forward::Forward;
use braid_mpquic::{Device, Error, Keeper, tls};
use tokio::task::JoinHandle;

use super::api::is_missing;
use super::keys;
use super::state::State;
use crate::DaemonError;
use crate::state::lock;

/// Before what sessions are made with is made again.
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

/// Makes one session after the other. What there is to make them with is made again should it
/// fail, as where the interfaces cannot be followed.
async fn keep(state: Arc<State>, remote: SocketAddr, tls: braid_mpquic::ClientConfig) {
    let mut trouble = Trouble::default();
    loop {
        let name = state.quic.name.clone();
        let accesses = lock(&state.steered).accesses.clone();
        let options = state.options();
        let e = match Device::keep(remote, &name, tls.clone(), options, accesses).await {
            Ok(keeper) => follow(&state, &keeper, &mut trouble).await,
            Err(e) => e,
        };
        trouble.tell(&state, &e);
        *lock(&state.device) = None;
        tokio::time::sleep(PAUSE).await;
    }
}

/// Takes sessions until there can be none.
async fn follow(state: &State, keeper: &Keeper, trouble: &mut Trouble) -> Error {
    for name in lock(&state.steered).disabled.clone() {
        let _ = keeper.device().enable(&name, false);
    }
    *lock(&state.device) = Some(keeper.device().clone());
    loop {
        match keeper.session().await {
            Ok(session) => {
                trouble.is_over(state);
                state.current.send_replace(Some(session.clone()));
                let why = state.follow(&session).await;
                state.current.send_replace(None);
                eprintln!("braid: {why}; connecting again");
                *lock(&state.trouble) = Some(why);
            }
            Err(e @ Error::Io { .. }) => return e,
            Err(e) => trouble.tell(state, &e),
        }
    }
}

/// Why there is no session. Once is enough for what stays as it is, but for the time that
/// some tell.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn tell(&mut self, state: &State, e: &Error) {
        let text = e.to_string();
        if self.0.as_deref() != Some(&without_digits(&text)) {
            eprintln!("braid: {text}; trying again");
            self.0 = Some(without_digits(&text));
        }
        *lock(&state.trouble) = Some(text);
    }

    fn is_over(&mut self, state: &State) {
        self.0 = None;
        *lock(&state.trouble) = None;
    }
}
