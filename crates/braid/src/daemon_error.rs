//! Meaning of a daemon's refusal, or its absence, for a command.

use std::io;

use braid_api::client::Error;
use braid_netns::error::LabError;

/// Between what is missing and what enables it, in the words of an end.
const IN_WORDS: &str = "\n  to enable it: ";

/// With the exit status: 2 where the request was wrong, 3 where the machine lacks
/// something, else 1.
pub(crate) fn daemon(e: Error) -> anyhow::Error {
    match e {
        Error::Unreachable { ref source, .. } => {
            let hint = match source.kind() {
                io::ErrorKind::PermissionDenied => {
                    "run it as root: sudo braid ...; members of a group can read, too, where \
                     [control_socket] group names one"
                }
                _ => {
                    "start the daemon: braid up (or systemctl start braid); one that serves \
                     another socket is named by --control"
                }
            };
            anyhow::anyhow!("{e}\n  {hint}")
        }
        Error::Refused {
            status: 400 | 404,
            text,
            ..
        } => LabError::BadInput(text).into(),
        // The daemon's own words have the way out.
        Error::Refused {
            status: 501, text, ..
        } => {
            let parts = text.split_once(IN_WORDS).or_else(|| text.split_once("; "));
            let (what, fix) = parts.unwrap_or((&text, "braid doctor"));
            LabError::missing(what, fix).into()
        }
        Error::Refused { text, .. } => anyhow::anyhow!("{text}"),
        e => e.into(),
    }
}

/// Whether a daemon that was there may answer again: it restarts, or is held up.
pub(crate) fn is_away(e: &Error) -> bool {
    match e {
        Error::Unreachable { source, .. } => source.kind() != io::ErrorKind::PermissionDenied,
        Error::Broken { .. } | Error::Silent { .. } => true,
        Error::Refused { .. } | Error::Form { .. } | Error::Path { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_netns::error::exit_code;

    #[test]
    fn refusals_have_the_exit_status_of_their_reason() {
        for (status, code) in [(400, 2), (404, 2), (409, 1), (500, 1), (501, 3)] {
            let e = daemon(Error::Refused {
                what: "PUT /v1/weights".into(),
                status,
                text: "no weights here; another kernel has them".into(),
            });
            assert_eq!(exit_code(&e), code, "{status}");
            assert!(e.to_string().contains("another kernel"), "{e}");
        }
        let e = daemon(Error::Unreachable {
            socket: "/run/x".into(),
            source: io::ErrorKind::NotFound.into(),
        });
        assert_eq!(exit_code(&e), 1);
        assert!(e.to_string().contains("braid up"), "{e}");
    }
}
