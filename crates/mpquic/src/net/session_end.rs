//! Why a session has ended.

use std::io;
use std::sync::Arc;

use noq_proto::{ConnectionError, VarInt};

use crate::error::in_words;
use crate::lane::LaneError;

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("{}", in_words(.0))]
    Quic(ConnectionError),
    #[error(transparent)]
    Lane(LaneError),
}

/// Why a session has ended.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the session has ended: {0}")]
pub struct Ended(Arc<Why>);

impl Ended {
    /// Whether one of the two ends has closed it on purpose.
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Why::Quic(ConnectionError::LocallyClosed) => true,
            Why::Quic(ConnectionError::ApplicationClosed(c)) => c.error_code == VarInt::from_u32(0),
            _ => false,
        }
    }
}

impl From<ConnectionError> for Ended {
    fn from(e: ConnectionError) -> Self {
        Self(Arc::new(Why::Quic(e)))
    }
}

impl From<LaneError> for Ended {
    fn from(e: LaneError) -> Self {
        Self(Arc::new(Why::Lane(e)))
    }
}

impl From<Ended> for io::Error {
    fn from(e: Ended) -> Self {
        let kind = match &*e.0 {
            Why::Quic(ConnectionError::TimedOut) => io::ErrorKind::TimedOut,
            Why::Quic(ConnectionError::LocallyClosed) => io::ErrorKind::NotConnected,
            Why::Quic(_) => io::ErrorKind::ConnectionReset,
            Why::Lane(_) => io::ErrorKind::InvalidData,
        };
        Self::new(kind, e)
    }
}
