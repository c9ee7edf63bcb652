//! Assignment of guests to cores. A guest is two processes that take turns at every system
//! call: on one core that costs half of what it does on two.

use std::cell::RefCell;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

/// The cores that may be used, and how many guests are on each.
pub(super) struct Cpus(RefCell<Vec<(usize, usize)>>);

/// A guest's place on a core; given back when it is dropped.
pub(super) struct Place<'a> {
    cpus: &'a Cpus,
    core: Option<usize>,
}

impl Cpus {
    /// Takes the cores of this process. Another run that is started beside this one probably
    /// begins with another core.
    pub(super) fn new() -> Self {
        let set = sched_getaffinity(Pid::this()).unwrap_or_default();
        let mut all: Vec<usize> = (0..CpuSet::count())
            .filter(|&i| set.is_set(i).unwrap_or(false))
            .collect();
        if !all.is_empty() {
            let by = std::process::id() as usize % all.len();
            all.rotate_left(by);
        }
        Self::of(all)
    }

    fn of(all: Vec<usize>) -> Self {
        Self(RefCell::new(all.into_iter().map(|i| (i, 0)).collect()))
    }

    /// The core with the fewest guests.
    pub(super) fn place(&self) -> Place<'_> {
        let mut all = self.0.borrow_mut();
        let least = all.iter_mut().min_by_key(|(_, n)| *n);
        let core = least.map(|(core, n)| {
            *n += 1;
            *core
        });
        Place { cpus: self, core }
    }
}

impl Place<'_> {
    /// Keeps a process, and what it starts from now on, on this core.
    pub(super) fn keep(&self, pid: i32) {
        let mut set = CpuSet::new();
        if let Some(core) = self.core
            && set.set(core).is_ok()
        {
            // Where this is not allowed, it is only slower.
            let _ = sched_setaffinity(Pid::from_raw(pid), &set);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.cpus.0.borrow_mut();
        if let Some((_, n)) = all.iter_mut().find(|(c, _)| Some(*c) == self.core) {
            *n -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_spread_over_the_cores() {
        let cpus = Cpus::of(vec![2, 5]);
        let a = cpus.place();
        let b = cpus.place();
        assert_eq!((a.core, b.core), (Some(2), Some(5)));
        drop(b);
        assert_eq!(cpus.place().core, Some(5));
        assert_eq!(Cpus::of(Vec::new()).place().core, None);
    }
}
