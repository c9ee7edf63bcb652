//! Admission of attempts to connect, when there are many at a time.
//!
//! Whoever forges addresses can begin any number of handshakes and finish none. Above
//! [`RETRY_ABOVE`] of them, a peer proves that it receives at its address before anything
//! is kept for it (RFC 9000 8.1.2); above [`MAX_HALF_OPEN`], it is refused.

/// Handshakes under way for which nobody has to prove an address.
pub const RETRY_ABOVE: usize = 64;
/// Handshakes under way at most.
pub const MAX_HALF_OPEN: usize = 1024;

/// Verdict on an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// A connection begins.
    Accept,
    /// The peer is to come again with the token that it is sent; nothing is kept.
    Retry,
    /// The peer is told that there is no room.
    Refuse,
}

/// For an attempt while `half_open` others have not finished their handshake; `validated`:
/// it brings a token that was sent to its address.
pub(crate) fn admit(half_open: usize, validated: bool) -> Verdict {
    match (half_open, validated) {
        (..RETRY_ABOVE, _) => Verdict::Accept,
        (_, false) => Verdict::Retry,
        (..MAX_HALF_OPEN, true) => Verdict::Accept,
        (_, true) => Verdict::Refuse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_have_to_prove_their_address_and_too_many_are_refused() {
        use Verdict::*;
        let of = |half_open| [false, true].map(|validated| admit(half_open, validated));
        assert_eq!(of(0), [Accept, Accept]);
        assert_eq!(of(RETRY_ABOVE - 1), [Accept, Accept]);
        assert_eq!(of(RETRY_ABOVE), [Retry, Accept]);
        assert_eq!(of(MAX_HALF_OPEN - 1), [Retry, Accept]);
        assert_eq!(of(MAX_HALF_OPEN), [Retry, Refuse]);
    }
}
