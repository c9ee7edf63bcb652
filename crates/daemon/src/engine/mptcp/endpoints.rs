//! The endpoints of the kernel's path manager, for an asynchronous program.

use std::sync::Arc;

use braid_mptcp::Error;
use braid_mptcp::pm::{Endpoint, PathManager};
use tokio::sync::Mutex;

use crate::blocking;

/// Changes run on a thread of their own: the kernel answers a deletion 5 to 30 ms after the
/// subflows have ended (it waits for its readers, `synchronize_rcu()`), in which what
/// connections tell and answers to probes are to be heard.
#[derive(Clone, Debug)]
pub(crate) struct Endpoints(Arc<Mutex<PathManager>>);

impl Endpoints {
    /// In the namespace of the calling thread.
    pub(crate) fn open() -> Result<Self, Error> {
        Ok(Self(Arc::new(Mutex::new(PathManager::open()?))))
    }

    /// After all changes that were begun.
    pub(crate) async fn list(&self) -> Result<Vec<Endpoint>, Error> {
        self.0.lock().await.endpoints()
    }

    /// Once it has begun it is made to its end, though whoever waits for it gives up.
    pub(crate) async fn change(
        &self,
        change: impl FnOnce(&mut PathManager) -> Result<(), Error> + Send + 'static,
    ) -> Result<(), Error> {
        let mut pm = Arc::clone(&self.0).lock_owned().await;
        blocking::run(move || change(&mut pm)).await
    }
}
