//! Bars of downloads.

use super::set::{EXPECTING, PLAIN, Set, Sum};
use crate::report::Report;

/// Part of what all paths could carry.
const LEAST: f64 = 0.85;
/// Means over points where downloads take other times, and so see other seconds of a drive.
const NOISE: f64 = 0.99;

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
                "not less than three, within 1 % of noise",
                format!("{:.1} and {:.1} Mbit/s", mbps(&four), mbps(&three)),
                mbps(&four) >= NOISE * mbps(&three),
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

#[cfg(test)]
mod tests {
    use braid_lab::summary::{CaseResult, Summary};

    use super::*;

    /// Returns whether all bars are met with 100 Mbit/s on all paths, and these goodputs of one
    /// ideal path, two, three and four.
    fn met(goodputs: [f64; 4], intact: bool, completion_s: Option<f64>) -> bool {
        let case = |(interfaces, goodput_mbps)| CaseResult {
            name: format!("{interfaces}: {EXPECTING}"),
            goodput_mbps,
            ideal_mbps: Some(80.0),
            capacity_mbps: Some(100.0),
            completion_s,
            intact: Some(intact),
            ..CaseResult::default()
        };
        let cases = ["sp", "2", "3", "4"].into_iter().zip(goodputs);
        let mut set = Set::default();
        let summary = Summary {
            cases: cases.map(case).collect(),
            ..Summary::default()
        };
        set.add(summary).unwrap();
        let mut report = Report::default();
        judge(&mut report, "here", &set);
        report.all_met()
    }

    #[test]
    fn each_bar_can_be_missed() {
        let done = Some(3.0);
        assert!(met([60.0, 80.0, 86.0, 85.5], true, done));
        assert!(!met([60.0, 60.0, 86.0, 87.0], true, done));
        assert!(!met([60.0, 80.0, 86.0, 85.0], true, done));
        assert!(!met([60.0, 80.0, 84.9, 87.0], true, done));
        assert!(!met([60.0, 80.0, 86.0, 87.0], false, done));
        assert!(!met([60.0, 80.0, 86.0, 87.0], true, None));
    }
}
