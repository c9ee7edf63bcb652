//! Other proxies, which are asked while the one in use does not answer.

use std::net::IpAddr;
use std::time::Duration;

use braid_mpquic::{ClientConfig, Device, Error, Keeper, Session};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::sleep;

use super::Mpquic;
use super::device::connect;
use crate::proxies::Other;
use crate::state::lock;

/// Time without an answer after which others are asked.
const ASK: Duration = Duration::from_millis(500);
/// Time for which the one in use does not answer, though another one has, after which that takes the
/// place: connections over the session end with it, so that it is not for an outage which all
/// accesses have in common.
const REPLACE: Duration = Duration::from_millis(500);
/// Before they are asked again where none can be, as while no name is resolved.
const AGAIN: Duration = Duration::from_secs(1);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(50);

/// Proxy that has answered, with the session.
pub(super) struct Answered {
    pub(super) keeper: Keeper,
    pub(super) session: Session,
    pub(super) at: IpAddr,
}

/// Waits until the proxy of a device does not answer and another one does, which is in use from then
/// on.
pub(super) async fn another(state: &Mpquic, tls: &ClientConfig, device: &Device) -> Answered {
    let proxies = &state.shared.proxies;
    if proxies.is_alone() {
        return std::future::pending().await;
    }
    loop {
        lost_for(device, ASK).await;
        let asked = async {
            let (other, answered) = loop {
                match first(state, tls, proxies.others()).await {
                    Some(answered) => break answered,
                    None => sleep(AGAIN).await,
                }
            };
            sleep(REPLACE).await;
            (other, answered)
        };
        let (other, answered) = tokio::select! {
            asked = asked => asked,
            () = found(device) => continue,
        };
        *lock(&state.proxies) = proxies.addresses(other.place);
        proxies.turn_to(other.place);
        return answered;
    }
}

/// Waits until nothing has come from a device's proxy for a time.
async fn lost_for(device: &Device, time: Duration) {
    while device.lost_for().is_none_or(|lasts| lasts < time) {
        sleep(LOOK).await;
    }
}

/// Waits until a device's proxy answers.
async fn found(device: &Device) {
    while device.lost_for().is_some() {
        sleep(LOOK).await;
    }
}

/// Returns the first that answers; `None` where none can be asked.
async fn first(
    state: &Mpquic,
    tls: &ClientConfig,
    others: Vec<Other>,
) -> Option<(Other, Answered)> {
    let all = others.into_iter().map(|other| async move {
        let answered = ask(state, tls, other.address).await;
        (other, answered)
    });
    let mut all: FuturesUnordered<_> = all.collect();
    while let Some((other, answered)) = all.next().await {
        if let Ok(answered) = answered {
            return Some((other, answered));
        }
    }
    None
}

/// Connects to a proxy, for as long as it takes.
async fn ask(state: &Mpquic, tls: &ClientConfig, at: IpAddr) -> Result<Answered, Error> {
    let keeper = connect(state, tls, at).await?;
    loop {
        match keeper.session().await {
            Ok(session) => {
                return Ok(Answered {
                    keeper,
                    session,
                    at,
                });
            }
            Err(e @ Error::Io { .. }) => return Err(e),
            // It is tried on.
            Err(_) => {}
        }
    }
}
