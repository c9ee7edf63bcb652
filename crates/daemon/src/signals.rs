//! Handlers of signals, installed so that none is lost.

use nix::sys::signal::{SigSet, SigmaskHow, Signal};

/// Installs handlers by `install` while this thread holds back the signals that end a daemon or have it
/// read its configuration: one that comes between the handler and what it is to wake would be lost,
/// and whoever sent it would wait for ever.
pub(crate) fn held_back<T>(install: impl FnOnce() -> T) -> T {
    use Signal::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let all: SigSet = [SIGHUP, SIGINT, SIGQUIT, SIGTERM].into_iter().collect();
    // Without it a signal can be lost as before; nothing else depends on it.
    let before = all.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok();
    let installed = install();
    if let Some(before) = before {
        let _ = before.thread_set_mask();
    }
    installed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use nix::sys::signal::raise;

    use super::*;

    #[tokio::test]
    async fn a_signal_that_comes_while_handlers_are_installed_is_taken_by_them() {
        use tokio::signal::unix::{SignalKind, signal};
        let came = Arc::new(AtomicBool::new(false));
        let mut quit = held_back(|| {
            // The thread would end the process by it.
            raise(Signal::SIGQUIT).unwrap();
            came.store(true, Ordering::Relaxed);
            signal(SignalKind::quit()).unwrap()
        });
        quit.recv().await.unwrap();
        assert!(came.load(Ordering::Relaxed));
        // Afterwards it is as before.
        assert!(!SigSet::thread_get_mask().unwrap().contains(Signal::SIGQUIT));
    }
}
