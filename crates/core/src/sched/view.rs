//! View that schedulers have of paths, and questions that several of them ask.

use std::time::Duration;

use super::{Until, burst};

/// A path, as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathView {
    /// Number of the path: the same as long as it lives, and never that of another.
    pub id: u32,
    /// Whether it can carry data: validated, and its access is not lost.
    pub usable: bool,
    /// To be used only while no other is usable (RFC 8684 3.3.8,
    /// draft-ietf-quic-multipath, PATH_STATUS_BACKUP).
    pub backup: bool,
    /// Its place in an order, the least first (3GPP TS 23.501 5.32.8).
    pub priority: u32,
    /// Its share, 0 or more; of 0, it carries only when no other can.
    pub weight: f64,
    /// Congestion window, bytes.
    pub window: u64,
    /// Bytes on their way.
    pub in_flight: u64,
    /// Bytes of a full packet, above 0.
    pub segment: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Its mean deviation (RFC 9002 5.3).
    pub rttvar: Duration,
    /// Packets lost since it began.
    pub lost: u64,
    /// Whether it is above a threshold of the class that is asked about ([`super::ThresholdGate`]).
    pub exceeds: bool,
}

impl PathView {
    /// Bytes that the window has room for.
    pub fn room(&self) -> u64 {
        self.window.saturating_sub(self.in_flight)
    }

    /// Whether a full packet fits into its window.
    pub fn has_room(&self) -> bool {
        self.room() >= self.segment
    }

    /// Bytes per second: a window in every round trip; 0 before a round trip is known.
    pub fn rate(&self) -> f64 {
        let srtt = self.srtt.as_secs_f64();
        if srtt > 0.0 {
            self.window as f64 / srtt
        } else {
            0.0
        }
    }

    /// Bytes that leave at once ([`burst`]).
    pub fn burst(&self) -> u64 {
        burst(self.rate(), self.segment) * self.segment
    }

    /// Congestion window in packets.
    pub(super) fn packets(&self) -> f64 {
        self.window as f64 / self.segment as f64
    }
}

/// Data that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Bytes that wait.
    pub waiting: u64,
    /// Bytes from the first that the peer has not acknowledged to the last that it
    /// has room for.
    pub send_window: u64,
}

/// Whether `p` takes part: usable, and no backup where others are usable.
pub fn takes_part(p: &PathView, backups: bool) -> bool {
    p.usable && p.backup == backups
}

/// Whether only backups are left.
pub fn only_backups(paths: &[PathView]) -> bool {
    !paths.iter().any(|p| p.usable && !p.backup)
}

/// Returns the paths that take part, with their places.
pub(super) fn taking_part(paths: &[PathView]) -> impl Iterator<Item = (usize, &PathView)> {
    let backups = only_backups(paths);
    let all = paths.iter().enumerate();
    all.filter(move |(_, p)| takes_part(p, backups))
}

/// The path of the least smoothed round-trip time that takes part, with room if
/// that is asked for.
pub(super) fn fastest(paths: &[PathView], with_room: bool) -> Option<usize> {
    let may = taking_part(paths).filter(|(_, p)| !with_room || p.has_room());
    may.min_by_key(|(_, p)| p.srtt).map(|(i, _)| i)
}

/// The fastest path, and the fastest of those that have room; or what to wait for.
pub(super) fn fastest_and_next(paths: &[PathView]) -> Result<(usize, usize), Until> {
    let fast = fastest(paths, false).ok_or(Until::Path)?;
    let next = fastest(paths, true).ok_or(Until::AnyRoom)?;
    Ok((fast, next))
}
