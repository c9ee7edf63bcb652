//! A plan in numbers.

use std::time::Duration;

use serde::Serialize;

use super::{Attached, Plan, State};

/// A plan in numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanSummary {
    /// Interfaces.
    pub interfaces: usize,
    /// Length.
    pub length_s: f64,
    /// Rate that all interfaces could carry together, on average, interruptions taken off, Mbit/s.
    pub mean_mbps: f64,
    /// Changes of cell, after the first.
    pub handovers: u64,
    /// Changes of address, after the first.
    pub new_addresses: u64,
    /// Time in which no interface is up.
    pub disconnected_s: f64,
}

/// Measures `plan`.
pub fn summary(plan: &Plan) -> PlanSummary {
    let mut out = PlanSummary {
        interfaces: plan.interfaces,
        length_s: plan.length.as_secs_f64(),
        mean_mbps: 0.0,
        handovers: 0,
        new_addresses: 0,
        disconnected_s: 0.0,
    };
    // Per interface the rate while up, and the cell and address it had last.
    let mut rates: Vec<Option<f64>> = vec![None; plan.interfaces];
    let mut last: Vec<Option<&Attached>> = vec![None; plan.interfaces];
    let mut at = Duration::ZERO;
    let mut mbits = 0.0;
    let mut pass = |until: Duration, at: &mut Duration, rates: &[Option<f64>]| {
        let seconds = until.saturating_sub(*at).as_secs_f64();
        mbits += seconds * rates.iter().flatten().sum::<f64>();
        if rates.iter().all(Option::is_none) {
            out.disconnected_s += seconds;
        }
        *at = until;
    };
    for row in &plan.rows {
        pass(row.at, &mut at, &rates);
        let i = row.interface - 1;
        rates[i] = match &row.state {
            State::Up(a) => Some(a.rate.as_mbps()),
            State::Handover(_) | State::Down => None,
        };
        if let State::Up(a) | State::Handover(a) = &row.state
            && let Some(before) = last[i].replace(a)
        {
            out.handovers += u64::from(!before.same_cell(a));
            out.new_addresses += u64::from(before.address != a.address);
        }
    }
    pass(plan.length, &mut at, &rates);
    if out.length_s > 0.0 {
        out.mean_mbps = mbits / out.length_s;
    }
    out
}
