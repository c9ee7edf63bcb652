//! The scenario `appearing` on the virtual clock: after each coming and going of the
//! second cell, the sum of the links is used again within a second.

use support::{lab, summary};

mod support;

#[test]
fn the_sum_is_followed_within_a_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = lab::command(dir.path(), "appearing");
    command.args(["--only", "MP-QUIC cubic"]);
    if lab::on_the_virtual_clock(dir.path(), &mut command).is_none() {
        return;
    }
    let out = dir.path().join("out");
    let case = summary(&out).cases.remove(0);
    assert_eq!((case.intact, case.failed), (Some(true), None));
    let timeline = lab::timeline(&out);
    for (from, to, mbps) in [
        (1.0, 2.0, 4.0),
        (3.0, 4.0, 12.0),
        (5.0, 6.0, 4.0),
        (7.0, 8.0, 12.0),
        (9.0, 10.0, 4.0),
    ] {
        // A row says what came in the 100 ms before it.
        let inside = |t: f64| t > from + 0.05 && t < to + 0.05;
        let rows = timeline.iter().filter(|r| inside(r.t_s));
        let carried = rows.map(|r| r.bytes).sum::<u64>() as f64 * 8.0 / 1e6 / (to - from);
        assert!(
            carried > 0.9 * mbps,
            "{carried} of {mbps} Mbit/s from {from} s on"
        );
    }
}
