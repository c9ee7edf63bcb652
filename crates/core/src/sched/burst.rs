//! How much leaves at once: each burst is one system call, one wake-up of whoever carries
//! it, and a queue at the bottleneck.

use std::time::Duration;

/// Packets that may always leave at once: an initial window (RFC 9002 7.7).
const LEAST_BURST: u64 = 10;
/// And at most.
pub const MOST_BURST: u64 = 40;
/// UDP payload of all of them, below what the kernel cuts up at a time (GSO).
const MOST_BYTES: u64 = 64_000;
/// On a faster path, so much of its time; Linux's TCP sends a millisecond's worth at once.
const TIME: Duration = Duration::from_micros(500);

/// How many packets of `segment` bytes (above 0) leave at once on a path of `rate` bytes
/// per second.
pub fn burst(rate: f64, segment: u64) -> u64 {
    let packets = (rate * TIME.as_secs_f64()) as u64 / segment;
    let most = MOST_BURST.min(MOST_BYTES / segment);
    packets.max(LEAST_BURST).min(most).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_paths_have_long_bursts_within_bounds() {
        let mbps = |r: f64| r * 1e6 / 8.0;
        let of = |r| burst(mbps(r), 1452);
        assert_eq!([1.0, 100.0, 400.0, 5000.0].map(of), [10, 10, 17, 40]);
        assert_eq!(burst(f64::INFINITY, 1), 40);
        assert_eq!(burst(f64::NAN, 9000), 7);
        assert_eq!(burst(0.0, 100_000), 1);
    }
}
