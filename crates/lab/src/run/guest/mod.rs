//! Code that runs inside of a virtual-clock guest, and how host and guest talk: a folder
//! that both see holds the job when the guest starts, and its answer when it has ended. In
//! between the guest's kernel log says how it gets on.

pub mod init;

use serde::{Deserialize, Serialize};

use super::case::Measured;
use crate::scenario::Scenario;
use braid_netns::error::LabError;

/// The file with the [`Job`] in the common folder.
pub(super) const JOB: &str = "job.json";
/// The file with the [`Answer`].
pub(super) const ANSWER: &str = "answer.json";
/// Where the guest sees the common folder.
pub(super) const FOLDER: &str = "/io";
/// How lines of the kernel log start that are ours.
pub(super) const MARK: &str = "braid: ";
/// Followed by the milliseconds of the case that have passed.
pub(super) const PROGRESS: &str = "progress ";

/// One case, to be run once.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Job {
    /// The scenario with this one case, everything in it resolved.
    pub(super) scenario: Scenario,
    /// Number of the repetition, from 1.
    pub(super) repeat: u32,
    /// The guest gives up after so much of its own time, s.
    pub(super) limit_s: f64,
}

/// Answer of the guest to its job.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    /// `uname -r` in the guest.
    pub(super) kernel: String,
    /// The lines of its `run.log`.
    pub(super) log: String,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Measured(Box<Measured>),
    Failed(String),
    BadInput(String),
    Missing { what: String, fix: String },
}

impl From<LabError> for Outcome {
    fn from(e: LabError) -> Self {
        match e {
            LabError::BadInput(s) => Self::BadInput(s),
            LabError::Missing(m) => Self::Missing {
                what: m.what,
                fix: m.fix,
            },
            e @ (LabError::Failed(_) | LabError::Interrupted) => Self::Failed(e.to_string()),
        }
    }
}
