//! Errors, and what to do about each.

use std::io;
use std::net::SocketAddr;

use noq_proto::{ConnectionError, TransportErrorCode};

use crate::net::Ended;

/// The alert `no_application_protocol` (RFC 7301 3.2) as an error of QUIC (RFC 9001 4.8).
const NO_PROTOCOL: u8 = 120;

/// Why a connection is none, or none any more.
pub(crate) fn in_words(e: &ConnectionError) -> String {
    let code = match e {
        ConnectionError::TransportError(e) => Some(e.code),
        ConnectionError::ConnectionClosed(e) => Some(e.error_code),
        _ => None,
    };
    if code == Some(TransportErrorCode::crypto(NO_PROTOCOL)) {
        return "the other end does not speak what this one does: the lane is to be the same at \
                both ends, and the version of Braid"
            .to_owned();
    }
    let text = e.to_string();
    // What is not of the TLS library itself, it only tells in the words of its types.
    match text.split_once("Other(OtherError(") {
        Some((before, own)) => format!("{before}{}", own.trim_end_matches(')')),
        None => text,
    }
}

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No scheduler is called so.
    #[error("unknown packet scheduler \"{name}\": there are {known}")]
    UnknownScheduler {
        /// As asked for.
        name: String,
        /// Schedulers that there are.
        known: String,
    },
    /// No congestion control is called so.
    #[error("unknown congestion control \"{name}\": there are {known}")]
    UnknownCongestionControl {
        /// As asked for.
        name: String,
        /// Congestion controls that there are.
        known: String,
    },
    /// Streams of QUIC itself leave it to the library what is sent next.
    #[error(
        "the scheduler \"{name}\" cannot steer the stream lane, where what is sent next and how \
         much waits is known to the QUIC library alone: use lane = \"datagram\", or one of {others}"
    )]
    NeedsDatagramLane {
        /// The scheduler.
        name: String,
        /// Schedulers that can steer the stream lane.
        others: String,
    },
    /// A class that cannot be steered so.
    #[error("class number {number}: {why}")]
    BadClass {
        /// Its number.
        number: u8,
        /// Reason, in words.
        why: String,
    },
    /// Weights of which none is above zero, or one is no number.
    #[error("weights {weights}: each is 0 or more, and one at least above 0")]
    BadWeights {
        /// As given.
        weights: String,
    },
    /// A name that is none of an access.
    #[error("there is no access \"{name}\": there are {known}")]
    UnknownAccess {
        /// As asked for.
        name: String,
        /// Accesses that there are.
        known: String,
    },
    /// An access names an interface that cannot be called so.
    #[error("access \"{access}\": {why}")]
    BadInterface {
        /// The access.
        access: String,
        /// Fault of the name, and what was expected.
        why: String,
    },
    /// No access can be used.
    #[error("connect to {remote}: no access is up (asked for {accesses})")]
    NoAccess {
        /// Where to.
        remote: SocketAddr,
        /// Their names.
        accesses: String,
    },
    /// No attempt got through.
    #[error("connect to {remote}: no answer within {seconds} s over {accesses}")]
    NoAnswer {
        /// Where to.
        remote: SocketAddr,
        /// For how long it was tried.
        seconds: u64,
        /// The accesses, by name.
        accesses: String,
    },
    /// The other end refused, or is not the one that was expected.
    #[error("connect to {remote}: {}", in_words(source))]
    Refused {
        /// Where to.
        remote: SocketAddr,
        /// Why.
        source: noq_proto::ConnectionError,
    },
    /// The session has ended.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// Streams of QUIC itself have no messages beside them.
    #[error("messages need the datagram lane: use lane = \"datagram\" at both ends")]
    NoMessages,
    /// A socket or a timer cannot be had.
    #[error("{attempted}: {source}")]
    Io {
        /// Action that was attempted.
        attempted: String,
        /// Why not.
        source: io::Error,
    },
    /// The interfaces cannot be followed.
    #[error(transparent)]
    Link(#[from] braid_access::Error),
    /// The library refused to connect.
    #[error("connect to {remote}: {source}")]
    Connect {
        /// Where to.
        remote: SocketAddr,
        /// Why.
        source: noq_proto::ConnectError,
    },
}
