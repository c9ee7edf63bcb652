//! Bytes that accesses have carried since the daemon began, and the sum of all.

use std::iter::Sum;

use serde::Serialize;

/// Payload bytes since the daemon began; absent where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Totals {
    /// Sent, retransmissions included.
    pub(super) sent_bytes: Option<u64>,
    /// Received.
    pub(super) received_bytes: Option<u64>,
}

/// Returns the sum of what is known; `None` where nothing is.
pub(super) fn sum<T: Sum<T>>(all: impl Iterator<Item = Option<T>>) -> Option<T> {
    let mut known = all.flatten().peekable();
    known.peek().is_some().then_some(())?;
    Some(known.sum())
}

/// Writes an amount of bytes with its unit (powers of 1000), with three digits or four.
pub(super) fn amount(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1e3;
    let mut unit = 0;
    // What rounds to 1000 of a unit is 1 of the next.
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{value:.decimals$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_have_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.00 kB"),
            (12_345, "12.3 kB"),
            (999_499, "999 kB"),
            (999_500, "1.00 MB"),
            (1_234_567_890, "1.23 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(amount(bytes), text);
        }
    }

    #[test]
    fn a_sum_leaves_out_what_is_not_known() {
        assert_eq!(sum([Some(1), None, Some(2)].into_iter()), Some(3));
        assert_eq!(sum([None::<u64>, None].into_iter()), None);
    }

    proptest! {
        #[test]
        fn an_amount_is_within_half_a_percent(bytes: u64) {
            let text = amount(bytes);
            let (number, unit) = text.split_once(' ').unwrap();
            let power = ["B", "kB", "MB", "GB", "TB", "PB", "EB"].iter().position(|u| *u == unit);
            let read = number.parse::<f64>().unwrap() * 1e3f64.powi(power.unwrap() as i32);
            prop_assert!((read - bytes as f64).abs() <= 0.005 * bytes as f64, "{text}");
            prop_assert!(number.len() <= 4, "{text}");
        }
    }
}
