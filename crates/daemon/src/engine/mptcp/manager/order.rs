//! Order of the accesses as requests have it: which are used, carry and wait. What the kernel
//! rejects of a request is taken back.

use braid_api::{AccessChange, Priorities};

use super::Manager;
use crate::DaemonError;
use crate::engine::Result;

impl Manager {
    /// Excludes the accesses of these names, and no others: their weight is 0. They are used as
    /// backups, by the same means (MP_PRIO).
    pub(crate) async fn exclude(&mut self, names: &[&str]) -> Result<()> {
        let before = self.settings.accesses.clone();
        self.begin_without(names);
        match self.settings.accesses == before {
            true => Ok(()),
            false => self.apply_or_return_to(before).await,
        }
    }

    /// Changes the use of an access.
    pub(crate) async fn change(&mut self, name: &str, change: AccessChange) -> Result<()> {
        self.view = self.kernel.view(&self.config.proxy).await?;
        let before = self.settings.accesses.clone();
        let mut all = self.settings.accesses.iter_mut();
        let Some(access) = all.find(|a| a.name == name) else {
            return Ok(());
        };
        let unchanged = access.clone();
        access.backup = change.backup.unwrap_or(access.backup);
        access.enabled = change.enabled.unwrap_or(access.enabled);
        if *access == unchanged {
            return Ok(());
        }
        let mut there = self.view.interfaces.iter();
        let missing = !there.any(|n| access.interface.matches(&n.name));
        if access.enabled && missing && !self.recovers() {
            self.settings.accesses = before;
            return Err(DaemonError::Refused(format!(
                "access \"{name}\": its interface does not exist now: create it first"
            )));
        }
        self.apply_or_return_to(before).await
    }

    /// Changes the order of the accesses.
    pub(crate) async fn prioritise(&mut self, change: &Priorities) -> Result<()> {
        let before = self.settings.accesses.clone();
        for access in &mut self.settings.accesses {
            if let Some(priority) = change.0.get(&access.name) {
                access.priority = *priority;
            }
        }
        match self.settings.accesses == before {
            true => Ok(()),
            false => self.apply_or_return_to(before).await,
        }
    }

    /// Before it begins: the same, so that nothing flaps.
    pub(crate) fn begin_without(&mut self, names: &[&str]) {
        for access in &mut self.settings.accesses {
            access.excluded = names.contains(&access.name.as_str());
        }
    }
}
