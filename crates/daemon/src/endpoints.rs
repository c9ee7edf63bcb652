//! The endpoints of the kernel's path manager, for an asynchronous program.

use std::sync::Arc;

use braid_mptcp::Error;
use braid_mptcp::pm::{Endpoint, PathManager};
use tokio::sync::Mutex;

/// Changes run on a thread of their own: the kernel answers a deletion 5 to 30 ms after the
/// subflows have ended (it waits for its readers, `synchronize_rcu()`), in which what
/// connections tell and answers to probes are to be heard.
#[derive(Clone, Debug)]
pub(super) struct Endpoints(Arc<Mutex<PathManager>>);

impl Endpoints {
    /// In the namespace of the calling thread.
    pub(super) fn open() -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(PathManager::open()?))))
    }

    /// After all changes that were begun.
    pub(super) async fn list(&self) -> Result<Vec<Endpoint>, Error> {
        self.0.lock().await.endpoints()
    }

    /// Once it has begun it is made to its end, though whoever waits for it gives up.
    pub(super) async fn change(
        &self,
        change: impl FnOnce(&mut PathManager) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let mut pm = Arc::clone(&self.0).lock_owned().await;
        match tokio::task::spawn_blocking(move || change(&mut pm)).await {
            Ok(changed) => changed,
            Err(e) => match e.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends, and with it whoever waits.
                Err(_) => std::future::pending().await,
            },
        }
    }
}
