//! Order of the accesses as requests have it: which are used, carry and wait. What the kernel
//! rejects of a request is taken back, and not saved.

use braid_api::{AccessChange, Priorities, Role};

use super::super::DaemonError;
use super::Manager;

impl Manager {
    /// Excludes the accesses of these names, and no others: their weight is 0. They are used as
    /// backups, by the same means (MP_PRIO).
    pub(in super::super) async fn exclude(&mut self, names: &[&str]) -> Result<(), DaemonError> {
        let before = self.settings.accesses.clone();
        self.begin_without(names);
        match self.settings.accesses == before {
            true => Ok(()),
            false => self.apply_or_return_to(before).await,
        }
    }

    /// Changes access number `i`; says whether anything changed.
    pub(in super::super) async fn change(
        &mut self,
        i: usize,
        change: AccessChange,
    ) -> Result<bool, DaemonError> {
        self.changeable()?;
        self.view = self.kernel.view(&self.config.proxy).await?;
        let before = self.settings.accesses.clone();
        let access = &mut self.settings.accesses[i];
        access.backup = change.backup.unwrap_or(access.backup);
        access.enabled = change.enabled.unwrap_or(access.enabled);
        if *access == before[i] {
            return Ok(false);
        }
        let mut there = self.view.interfaces.iter();
        let missing = !there.any(|n| access.interface.matches(&n.name));
        if access.enabled && missing && !self.recovers() {
            self.settings.accesses = before;
            return Err(DaemonError::Refused(format!(
                "access \"{}\": its interface does not exist now: create it first",
                self.settings.accesses[i].name
            )));
        }
        self.apply_or_return_to(before).await?;
        self.keep();
        Ok(true)
    }

    /// Saves what requests changed, so that it outlives this process if that is killed.
    pub(super) fn keep(&self) {
        self.requests.keep(&self.config.settings(), &self.settings);
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
            self.apply_or_return_to(before).await?;
            self.keep();
        }
        let all = self.settings.accesses.iter();
        let all = all.map(|a| (a.name.clone(), a.priority));
        Ok(Priorities(all.collect()))
    }

    /// Refuses where accesses cannot be changed.
    fn changeable(&self) -> Result<(), DaemonError> {
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
