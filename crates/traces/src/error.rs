//! Errors that refuse a trace, and problems in the data that are handled by a stated rule
//! and reported.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

/// Why the text of a trace was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{msg}")]
pub struct LineError {
    /// Line from 1; `None` when it concerns the file as a whole.
    pub line: Option<u64>,
    /// Description of what is wrong and what was expected.
    pub msg: String,
}

impl LineError {
    pub(crate) fn at(line: u64, msg: impl Into<String>) -> Self {
        Self {
            line: Some(line),
            msg: msg.into(),
        }
    }

    pub(crate) fn file(msg: impl Into<String>) -> Self {
        Self {
            line: None,
            msg: msg.into(),
        }
    }

    /// Adds the file that the error is about.
    pub fn in_file(self, path: &Path) -> TraceError {
        TraceError {
            path: path.to_owned(),
            line: self.line,
            msg: self.msg,
        }
    }
}

/// Why a trace file was refused; prints as `FILE:LINE: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// Line from 1; `None` when it concerns the file as a whole.
    pub line: Option<u64>,
    /// Description of what is wrong and what was expected.
    pub msg: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.msg)
    }
}

/// A kind of flaw in recorded data that does not make it unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// More than one and a half typical steps between two samples.
    Gap,
    /// A sample of the same time and the same values as the one before.
    Repeated,
    /// A sample of the same time as the one before, with other values.
    Conflicting,
    /// Time went back, or forward by more than 30 typical steps.
    ClockJump,
    /// A value that was not recorded (`-`, empty, `NaN`).
    Missing,
    /// A value below zero or above 1 Tbit/s.
    Impossible,
    /// A sample taken while the device was not transferring, so that its rate
    /// is no measure of capacity.
    NotTransferring,
}

impl ProblemKind {
    /// The rule by which such data is handled.
    pub const fn rule(self) -> &'static str {
        match self {
            Self::Gap => "the rate before the gap is held until it ends",
            Self::Repeated => "dropped",
            Self::Conflicting => "the mean of the samples of one time is taken",
            Self::ClockJump => "the sample follows one typical step after the one before it",
            Self::Missing | Self::Impossible => {
                "the column's previous value is held (at the start: its first one)"
            }
            Self::NotTransferring => "kept",
        }
    }

    const fn noun(self, one: bool) -> &'static str {
        match (self, one) {
            (Self::Gap, true) => "gap",
            (Self::Gap, false) => "gaps",
            (Self::Repeated, true) => "repeated sample",
            (Self::Repeated, false) => "repeated samples",
            (Self::Conflicting, true) => "sample that contradicts another of the same time",
            (Self::Conflicting, false) => "samples that contradict another of the same time",
            (Self::ClockJump, true) => "clock jump",
            (Self::ClockJump, false) => "clock jumps",
            (Self::Missing, true) => "missing value",
            (Self::Missing, false) => "missing values",
            (Self::Impossible, true) => "impossible value",
            (Self::Impossible, false) => "impossible values",
            (Self::NotTransferring, true) => "sample outside a transfer",
            (Self::NotTransferring, false) => "samples outside a transfer",
        }
    }
}

/// How often one kind of flaw occurs in a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Problem {
    /// The kind of flaw.
    pub kind: ProblemKind,
    /// How many.
    pub count: u64,
    /// Line of the first one, from 1.
    pub first_line: u64,
    /// The longest one in seconds, where the kind has a length.
    pub longest_s: Option<f64>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = self.kind.noun(self.count == 1);
        write!(f, "{} {noun} (", self.count)?;
        if self.count > 1 {
            f.write_str("first at ")?;
        }
        write!(f, "line {}", self.first_line)?;
        if let Some(s) = self.longest_s {
            let what = if self.count > 1 { "longest " } else { "" };
            write!(f, ", {what}{s:.3} s")?;
        }
        write!(f, "): {}", self.kind.rule())
    }
}

/// Counts problems while a trace is read.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    pub(crate) fn add(&mut self, kind: ProblemKind, line: u64, seconds: Option<f64>) {
        match self.0.iter_mut().find(|p| p.kind == kind) {
            Some(p) => {
                p.count += 1;
                p.longest_s = p.longest_s.zip(seconds).map(|(a, b)| a.max(b));
            }
            None => self.0.push(Problem {
                kind,
                count: 1,
                first_line: line,
                longest_s: seconds,
            }),
        }
    }

    pub(crate) fn into_sorted(mut self) -> Vec<Problem> {
        self.0.sort_by_key(|p| p.kind);
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_says_the_rule() {
        let mut p = Problems::default();
        p.add(ProblemKind::Gap, 7, Some(2.0));
        p.add(ProblemKind::Gap, 9, Some(3.0));
        p.add(ProblemKind::Missing, 4, None);
        let text: Vec<_> = p.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            text,
            [
                "2 gaps (first at line 7, longest 3.000 s): the rate before the gap is held until it ends",
                "1 missing value (line 4): the column's previous value is held (at the start: its first one)",
            ]
        );
    }
}
