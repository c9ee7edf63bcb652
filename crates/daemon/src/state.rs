//! Locks and the clock: what everything that shares state needs.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use braid_access::clock::{now, ticked};

/// Locks, even after a panic in another request: what that left is still consistent, since
/// every change is made in one step.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}
