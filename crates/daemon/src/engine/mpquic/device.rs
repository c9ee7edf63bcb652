//! The device's session, which is made again whenever it is lost.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use braid_forward::Carrier;
use braid_forward::carrier::OverSession;
use braid_forward::inbound::{Port, Socks};
use braid_mpquic::{ClientConfig, Device, Error, Keeper, Session, tls};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::watch;

use super::standby::{self, Answered};
use super::{Mpquic, keys};
use crate::DaemonError;
use crate::engine::Result;
use crate::state::lock;

/// Time without an answer after which there is no contact.
const SILENT: Duration = Duration::from_millis(500);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(100);
/// Before what sessions are made with is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens on the ports that are forwarded, and begins to connect.
pub(super) async fn start(state: &Arc<Mpquic>) -> Result<BoxFuture<'static, ()>> {
    let quic = &state.quic;
    let identity = keys::identity(&quic.identity)?;
    state.tell(format!("this device's key is {}", identity.pin()));
    let nobody = || DaemonError::Config("[mpquic] pins: the proxy's key is missing".to_owned());
    let trust = keys::trust(quic)?.ok_or_else(nobody)?;
    let tls = tls::client(&trust, Some(&identity), tls::alpn(quic.lane))
        .map_err(|e| DaemonError::Config(format!("[mpquic]: {e}")))?;
    let told = |what| tracing::warn!("{what}");
    let carrier = carrier(state);
    for f in &quic.forward {
        let port = Port::listen(f.listen, f.to).await;
        let port =
            port.map_err(|e| cannot_listen(f.listen, "to forward it ([mpquic] forward)", &e))?;
        tokio::spawn(port.serve(Arc::clone(&carrier), told));
    }
    if let Some(at) = quic.socks {
        let socks = Socks::listen(at).await;
        let socks = socks.map_err(|e| cannot_listen(at, "for programs ([mpquic] socks)", &e))?;
        if !at.ip().is_loopback() {
            state.note(format!(
                "whoever reaches {at} may connect by this device ([mpquic] socks): 127.0.0.1 is \
                 reached by its own programs alone"
            ));
        }
        tokio::spawn(socks.serve(carrier, told));
    }
    for a in lock(&state.accesses).iter() {
        if let Some(interface) = &a.interface
            && interface.is_name()
            && is_missing(interface.as_str())
        {
            tracing::warn!(
                "access {}: there is no interface {interface} yet; used once it is there \
                 (ip link lists those that there are)",
                a.name
            );
        }
    }
    Ok(keep(Arc::clone(state), tls).boxed())
}

/// Returns the way over the session that there is when it is needed, and where there is none, over the
/// proxy's converter.
pub(super) fn carrier(state: &Arc<Mpquic>) -> Arc<dyn Carrier> {
    let over_sessions = Arc::new(OverSession::new(state.current.subscribe()));
    let conversion = &state.shared.conversion;
    conversion.beside(|| contact(state), over_sessions)
}

/// Returns whether the proxy answers over a session, as it is from now on.
fn contact(state: &Arc<Mpquic>) -> watch::Receiver<bool> {
    let (tell, contact) = watch::channel(false);
    let state = Arc::downgrade(state);
    tokio::spawn(async move {
        while let Some(state) = state.upgrade() {
            let device = lock(&state.device).clone();
            let lost = device.and_then(|d| d.lost_for());
            let answers = state.current.borrow().is_some() && lost.is_none_or(|t| t < SILENT);
            drop(state);
            tell.send_if_modified(|before| std::mem::replace(before, answers) != answers);
            tokio::time::sleep(LOOK).await;
        }
    });
    contact
}

fn cannot_listen(at: SocketAddr, why: &str, e: &std::io::Error) -> DaemonError {
    DaemonError::Failed(format!(
        "listen at TCP {at} {why}: {e} (ss -tlnp tells who listens there already)"
    ))
}

/// Whether there is no such interface in this network namespace.
pub(super) fn is_missing(interface: &str) -> bool {
    nix::net::if_::if_nametoindex(interface).is_err()
}

fn without_digits(text: &str) -> String {
    text.replace(|c: char| c.is_ascii_digit(), "")
}

