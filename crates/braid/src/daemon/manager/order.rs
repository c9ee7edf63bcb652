//! Which accesses carry and which wait, as requests have it.

use braid_core::api::{Priorities, Role};

use super::super::DaemonError;
use super::Manager;

impl Manager {
    /// Has the accesses of these names, and no others, be used as backups, by the
    /// same means (MP_PRIO): their weight is 0.
    pub(in super::super) async fn exclude(&mut self, names: &[&str]) -> Result<(), DaemonError> {
        let mut changed = false;
        for access in &mut self.settings.accesses {
            let excluded = names.contains(&access.name.as_str());
            changed |= access.excluded != excluded;
            access.excluded = excluded;
        }
        if !changed {
            return Ok(());
        }
        self.view = self.kernel.view().await?;
        self.apply().await
    }

    /// Changes the order of the accesses; returns that of all.
    pub(in super::super) async fn prioritise(
        &mut self,
        change: &Priorities,
    ) -> Result<Priorities, DaemonError> {
        self.changeable()?;
        let before = self.settings.accesses.clone();
        for access in &mut self.settings.accesses {
            if let Some(priority) = change.0.get(&access.name) {
                access.priority = *priority;
            }
        }
        if self.settings.accesses != before {
            self.view = self.kernel.view().await?;
            self.apply().await?;
            self.keep();
        }
        let all = self.settings.accesses.iter();
        let all = all.map(|a| (a.name.clone(), a.priority));
        Ok(Priorities(all.collect()))
    }

    /// Refuses where accesses cannot be changed.
    pub(super) fn changeable(&self) -> Result<(), DaemonError> {
        if self.role == Role::Proxy {
            return Err(DaemonError::Refused(
                "an access is changed at the device, which has it; this is the proxy".into(),
            ));
        }
        if self.kernel.pm.is_none() {
            return Err(DaemonError::Refused(
                "the engine \"tcp\" has one fixed access: nothing can be changed".into(),
            ));
        }
        Ok(())
    }

    /// Before it begins: the same, so that nothing flaps.
    pub(in super::super) fn begin_without(&mut self, names: &[&str]) {
        for access in &mut self.settings.accesses {
            access.excluded = names.contains(&access.name.as_str());
        }
    }
}
