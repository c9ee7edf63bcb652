//! Results of the downloads.

use std::path::Path;

use braid_lab::summary::CaseResult;

use super::plan::{CONGESTION, Combination, PAIRS, Who, combinations};
use crate::figures::{Spread, show};
use crate::report::{Comparison, Report};

/// Minimum part of what picoquic to picoquic carries: below 1 by what one run differs from the
/// next.
const MATCH: f64 = 0.98;

/// One download.
#[derive(Clone, Debug)]
pub(super) struct Download {
    pair: &'static str,
    who: Combination,
    /// Whole and right.
    right: bool,
    /// Goodput of the file, from the start of the client to its end, Mbit/s.
    mbps: f64,
    /// Bytes of the downlinks, by access.
    second_path: f64,
}

impl Download {
    /// `result` is what the client's command line has left: ns, and a hash.
    pub(super) fn read(
        pair: &'static str,
        who: Combination,
        case: &CaseResult,
        bytes: u64,
        hash: &str,
        result: &Path,
    ) -> Self {
        let text = std::fs::read_to_string(result).unwrap_or_default();
        let mut words = text.split_whitespace();
        let ns: Option<f64> = words.next().and_then(|w| w.parse().ok());
        let right = ns.is_some() && words.next() == Some(hash);
        let mbps = ns.map_or(0.0, |ns| bytes as f64 * 8.0 / 1e6 / (ns / 1e9));
        Self {
            pair,
            who,
            right,
            mbps: if right { mbps } else { 0.0 },
            second_path: case.share.get("b").copied().unwrap_or(0.0),
        }
    }
}

fn of<'a>(
    all: &'a [Download],
    pair: &'a str,
    who: &'a Combination,
) -> impl Iterator<Item = &'a Download> {
    all.iter().filter(move |d| d.pair == pair && d.who == *who)
}

pub(super) fn judge(all: &[Download]) -> Report {
    let mut report = Report::default();
    let (ours, theirs): (Vec<_>, Vec<_>) = all.iter().partition(|d| d.who.has(Who::Braid));
    let wrong = ours.iter().filter(|d| !d.right).count();
    report.bar(
        "whole files, wherever Braid is an end",
        "the same hash in every run",
        format!("{wrong} of {} missing, not whole or wrong", ours.len()),
        wrong == 0 && !ours.is_empty(),
    );
    let idle = ours.iter().filter(|d| d.second_path < 0.01).count();
    report.bar(
        "both paths carry, wherever Braid is an end",
        "at least 1 % of the bytes on the second, in every run",
        format!("{idle} of {} with less", ours.len()),
        idle == 0 && !ours.is_empty(),
    );
    let wrong = theirs.iter().filter(|d| !d.right).count();
    if wrong > 0 {
        report.note(format!(
            "{wrong} of {} files from picoquic to picoquic did not come whole: they count as 0 Mbit/s",
            theirs.len()
        ));
    }
    let mut rows = Vec::new();
    for pair in PAIRS {
        for cc in CONGESTION {
            let own = |who| Combination {
                server: who,
                client: who,
                cc,
            };
            let rate = |who| Spread::of(of(all, pair, &own(who)).map(|d| d.mbps));
            if let (Some(ours), Some(theirs)) = (rate(Who::Braid), rate(Who::Picoquic)) {
                report.bar(
                    &format!("{pair}, {cc}: Braid to Braid, picoquic to picoquic"),
                    &format!("at least {MATCH} of its median"),
                    format!("{} and {} Mbit/s", show(ours.median), show(theirs.median)),
                    ours.median > 0.0 && ours.median >= MATCH * theirs.median,
                );
            }
        }
        for who in combinations() {
            let runs = || of(all, pair, &who);
            let (Some(rate), Some(second)) = (
                Spread::of(runs().map(|d| d.mbps)),
                Spread::of(runs().map(|d| d.second_path * 100.0)),
            ) else {
                continue;
            };
            rows.push(vec![
                pair.to_owned(),
                who.name(),
                rate.text(),
                show(second.median),
            ]);
        }
    }
    report.comparisons.push(Comparison::new(
        "Files of 5 s of both links, over the lab's emulator: median, least and greatest",
        [
            "pair",
            "server to client, congestion control",
            "Mbit/s",
            "second path %",
        ],
        rows,
    ));
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_wrong_is_no_download() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.result");
        let who = combinations().next().unwrap();
        let read = || {
            let case = CaseResult {
                share: [("b".to_owned(), 0.5)].into(),
                ..CaseResult::default()
            };
            Download::read(PAIRS[0], who, &case, 125_000_000, "abc", &path)
        };
        let verdicts = |d: Download| {
            let bars = judge(&[d]).bars;
            bars.iter().map(|b| b.pass).collect::<Vec<_>>()
        };
        assert_eq!((read().mbps, verdicts(read())), (0.0, vec![false, true]));
        std::fs::write(&path, "10000000000 def -").unwrap();
        assert_eq!((read().mbps, verdicts(read())), (0.0, vec![false, true]));
        std::fs::write(&path, "10000000000 abc -").unwrap();
        assert_eq!((read().mbps, verdicts(read())), (100.0, vec![true, true]));
    }
}
