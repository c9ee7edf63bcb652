//! OLIA, the opportunistic linked increases algorithm
//! (draft-khalili-mptcp-congestion-control-05).

use super::{Facts, Rule, coupled_floor, halved};

/// draft-khalili-mptcp-congestion-control-05. A loss halves the window as in
/// TCP, down to one packet where there are several paths (section 3).
pub struct Olia;

impl Olia {
    /// alpha_r of section 3: positive on the presumably best paths whose
    /// window is not the largest, negative on those of the largest window as
    /// long as there are any of the former. They sum to 0 over all paths.
    pub fn alpha(paths: &[Facts], me: usize) -> f64 {
        let widest = paths.iter().map(|p| p.window).fold(0.0, f64::max);
        let is_max_w = |p: &Facts| p.window >= widest;
        let is_collected =
            |p: &Facts| !is_max_w(p) && paths.iter().all(|q| quality(p) >= quality(q));
        let collected = paths.iter().filter(|p| is_collected(p)).count();
        let n = paths.len() as f64;
        if collected == 0 {
            0.0
        } else if is_collected(&paths[me]) {
            1.0 / (n * collected as f64)
        } else if is_max_w(&paths[me]) {
            let max_w = paths.iter().filter(|p| is_max_w(p)).count();
            -1.0 / (n * max_w as f64)
        } else {
            0.0
        }
    }
}

/// Measure that best_paths maximise (section 2): l * l / rtt.
fn quality(p: &Facts) -> f64 {
    let l = p.interval_bytes as f64;
    l * l / p.srtt
}

impl Rule for Olia {
    fn name(&self) -> &'static str {
        "olia"
    }

    /// Equation (1).
    fn increase(&self, paths: &[Facts], me: usize) -> f64 {
        let p = &paths[me];
        let sum: f64 = paths.iter().map(Facts::pace).sum();
        p.pace() / p.srtt / (sum * sum) + Self::alpha(paths, me) / p.window
    }

    fn after_loss(&self, paths: &[Facts], me: usize) -> f64 {
        halved(paths, me, coupled_floor(paths))
    }
}

/// Counts the bytes acknowledged between losses on one path (section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    before: u64,
    since: u64,
}

impl Interval {
    /// l_1 between the last two losses and l_2 since the last one, bytes.
    pub fn new(between: u64, since: u64) -> Self {
        Self {
            before: between,
            since,
        }
    }

    /// An acknowledgement of `bytes` arrived.
    pub fn on_ack(&mut self, bytes: u64) {
        self.since = self.since.saturating_add(bytes);
    }

    /// A loss was seen.
    pub fn on_loss(&mut self) {
        self.before = self.since;
        self.since = 0;
    }

    /// l = max(l_1, l_2), bytes.
    pub fn bytes(&self) -> u64 {
        self.before.max(self.since)
    }
}
