//! Flaws of recorded signals, counted, and the rule for each.

use std::fmt;

use serde::Serialize;

/// A kind of flaw in recorded signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FlawKind {
    /// An operator was not measured for more than one and a half of its typical
    /// steps.
    Gap,
    /// Nothing at all was measured for more than 30 s.
    Pause,
    /// Same time and cells as another row, and the same values.
    Repeated,
    /// Same time and a cell as another row, but other values.
    Conflicting,
    /// A row of an earlier time than the operator's row before it.
    ClockJump,
    /// A cell without a power.
    Missing,
    /// An RSRP outside -156 to -31 dBm, or an SINR outside -23 to 40 dB.
    Impossible,
    /// A row of a technology that has no RSRP, such as HSPA.
    OtherTechnology,
}

impl FlawKind {
    /// The rule by which such data is handled.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Gap => "what was heard before holds for up to 30 s, then nothing",
            Self::Pause => "left out; what follows is joined",
            Self::Repeated => "dropped",
            Self::Conflicting => "the mean in dB is taken",
            Self::ClockJump => {
                "up to 30 s, rows are put in the order of their times; beyond, they follow a second \
                 after the one before"
            }
            Self::Missing | Self::Impossible | Self::OtherTechnology => "the value is left out",
        }
    }

    const fn noun(self) -> &'static str {
        match self {
            Self::Gap => "gaps of one operator",
            Self::Pause => "pauses of the whole recording",
            Self::Repeated => "repeated rows",
            Self::Conflicting => "rows that contradict another of the same time",
            Self::ClockJump => "jumps of the clock back",
            Self::Missing => "cells without a power",
            Self::Impossible => "impossible values",
            Self::OtherTechnology => "rows of a technology without RSRP",
        }
    }
}

/// How often one kind of flaw occurs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flaw {
    /// The kind of flaw.
    pub kind: FlawKind,
    /// How many.
    pub count: u64,
    /// Line of the first one, from 1.
    pub first_line: u64,
    /// The longest one in seconds, where the kind has a length.
    pub longest_s: Option<f64>,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, line) = (self.count, self.first_line);
        write!(f, "{n} {} (first at line {line}", self.kind.noun())?;
        if let Some(s) = self.longest_s {
            write!(f, ", longest {s:.3} s")?;
        }
        write!(f, "): {}", self.kind.rule())
    }
}

/// Counts flaws while a file is read.
#[derive(Debug, Default)]
pub(super) struct Flaws(Vec<Flaw>);

impl Flaws {
    pub(super) fn add(&mut self, kind: FlawKind, line: u64, seconds: Option<f64>) {
        match self.0.iter_mut().find(|f| f.kind == kind) {
            Some(f) => {
                f.count += 1;
                f.first_line = f.first_line.min(line);
                f.longest_s = f.longest_s.zip(seconds).map(|(a, b)| a.max(b));
            }
            None => self.0.push(Flaw {
                kind,
                count: 1,
                first_line: line,
                longest_s: seconds,
            }),
        }
    }

    pub(super) fn into_sorted(mut self) -> Vec<Flaw> {
        self.0.sort_by_key(|f| f.kind);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_says_the_rule() {
        let mut f = Flaws::default();
        f.add(FlawKind::Repeated, 9, None);
        f.add(FlawKind::Gap, 7, Some(2.0));
        f.add(FlawKind::Gap, 5, Some(3.5));
        let text: Vec<_> = f.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "2 gaps of one operator (first at line 5, longest 3.500 s): what was heard before holds for up to 30 s, then nothing",
                "1 repeated rows (first at line 9): dropped",
            ]
        );
    }
}
