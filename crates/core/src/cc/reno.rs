//! TCP Reno on each path by itself (RFC 5681): the reference. Uncoupled, n
//! paths over one bottleneck take n shares of it.

use super::{Facts, Rule};

/// RFC 5681 on every path, uncoupled.
pub struct Reno;

impl Rule for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    /// RFC 5681 3.1: one packet per window.
    fn increase(&self, paths: &[Facts], me: usize) -> f64 {
        1.0 / paths[me].window
    }
}
