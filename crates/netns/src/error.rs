//! How the lab fails, and the exit status each failure maps to.

use std::fmt;

/// Something the machine lacks, and the line that installs or enables it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Attempt that was made, and why it cannot succeed.
    pub what: String,
    /// The exact line to run, or the thing to do.
    pub fix: String,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  to enable it: {}", self.what, self.fix)
    }
}

/// A failure of the lab. [`LabError::exit_code`] is the status of the command.
///
/// It travels well inside an [`anyhow::Error`]: [`exit_code`] finds it again
/// under any context that was added.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The user asked for something that cannot be: exit status 2.
    #[error("{0}")]
    BadInput(String),
    /// The machine lacks something: exit status 3.
    #[error("{0}")]
    Missing(Missing),
    /// A run failed: exit status 1.
    #[error("{0:#}")]
    Failed(anyhow::Error),
    /// The user interrupted the run: exit status 130.
    #[error("interrupted")]
    Interrupted,
}

impl LabError {
    /// A [`LabError::Missing`].
    pub fn missing(what: impl Into<String>, fix: impl Into<String>) -> Self {
        Self::Missing(Missing {
            what: what.into(),
            fix: fix.into(),
        })
    }

    /// The exit status of a command that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Failed(_) => 1,
            Self::BadInput(_) => 2,
            Self::Missing(_) => 3,
            Self::Interrupted => 130,
        }
    }
}

impl From<anyhow::Error> for LabError {
    /// Keeps a [`LabError`] that already is in there, context or not.
    fn from(error: anyhow::Error) -> Self {
        match error.downcast_ref::<Self>() {
            None | Some(Self::Failed(_)) => Self::Failed(error),
            Some(Self::BadInput(_)) => Self::BadInput(format!("{error:#}")),
            Some(Self::Missing(missing)) => {
                let fix = missing.fix.clone();
                // The fix is printed once, after everything else.
                let tail = format!("\n  to enable it: {fix}");
                let what = format!("{error:#}").replace(&tail, "");
                Self::Missing(Missing { what, fix })
            }
            Some(Self::Interrupted) => Self::Interrupted,
        }
    }
}

/// The exit status of a command that ends with `error`: that of the
/// [`LabError`] in it, or else 1.
pub fn exit_code(error: &anyhow::Error) -> u8 {
    error
        .downcast_ref::<LabError>()
        .map_or(1, LabError::exit_code)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[test]
    fn every_failure_has_its_exit_status() {
        let failed = LabError::Failed(anyhow::anyhow!("x"));
        let codes = [
            LabError::BadInput("x".into()),
            LabError::missing("x", "y"),
            failed,
            LabError::Interrupted,
        ]
        .map(|e| e.exit_code());
        assert_eq!(codes, [2, 3, 1, 130]);
    }

    #[test]
    fn a_lab_error_survives_context() {
        let deep: anyhow::Result<()> =
            Err(LabError::missing("open /dev/net/tun", "modprobe tun").into());
        let error = deep
            .context("build the topology")
            .context("run \"static\"")
            .unwrap_err();
        assert_eq!(exit_code(&error), 3);
        match LabError::from(error) {
            LabError::Missing(missing) => {
                assert_eq!(missing.fix, "modprobe tun");
                assert_eq!(
                    missing.what,
                    "run \"static\": build the topology: open /dev/net/tun"
                );
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(exit_code(&anyhow::anyhow!("anything else")), 1);
        assert!(matches!(
            LabError::from(anyhow::anyhow!("x").context("y")),
            LabError::Failed(_)
        ));
    }
}
