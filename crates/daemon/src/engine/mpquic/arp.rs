//! How the interfaces of the accesses answer ARP, as they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use braid_api::Engine as Kind;

use super::Mpquic;
use super::device::is_missing;
use crate::DaemonError;
use crate::arp::ask_neighbours;
use crate::state::lock;

/// Between two looks for interfaces that came.
const EVERY: Duration = Duration::from_secs(1);

/// Makes the interfaces of all accesses that are there answer ARP for themselves alone, for ever.
pub(super) async fn follow(state: Arc<Mpquic>) -> DaemonError {
    loop {
        let new = state.shared.answer_arp(Kind::Mpquic, interfaces(&state));
        if !new.is_empty() {
            ask_again(&new).await;
        }
        tokio::time::sleep(EVERY).await;
    }
}

/// The interfaces that serve accesses: as the device has found them, and before there is one
/// those that are named in full.
fn interfaces(state: &Mpquic) -> BTreeSet<String> {
    if let Some(device) = &*lock(&state.device) {
        return device.interfaces();
    }
    let accesses = lock(&state.steered).accesses.clone();
    let names = accesses.into_iter().filter_map(|a| a.interface);
    names.filter(|n| !is_missing(n)).collect()
}

async fn ask_again(names: &BTreeSet<String>) {
    let asked = async {
        let handle = braid_access::links::handle()?;
        let links = braid_access::links::Links::read(&handle).await?;
        let named = links.interfaces.iter().filter(|i| names.contains(&i.name));
        let indices = named.map(|i| i.index).collect();
        let failed = |e: rtnetlink::Error| DaemonError::Failed(e.to_string());
        ask_neighbours(&handle, &indices).await.map_err(failed)
    };
    if let Err(e) = asked.await {
        tracing::warn!("ask the neighbours again: {e}");
    }
}
