//! Knowledge that a device has of its accesses before anything was sent on them, as by the
//! power that it receives: in the lab, what they carry, times a factor and an error.

use std::time::Duration;

use braid_api::Expected;
use braid_core::{Rate, seed};
use braid_radio::model::rate_at;
use rand::RngExt;
use rand_distr::StandardNormal;

use crate::scenario::{AccessSetup, Case, Expect};

/// Returns the expected rates of an access at a time since the start.
pub(crate) fn of(case: &Case, access: &str, at: Duration) -> Option<Expected> {
    let expect = case.expect?;
    let setup: &AccessSetup = case.accesses.iter().find(|a| a.name == access)?;
    // In a pause, nothing is known of what comes after it.
    let known = |r: Option<Rate>, way: &str| {
        let rate = r.filter(|r| *r > Rate::ZERO)?;
        // By the rate as well: downloads that begin elsewhere have other errors.
        let label = format!("expect {access} {way} {at:?} {rate}");
        Some(rate.scaled(expect.factor * error(&expect, &label)))
    };
    Some(Expected {
        down: known(rate_at(&setup.down.rate, at), "down"),
        up: known(rate_at(&setup.up.rate, at), "up"),
    })
}

/// A factor around 1.
fn error(expect: &Expect, label: &str) -> f64 {
    let z: f64 = seed::stream(expect.seed, label).sample(StandardNormal);
    10f64.powf(z * expect.error_db / 10.0)
}

/// Returns the expected rates that a daemon is told at its start.
pub(super) fn at_the_start(case: &Case, access: &str) -> Expected {
    of(case, access, Duration::ZERO).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_as_large_as_they_are_said_to_be() {
        let of = |error_db, n| {
            let expect = Expect {
                factor: 1.0,
                error_db,
                seed: 7,
                every: None,
            };
            error(&expect, &format!("{n}"))
        };
        assert!((0..100).all(|n| of(0.0, n) == 1.0));
        let db: Vec<f64> = (0..4000).map(|n| 10.0 * of(3.0, n).log10()).collect();
        let mean = db.iter().sum::<f64>() / db.len() as f64;
        let variance = db.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / db.len() as f64;
        assert!(
            mean.abs() < 0.2 && (variance.sqrt() - 3.0).abs() < 0.15,
            "{mean} {variance}"
        );
        assert_eq!(of(3.0, 1), of(3.0, 1));
    }
}
