//! Units that rules name, whose control groups come and go.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_core::rules::Rule;
use braid_forward::divert::{Divert, find_groups};
use braid_mptcp::cgroup;

use crate::engine::Result;
use crate::state::lock;

/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// Tells rules the groups that their units have now.
pub(super) fn look(divert: &Mutex<Divert>) -> Result<()> {
    let rules: Vec<Rule> = {
        let divert = lock(divert);
        let rules = divert.rules().iter().map(|r| r.steered.rule.clone());
        rules.filter(|r| !r.descriptor.unit.is_empty()).collect()
    };
    if rules.is_empty() {
        return Ok(());
    }
    let top = cgroup::top().map_err(|e| super::failed("find the units of [[rule]]", &e))?;
    let set = lock(divert).set_groups(find_groups(&top, &rules));
    set.map_err(|e| super::failed("go by the units of [[rule]]", &e))
}

/// Follows them, for ever.
pub(super) async fn follow(divert: Arc<Mutex<Divert>>) {
    let mut told = None;
    loop {
        tokio::time::sleep(EVERY).await;
        let trouble = look(&divert).err().map(|e| e.to_string());
        if let Some(e) = trouble.as_ref().filter(|e| told.as_ref() != Some(*e)) {
            tracing::warn!("{e}; it is tried again every second");
        }
        told = trouble;
    }
}
