//! Credit that each end begins with (RFC 9000 4.1): it is not negotiated.

/// Bytes of one stream that may wait for those before them.
pub(super) const WINDOW: u64 = 16 << 20;
/// Bytes of all streams that may wait to be read.
pub(super) const ALL_WINDOW: u64 = 64 << 20;
