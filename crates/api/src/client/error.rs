//! Why a request got no useful answer.

use std::io;
use std::path::PathBuf;

/// Error of a request: what was asked of whom, and what came of it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody serves the socket, or it may not be used.
    #[error("{}: {source}", unreachable(.socket, .source))]
    Unreachable {
        /// The control socket.
        socket: PathBuf,
        /// The error number.
        source: io::Error,
    },
    /// No answer in time.
    #[error("{what}: no answer within {seconds} s")]
    Silent {
        /// The request and the socket.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("{what}: {source}")]
    Broken {
        /// The request and the socket.
        what: String,
        /// Error of the HTTP library.
        source: hyper::Error,
    },
    /// The end refused the request.
    #[error("{what}: {status}: {text}")]
    Refused {
        /// The request and the socket.
        what: String,
        /// The status of HTTP.
        status: u16,
        /// The end's own words.
        text: String,
    },
    /// The answer is not of the form that [`crate::control`] describes.
    #[error("{what}: {source}")]
    Form {
        /// The request and the socket.
        what: String,
        /// Error of the JSON library.
        source: serde_json::Error,
    },
    /// The path cannot stand in a request.
    #[error("{what}: {reason}")]
    Path {
        /// The request and the socket.
        what: String,
        /// Why not.
        reason: String,
    },
}

fn unreachable(socket: &std::path::Path, source: &io::Error) -> String {
    match source.kind() {
        // Reset: it stopped between our connect and its accept.
        io::ErrorKind::NotFound
        | io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionReset => {
            format!("nobody serves the control socket {}", socket.display())
        }
        _ => format!("cannot connect to the control socket {}", socket.display()),
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
