//! Calls that keep a thread for long, taken off the daemon's one thread.

/// Runs `call` on a thread of its own, in the network namespace of the calling thread: threads
/// begin in that of the thread that makes them. Inside a runtime. Once it has begun it is made
/// to its end, though whoever waits for it gives up.
pub(crate) async fn run<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(call).await {
        Ok(done) => done,
        Err(e) => match e.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime ends, and with it whoever waits.
            Err(_) => std::future::pending().await,
        },
    }
}
