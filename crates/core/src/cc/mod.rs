//! Congestion control over several paths: pure update rules.
//!
//! A rule sees the [`Facts`] of every path of one connection in a slice and
//! says how the window of one of them moves: per acknowledged packet in
//! congestion avoidance, after a loss, and at the end of a round trip. It
//! keeps nothing itself, so paths are coupled by what stands in the slice
//! alone. Slow start and the counting of a window are the same for all of them
//! and stand in [`Window`].
//!
//! Windows are in packets, times in seconds, all `f64`: the specifications
//! are written so, and the error against exact rationals stays below 1e-12
//! (held against `crates/core/vectors/cc`). The kernel's forms in
//! `kernel/mptcp/cc_math_*.h` are integers and are held against the same
//! vectors. To add one: a file here, a line in [`RULES`], vectors beside.
//!
//! [`Swing`] is no such rule: it acts on one path alone, and keeps what it has seen there.

mod balia;
mod cubic;
mod lia;
mod olia;
mod reno;
mod swing;
#[cfg(test)]
mod tests;
mod window;
mod wvegas;

pub use balia::Balia;
pub use lia::Lia;
pub use olia::{Interval, Olia};
pub use reno::Reno;
pub use swing::Swing;
pub use window::Window;
pub use wvegas::{Round, RoundState, Wvegas};

/// Measurements that one path of a connection shows to the rules of all its paths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// Congestion window, packets, above 0. While the path recovers from a
    /// loss, its slow-start threshold: a window in recovery says nothing about
    /// the path (RFC 5681 3.2).
    pub window: f64,
    /// Smoothed round-trip time, seconds, above 0.
    pub srtt: f64,
    /// OLIA's l: bytes acknowledged between losses, see [`Interval`].
    pub interval_bytes: u64,
    /// wVegas's rate in packets per second as of the last round in which the
    /// path had alpha packets or more queued; 0 before.
    pub rate: f64,
}

impl Facts {
    /// Facts of a path of which only window (packets) and round-trip time
    /// (seconds) are known.
    pub fn new(window: f64, srtt: f64) -> Self {
        Self {
            window,
            srtt,
            interval_bytes: 0,
            rate: 0.0,
        }
    }

    /// x = w / rtt, packets per second.
    fn pace(&self) -> f64 {
        self.window / self.srtt
    }
}

/// One congestion control algorithm.
///
/// In every method `paths` are the established paths of the connection that
/// use this algorithm, and `paths[me]` is the one that is asked about; `me`
/// out of range is a mistake of the caller and panics.
pub trait Rule: Send + Sync {
    /// Its name, as in scenarios and in `net.ipv4.tcp_congestion_control`.
    fn name(&self) -> &'static str;

    /// By how many packets the window grows for one acknowledged packet in
    /// congestion avoidance; OLIA's may be negative.
    fn increase(&self, paths: &[Facts], me: usize) -> f64;

    /// The slow-start threshold, packets, after a loss.
    fn after_loss(&self, paths: &[Facts], me: usize) -> f64 {
        halved(paths, me, 2.0)
    }

    /// Returns the state after the end of a round trip, for rules that act on delay;
    /// `None` for the others.
    fn end_of_round(&self, _paths: &[Facts], _me: usize, _round: &Round) -> Option<RoundState> {
        None
    }
}

/// Every rule, by name.
pub const RULES: &[&dyn Rule] = &[&Reno, &Lia, &Olia, &Balia, &Wvegas::DEFAULT];

/// The rule called `name`.
pub fn by_name(name: &str) -> Option<&'static dyn Rule> {
    RULES.iter().copied().find(|r| r.name() == name)
}

/// Half the window, as of RFC 5681 equation (4), at least `floor` packets.
fn halved(paths: &[Facts], me: usize, floor: f64) -> f64 {
    (paths[me].window / 2.0).max(floor)
}

/// The least slow-start threshold of OLIA and BALIA: one packet where several
/// paths are there to carry the rest, else TCP's two.
fn coupled_floor(paths: &[Facts]) -> f64 {
    if paths.len() > 1 { 1.0 } else { 2.0 }
}
