//! The file is read again, on SIGHUP.

use braid_api::EventKind;

use super::DaemonError;
use super::manager::Manager;
use super::state::{State, lock, now, weights};

impl State {
    /// Reads the configuration again. One that cannot be had changes nothing.
    pub(super) async fn reload(&self) {
        let mut manager = self.manager.lock().await;
        let error = self.read_again(&mut manager).await.err();
        let error = error.map(|e| e.to_string());
        if let Some(e) = &error {
            eprintln!("braid: {e}");
        }
        lock(&self.config_error).clone_from(&error);
        self.renamed(&manager);
        self.wake.notify_one();
        self.log_event(now(), None, EventKind::Configured { error });
    }

    async fn read_again(&self, manager: &mut Manager) -> Result<(), DaemonError> {
        let before = manager.config().buffers;
        let config = manager.read_again()?;
        // What may be taken by others comes first.
        self.answerer.lock().await.serve(self.role, &config).await?;
        let adopted = manager.adopt(config).await;
        let config = manager.config();
        // In any case: the manager goes by them.
        lock(&self.accesses).clone_from(&config.accesses);
        *lock(&self.weights) = weights(&config.accesses);
        lock(&self.own_weights).clear();
        adopted?;
        // What others have set since stays, if the file says the same.
        if config.buffers != before {
            lock(&self.engine).widen(&config.buffers)?;
            lock(&self.engine).shorten(&config.buffers);
        }
        lock(&self.engine).announce(&config.announce)?;
        self.set_up(manager, false)
    }
}
