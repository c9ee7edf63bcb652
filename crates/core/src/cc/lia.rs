//! LIA, the linked increases algorithm (RFC 6356).

use super::{Facts, Rule};

/// RFC 6356. A loss halves the window as in TCP (section 3).
pub struct Lia;

impl Rule for Lia {
    fn name(&self) -> &'static str {
        "lia"
    }

    /// min(alpha / cwnd_total, 1 / cwnd_i) with equation (2)'s
    /// alpha = cwnd_total * max(cwnd_i / rtt_i^2) / (sum cwnd_i / rtt_i)^2, so
    /// that cwnd_total cancels.
    fn increase(&self, paths: &[Facts], me: usize) -> f64 {
        let best = paths.iter().map(|p| p.pace() / p.srtt).fold(0.0, f64::max);
        let sum: f64 = paths.iter().map(Facts::pace).sum();
        (best / (sum * sum)).min(1.0 / paths[me].window)
    }
}
