//! The scenario `appearing` on the virtual clock: after each coming and going of the
//! second cell, what the application gets is back above 90 % of the capacity within a
//! second.
//!
//! CUBIC fills the queue of 100 ms until it overflows. The packet that is lost then is there a round
//! trip later, and what comes behind it waits for that. Where the second ends in between (as it did
//! with one that was lost 0.05 s before), so much less has been read in it, and the mean of the
//! seconds with as many links decides.

use crate::support::{self, lab, summary};

/// From when to when in seconds, and what both links carry then, Mbit/s: a second after
/// each change until the next.
const AFTER: [(u32, u32, f64); 5] = [
    (1, 2, 4.0),
    (3, 4, 12.0),
    (5, 6, 4.0),
    (7, 8, 12.0),
    (9, 10, 4.0),
];

/// Data that waits for a packet that is sent again, a queue of it, in seconds of the capacity.
const WAITING: f64 = 0.1;

/// The shipped scenario, whose first case ends after each change in turn.
fn scenario() -> String {
    let shipped = include_str!("../../../../../scenarios/appearing.toml");
    let mut parts = shipped.split("[[case]]");
    let (links, case) = (parts.next().unwrap(), parts.next().unwrap());
    assert!(case.contains("name = \"MP-QUIC cubic\""), "{case}");
    AFTER.iter().fold(links.to_owned(), |text, (from, to, _)| {
        let named = case.replace("MP-QUIC cubic", &format!("from {from} s"));
        format!("{text}[[case]]{named}duration = \"{to} s\"\nwarmup = \"{from} s\"\n")
    })
}

#[test]
fn the_sum_is_followed_within_a_second() {
    let dir = support::folder();
    let mut command = lab::of_text(dir.path(), &scenario());
    if lab::on_the_virtual_clock(dir.path(), &mut command).is_none() {
        return;
    }
    let cases = summary(&dir.path().join("out")).cases;
    assert_eq!(cases.len(), AFTER.len());
    for (case, (from, _, mbps)) in cases.iter().zip(AFTER) {
        assert_eq!((case.intact, &case.failed), (Some(true), &None));
        let carried = case.goodput_mbps;
        assert!(
            carried > (0.9 - WAITING) * mbps,
            "{carried} of {mbps} Mbit/s from {from} s on"
        );
    }
    for capacity in [4.0, 12.0] {
        let same = cases.iter().zip(AFTER).filter(|(_, a)| a.2 == capacity);
        let carried: Vec<_> = same.map(|(case, _)| case.goodput_mbps).collect();
        let mean = carried.iter().sum::<f64>() / carried.len() as f64;
        assert!(
            mean > 0.9 * capacity,
            "{carried:?} of {capacity} Mbit/s, a second after each change"
        );
    }
}
