//! Reinjection as in XLINK (Zheng et al.: XLINK: QoE-Driven Multi-Path QUIC Transport
//! in Large-scale Video Services, SIGCOMM 2021, section 5.1): an option of every
//! scheduler. When nothing new can be sent, what blocks the receiver is sent again on
//! a path that delivers it earlier.

use std::time::Duration;

use super::view::taking_part;
use super::{PathView, Paths};
use crate::Time;

/// The oldest packet that the peer has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Oldest {
    /// Ids of the paths that carry it, by number; those that are gone are left out.
    pub on: Paths,
    /// When it was sent first on the last of them.
    pub sent: Time,
    /// Its bytes.
    pub bytes: u64,
}

/// More copies than this say nothing that fewer have not said.
const MOST_COPIES: usize = 2;

/// The path to send `oldest` on again, or none.
pub fn reinject(now: Time, oldest: &Oldest, paths: &[PathView]) -> Option<usize> {
    if oldest.on.iter().count() > MOST_COPIES {
        return None;
    }
    let may = |(i, p): &(usize, &PathView)| p.room() >= oldest.bytes && !oldest.on.contains(*i);
    let all = taking_part(paths).filter(may);
    let (i, p) = all.min_by_key(|(_, p)| p.srtt)?;
    let left = remaining(now, oldest, paths);
    left.is_none_or(|left| p.srtt < left).then_some(i)
}

/// How long the acknowledgement of the packet is to be waited for yet; none if it is
/// overdue, or lost with its path.
fn remaining(now: Time, oldest: &Oldest, paths: &[PathView]) -> Option<Duration> {
    let waited = now.since(oldest.sent);
    let carriers = oldest.on.iter().filter_map(|i| paths.get(i));
    let usable = carriers.filter(|p| p.usable);
    let left = |p: &PathView| (p.srtt + 4 * p.rttvar).checked_sub(waited);
    usable.filter_map(left).min()
}
