//! What downloads have to come to.

use super::set::{EXPECTING, PLAIN, Set, Sum};
use crate::report::Report;

/// Part of what all paths could carry.
const LEAST: f64 = 0.85;

/// The bars of one drive, or of all of one kind.
pub(super) fn judge(report: &mut Report, name: &str, set: &Set) {
    let sums = || set.all().map(|(.., sum)| sum);
    let (runs, wrong) = sums().fold((0, 0), |(r, w), s| (r + s.runs, w + s.wrong));
    report.bar(
        &format!("{name}: every byte"),
        "right in every download",
        format!("{wrong} of {runs} downloads failed or had a wrong byte"),
        wrong == 0,
    );
    let complete: usize = sums().map(|s| s.complete).sum();
    report.bar(
        &format!("{name}: downloads come to their end"),
        "all, in the time that they have",
        format!("{complete} of {runs}"),
        complete == runs,
    );
    for engine in [PLAIN, EXPECTING] {
        let what = |of: &str| format!("{name}, {engine}: {of}");
        let mbps = |s: &Sum| s.goodput.unwrap_or(0.0);
        let compare = |few, many| set.get(engine, few).zip(set.get(engine, many));
        if let Some((single, two)) = compare("sp", "2") {
            report.bar(
                &what("two interfaces"),
                "more than over the ideal single path",
                format!("{:.1} and {:.1} Mbit/s", mbps(&two), mbps(&single)),
                mbps(&two) > mbps(&single),
            );
        }
        if let Some((three, four)) = compare("3", "4") {
            report.bar(
                &what("four interfaces"),
                "not less than three",
                format!("{:.1} and {:.1} Mbit/s", mbps(&four), mbps(&three)),
                mbps(&four) >= mbps(&three),
            );
        }
        let (most, in_words) = match set.get(engine, "3") {
            Some(sum) => (Some(sum), "three interfaces"),
            None => (set.get(engine, "2"), "two interfaces"),
        };
        if let Some(part) = most.and_then(|s| s.of_capacity) {
            report.bar(
                &what(&format!("{in_words}, of all paths")),
                &format!("at least {LEAST}"),
                format!("{part:.3}"),
                part >= LEAST,
            );
        }
    }
}
