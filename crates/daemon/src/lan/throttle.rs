//! Lines of the log, of which hosts may cause many.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Seconds between two lines of the log about destinations that cannot be connected.
const TOLD_EVERY: u64 = 10;

/// Log of destinations that cannot be connected: hosts ask for many.
#[derive(Clone)]
pub(super) struct Throttle(Arc<Told>);

struct Told {
    begin: Instant,
    /// Seconds since the begin before which nothing is told.
    next: AtomicU64,
    suppressed: AtomicU64,
}

impl Default for Throttle {
    fn default() -> Self {
        Self(Arc::new(Told {
            begin: Instant::now(),
            next: AtomicU64::new(0),
            suppressed: AtomicU64::new(0),
        }))
    }
}

impl Throttle {
    /// Returns what tells it.
    pub(super) fn told(self) -> impl Fn(String) + Clone + Send + 'static {
        move |what| {
            let told = &self.0;
            let now = told.begin.elapsed().as_secs();
            let next = told.next.load(Ordering::Relaxed);
            if now < next {
                told.suppressed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            told.next.store(now + TOLD_EVERY, Ordering::Relaxed);
            match told.suppressed.swap(0, Ordering::Relaxed) {
                0 => tracing::warn!("{what}"),
                n => tracing::warn!("{what} (and {n} others before)"),
            }
        }
    }
}
