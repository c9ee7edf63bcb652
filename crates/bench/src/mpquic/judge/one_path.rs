//! Goodput of one path that nothing limits, and what that costs.

use braid_lab::summary::CaseResult;
use braid_mpquic::Lane;

use super::{Measured, of_case};
use crate::figures::{Spread, show};
use crate::report::{Comparison, Report};

/// Goodput that one path has to reach, Mbit/s.
const MBPS: f64 = 5000.0;

impl Measured {
    pub(super) fn one_path(&self, report: &mut Report) {
        let mut rows = Vec::new();
        for lane in Lane::ALL {
            self.bare(lane, report, &mut rows);
            self.of_the_lab(lane.as_str(), &mut rows);
        }
        if !rows.is_empty() {
            report.comparisons.push(Comparison::new(
                "One path that nothing limits: CPU seconds per Gbit of payload, medians",
                [
                    "lane, where",
                    "Mbit/s",
                    "sender",
                    "receiver",
                    "whole machine",
                ],
                rows,
            ));
        }
    }

    fn bare(&self, lane: Lane, report: &mut Report, rows: &mut Vec<Vec<String>>) {
        let all = || self.bare.iter().filter(|(l, _)| *l == lane).map(|(_, b)| b);
        let lane = lane.as_str();
        let Some(rate) = Spread::of(all().map(|b| b.mbps)) else {
            return;
        };
        report.bar(
            &format!("one path that nothing limits, {lane} lane"),
            "median at least 5 Gbit/s, every byte right",
            format!("{} Mbit/s", rate.text()),
            rate.median >= MBPS && all().all(|b| b.bad == 0),
        );
        let cost =
            |values: Vec<f64>| Spread::of(values).map_or_else(String::new, |s| show(s.median));
        rows.push(vec![
            format!("{lane}, two threads and a pair of interfaces"),
            rate.text(),
            cost(all().map(|b| b.sender).collect()),
            cost(all().map(|b| b.receiver).collect()),
            String::new(),
        ]);
    }

    /// There, an emulator carries every packet, and programs speak TCP with both ends.
    fn of_the_lab(&self, lane: &str, rows: &mut Vec<Vec<String>>) {
        let all = || of_case(&self.single, lane);
        let Some(rate) = Spread::of(all().map(|c| c.goodput_mbps)) else {
            return;
        };
        let per_gbit = |part: fn(&CaseResult) -> Option<f64>| {
            let each = all().filter_map(|c| {
                let gbit = c.goodput_mbps * c.seconds / 1000.0;
                Some(part(c)? / gbit)
            });
            Spread::of(each).map_or_else(String::new, |s| show(s.median))
        };
        rows.push(vec![
            format!("{lane}, daemons, programs and emulator"),
            rate.text(),
            per_gbit(|c| Some(c.engine_cpu_seconds?.proxy)),
            per_gbit(|c| Some(c.engine_cpu_seconds?.device)),
            per_gbit(|c| c.machine_cpu_seconds),
        ]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::verdicts;
    use super::*;
    use crate::mpquic::bare::Bare;

    #[test]
    fn one_wrong_byte_misses_the_bar() {
        for (mbps, bad, met) in [(5001.0, 0, true), (4999.0, 0, false), (9000.0, 1, false)] {
            let one = Bare {
                mbps,
                sender: 0.1,
                receiver: 0.1,
                bad,
            };
            let m = Measured {
                bare: vec![(Lane::Stream, one)],
                ..Measured::default()
            };
            assert_eq!(verdicts(&m), [met, true]);
        }
    }
}
