//! How the interfaces of the accesses answer ARP, as they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::api::is_missing;
use super::state::State;
use crate::arp::{Arp, ask_neighbours};
use crate::state::lock;

/// Between two looks for interfaces that came.
const EVERY: Duration = Duration::from_secs(1);

/// Goes on until it is ended, or dropped.
pub(super) struct Following {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Following {
    /// Gives back what was set.
    pub(super) async fn end(self) {
        drop(self.stop);
        let _ = self.task.await;
    }
}

/// Makes the interfaces of all accesses that are there answer ARP for themselves alone.
pub(super) fn follow(state: Arc<State>, mut arp: Arp) -> Following {
    let (stop, mut stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        loop {
            let accesses = lock(&state.steered).accesses.clone();
            let names = accesses.into_iter().filter_map(|a| a.interface);
            let names: BTreeSet<String> = names.filter(|n| !is_missing(n)).collect();
            let new = arp.serve(&names);
            if !new.is_empty() {
                ask_again(&new).await;
            }
            tokio::select! {
                _ = &mut stopped => return,
                () = tokio::time::sleep(EVERY) => {}
            }
        }
    });
    Following { stop, task }
}

async fn ask_again(names: &BTreeSet<String>) {
    let asked = async {
        let handle = braid_link::handle()?;
        let links = braid_link::Links::read(&handle).await?;
        let named = links.interfaces.iter().filter(|i| names.contains(&i.name));
        let indices = named.map(|i| i.index).collect();
        let failed = |e: rtnetlink::Error| super::DaemonError::Failed(e.to_string());
        ask_neighbours(&handle, &indices).await.map_err(failed)
    };
    if let Err(e) = asked.await {
        eprintln!("braid: ask the neighbours again: {e}");
    }
}
