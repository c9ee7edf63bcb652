//! What this process may do.

use std::io;

use crate::error::LabError;

/// Turns the refusal of a new network namespace into what the machine lacks.
pub(super) fn explain_namespace_error(error: &io::Error) -> Option<anyhow::Error> {
    match error.raw_os_error() {
        Some(libc::EPERM) => Some(
            LabError::missing(
                format!("make a network namespace: {error}"),
                "run it as root: sudo braid ...",
            )
            .into(),
        ),
        _ => None,
    }
}
