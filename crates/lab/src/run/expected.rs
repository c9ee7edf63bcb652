//! What a device knows of its accesses before anything was sent on them, as by the power
//! that it receives: in the lab, what they carry, times a factor.

use std::time::Duration;

use braid_core::Rate;
use braid_core::api::Expected;
use serde_json::{Value, json};

use crate::scenario::{AccessSetup, Case};

/// Of an access at a time since the start.
pub(super) fn of(case: &Case, access: &str, at: Duration) -> Option<Expected> {
    let factor = case.expect?;
    let setup: &AccessSetup = case.accesses.iter().find(|a| a.name == access)?;
    // In a pause, nothing is known of what comes after it.
    let known = |r: Option<Rate>| r.filter(|r| *r > Rate::ZERO).map(|r| r.scaled(factor));
    Some(Expected {
        down: known(setup.down.rate.at(at)),
        up: known(setup.up.rate.at(at)),
    })
}

/// As a daemon is told of it at its start.
pub(super) fn at_the_start(case: &Case, access: &str) -> Option<Value> {
    let expected = of(case, access, Duration::ZERO).filter(|e| !e.is_unknown())?;
    let mut out = json!({});
    for (way, rate) in [("down", expected.down), ("up", expected.up)] {
        if let Some(rate) = rate {
            out[way] = json!(rate.to_string());
        }
    }
    Some(out)
}