/// Makes one session after the other. What there is to make them with is made again should it
/// fail, as where the interfaces cannot be followed.
async fn keep(state: Arc<Mpquic>, tls: ClientConfig) {
    let mut trouble = Trouble::default();
    let mut next: Option<Answered> = None;
    loop {
        let left = match next.take() {
            Some(Answered {
                keeper,
                session,
                at,
            }) => follow(&state, &tls, (&keeper, at), Some(session), &mut trouble).await,
            None => {
                let Some(at) = lock(&state.proxies).first().copied() else {
                    state.reached.notified().await;
                    continue;
                };
                match connect(&state, &tls, at).await {
                    Ok(keeper) => follow(&state, &tls, (&keeper, at), None, &mut trouble).await,
                    Err(e) => Left::Failed(e),
                }
            }
        };
        *lock(&state.device) = None;
        match left {
            Left::Failed(e) => {
                trouble.tell(&state, &e);
                tokio::time::sleep(PAUSE).await;
            }
            Left::Moved => {}
            Left::For(answered) => next = Some(*answered),
        }
    }
}

/// Begins to connect to the proxy at an address, over the accesses that requests have not left out.
pub(super) async fn connect(
    state: &Mpquic,
    tls: &ClientConfig,
    at: IpAddr,
) -> std::result::Result<Keeper, Error> {
    let remote = SocketAddr::new(at, state.quic.port);
    let (name, options) = (&state.quic.name, state.options());
    let accesses = lock(&state.steered).accesses.clone();
    let keeper = Device::keep(remote, name, tls.clone(), options, accesses).await?;
    // Requests may have come meanwhile.
    for name in lock(&state.steered).disabled.clone() {
        let _ = keeper.device().enable(&name, false);
    }
    Ok(keeper)
}

/// Why a proxy is left.
enum Left {
    /// There can be no session.
    Failed(Error),
    /// Move of the proxy to another address.
    Moved,
    /// Silence of the proxy, while this other one answers.
    For(Box<Answered>),
}

/// Takes sessions, after the `first` if there is one, for as long as the proxy is at this address,
/// answers, and there can be any.
async fn follow(
    state: &Mpquic,
    tls: &ClientConfig,
    (keeper, at): (&Keeper, IpAddr),
    mut first: Option<Session>,
    trouble: &mut Trouble,
) -> Left {
    *lock(&state.device) = Some(keeper.device().clone());
    loop {
        let session = match first.take() {
            Some(session) => Ok(session),
            None => tokio::select! {
                session = keeper.session() => session,
                () = state.reached.notified() => match lock(&state.proxies).first() {
                    Some(now) if *now == at => continue,
                    _ => return Left::Moved,
                },
                other = standby::another(state, tls, keeper.device()) => {
                    return Left::For(Box::new(other));
                }
            },
        };
        match session {
            Ok(session) => {
                trouble.is_over(state);
                state.current.send_replace(Some(session.clone()));
                let token = state.number(&session);
                let mut following = std::pin::pin!(state.follow(token, &session));
                let (why, other) = tokio::select! {
                    why = &mut following => (why, None),
                    other = standby::another(state, tls, keeper.device()) => {
                        session.close();
                        (following.await, Some(other))
                    }
                };
                state.current.send_replace(None);
                if let Some(other) = other {
                    return Left::For(Box::new(other));
                }
                tracing::warn!("{why}; connecting again");
                *lock(&state.trouble) = Some(why);
            }
            Err(e @ Error::Io { .. }) => return Left::Failed(e),
            Err(e) => {
                trouble.tell(state, &e);
                // Its name may lead elsewhere by now.
                state.shared.names.changed.notify_one();
            }
        }
    }
}

/// Why there is no session. Once is enough for what stays as it is, but for the time that
/// some tell.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    fn tell(&mut self, state: &Mpquic, e: &Error) {
        if matches!(e, Error::NoAnswer { .. }) {
            // Told as lost contact, sooner.
            *lock(&state.trouble) = None;
            return;
        }
        let text = e.to_string();
        if self.0.as_deref() != Some(&without_digits(&text)) {
            tracing::warn!("{text}; trying again");
            self.0 = Some(without_digits(&text));
        }
        *lock(&state.trouble) = Some(text);
    }

    fn is_over(&mut self, state: &Mpquic) {
        self.0 = None;
        *lock(&state.trouble) = None;
    }
}
