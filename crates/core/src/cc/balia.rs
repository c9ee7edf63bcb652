//! BALIA, balanced linked adaptation
//! (draft-walid-mptcp-congestion-control-04).

use super::{Facts, Rule, coupled_floor};

/// draft-walid-mptcp-congestion-control-04, section 2.
pub struct Balia;

impl Balia {
    /// alpha_r = max x_k / x_r, 1 on the fastest path and above elsewhere.
    pub fn alpha(paths: &[Facts], me: usize) -> f64 {
        let fastest = paths.iter().map(Facts::pace).fold(0.0, f64::max);
        fastest / paths[me].pace()
    }
}

impl Rule for Balia {
    fn name(&self) -> &'static str {
        "balia"
    }

    /// x_r / (rtt_r * (sum x_k)^2) * (1 + alpha_r) / 2 * (4 + alpha_r) / 5.
    fn increase(&self, paths: &[Facts], me: usize) -> f64 {
        let p = &paths[me];
        let alpha = Self::alpha(paths, me);
        let sum: f64 = paths.iter().map(Facts::pace).sum();
        p.pace() / (p.srtt * sum * sum) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }

    /// The window loses half of itself times min(alpha_r, 1.5).
    fn after_loss(&self, paths: &[Facts], me: usize) -> f64 {
        let w = paths[me].window;
        let left = w - w / 2.0 * Self::alpha(paths, me).min(1.5);
        left.max(coupled_floor(paths))
    }
}
