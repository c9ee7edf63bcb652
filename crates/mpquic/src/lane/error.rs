//! Errors of a peer that does not keep to the protocol of the lane.

use super::wire::Malformed;

/// The peer does not keep to the lane's protocol: the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// Datagram that cannot be read.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Frame that can be read, and is not allowed.
    #[error(transparent)]
    Violation(#[from] Violation),
    /// Acknowledgement of what never left.
    #[error("the peer acknowledged what was never sent")]
    NeverSent,
    /// Too many paths that the peer uses at a time.
    #[error("the peer uses more paths than it may")]
    ManyPaths,
}

/// Frame that can be read, and is not allowed: `the peer` and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer {0}")]
pub struct Violation(pub(super) &'static str);
