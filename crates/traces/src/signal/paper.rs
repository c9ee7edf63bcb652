//! Statistics of the drive in "On the Potential of MP-QUIC as Transport Layer
//! Aggregator for Multiple Cellular Networks" (Electronics 2022, 11(9), 1492),
//! section 3, to stand beside those of another one.

use serde::Serialize;

use super::cells::CellStatistics;

/// "Come within this part" of the paper.
pub const TOLERANCE: f64 = 0.10;

/// Statement of the paper about a number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// Value: the number is about this.
    About(f64),
    /// Lower bound: the number is more.
    MoreThan(f64),
    /// Upper bound: the number is less.
    LessThan(f64),
}

/// A number of ours beside the paper's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the number.
    pub what: String,
    /// Whether it is a share or a gain, to print as a percentage.
    pub percent: bool,
    /// Ours.
    pub here: f64,
    /// The paper's.
    pub paper: Said,
    /// Where the paper has words and the number is our reading of them.
    pub words: Option<&'static str>,
}

impl Comparison {
    /// Whether ours is what the paper says: within [`TOLERANCE`] of a number, on
    /// the right side of a bound.
    pub fn holds(&self) -> bool {
        match self.paper {
            Said::About(v) => (self.here / v - 1.0).abs() <= TOLERANCE,
            Said::MoreThan(v) => self.here > v,
            Said::LessThan(v) => self.here < v,
        }
    }
}

/// `parts` (all, then segments) beside the paper. Rows need what they are about:
/// two operators, segments called `residential` and `road`.
pub fn compare(parts: &[CellStatistics]) -> Vec<Comparison> {
    let mut rows: Vec<Comparison> = Vec::new();
    let mut row = |what: &str, percent, here, paper, words| {
        rows.push(Comparison {
            what: what.to_owned(),
            percent,
            here,
            paper,
            words,
        });
    };
    let Some(all) = parts.first() else {
        return rows;
    };
    use Said::{About, LessThan, MoreThan};
    let share = |s: &CellStatistics, n: usize| s.available.get(n).copied().unwrap_or(0.0);
    row(
        "available cells, mean",
        false,
        all.available_mean,
        About(2.97),
        None,
    );
    row(
        "visible cells, mean",
        false,
        all.visible_mean,
        About(4.26),
        None,
    );
    row(
        "more than seven visible",
        true,
        all.visible_above_7,
        About(0.20),
        None,
    );
    let part = |name: &str| parts.iter().find(|p| p.part == name);
    if let Some(s) = part("residential") {
        let words = Some("nearly the entire time");
        row(
            "residential: exactly four",
            true,
            share(s, 4),
            MoreThan(0.95),
            words,
        );
    }
    if let Some(s) = part("road") {
        row(
            "road: exactly four",
            true,
            share(s, 4),
            LessThan(0.25),
            None,
        );
        let (two_or_three, fewer) = (share(s, 2) + share(s, 3), share(s, 0) + share(s, 1));
        row(
            "road: two or three",
            true,
            two_or_three,
            MoreThan(0.75),
            None,
        );
        let words = Some("extremely brief");
        row("road: one or none", true, fewer, LessThan(0.02), words);
    }
    if let (Some(a), Some(b)) = (part("residential"), part("road")) {
        let most = share(a, 2).max(share(b, 2));
        let words = Some("more common than in either segment");
        row("two available", true, share(all, 2), MoreThan(most), words);
    }
    if let [one, two, best, _] = &all.levels[..] {
        let gain = |l: &super::cells::Level| l.gain.unwrap_or(f64::INFINITY);
        let low = |l: &super::cells::Level| l.p20_factor.unwrap_or(f64::INFINITY);
        row(
            "multipath over operator 1",
            true,
            gain(one),
            About(0.79),
            None,
        );
        row(
            "multipath over operator 2",
            true,
            gain(two),
            About(1.38),
            None,
        );
        row(
            "multipath over best single path",
            true,
            gain(best),
            About(0.26),
            None,
        );
        row(
            "20th percentile over operator 1, times",
            false,
            low(one),
            MoreThan(4.0),
            None,
        );
        row(
            "20th percentile over operator 2, times",
            false,
            low(two),
            MoreThan(18.0),
            None,
        );
    }
    rows
}
