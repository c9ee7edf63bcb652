//! The endpoints of the kernel's path manager, for an asynchronous program.

use std::sync::{Arc, Mutex};

use braid_mptcp::Error;
use braid_mptcp::pm::{Endpoint, PathManager};

use super::state::lock;

/// Changes run on a thread of their own: the kernel answers a deletion 5 to 30 ms after the
/// subflows have ended (it waits for its readers, `synchronize_rcu()`), in which events,
/// probes and requests are to be heard.
#[derive(Clone, Debug)]
pub(super) struct Endpoints(Arc<Mutex<PathManager>>);

impl Endpoints {
    /// In the namespace of the calling thread.
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(PathManager::open()?))))
    }

    pub(super) fn list(&self) -> Result<Vec<Endpoint>, Error> {
        lock(&self.0).endpoints()
    }

    /// Whoever waits for it may give up; the change is made all the same.
    pub(super) async fn change(
        &self,
        change: impl FnOnce(&mut PathManager) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let pm = Arc::clone(&self.0);
        match tokio::task::spawn_blocking(move || change(&mut lock(&pm))).await {
            Ok(changed) => changed,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and with it whoever waits.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
