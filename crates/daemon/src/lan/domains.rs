//! Domains that rules name, whose addresses answers of resolvers tell.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use braid_forward::Answers;
use braid_forward::divert::Divert;

use crate::state::lock;

/// Between two looks for addresses that are not valid any more.
const EVERY: Duration = Duration::from_secs(10);

/// Returns who tells the rules of answers that come by.
pub(super) fn listen(divert: &Arc<Mutex<Divert>>) -> Answers {
    let divert = Arc::clone(divert);
    Answers::new(move |answer| {
        if let Err(e) = lock(&divert).learn(answer, Instant::now()) {
            tracing::warn!("learn the addresses of {} for [[rule]]: {e}", answer.name);
        }
    })
}

/// Forgets addresses when they end, for ever.
pub(super) async fn follow(divert: Arc<Mutex<Divert>>) {
    loop {
        tokio::time::sleep(EVERY).await;
        if let Err(e) = lock(&divert).forget_ended(Instant::now()) {
            tracing::warn!("forget addresses of domains of [[rule]]: {e}");
        }
    }
}
