//! The first words of both ends, which make sure that they mean the same traffic.
//!
//! The client speaks first, so that an MPTCP server has data of the client and
//! with it a fully established connection (RFC 8684 section 3.1) before the
//! payload starts: further subflows may then join.

use std::os::fd::AsFd;

use braid_core::Time;
use nix::poll::PollFlags;

use super::clock;
use super::error::{Result, TrafficError};
use super::session::Env;
use super::socket::Conn;

/// Length on the wire.
pub(crate) const HELLO_BYTES: usize = 24;
const MAGIC: u64 = u64::from_le_bytes(*b"braidT1\n");

/// First message of an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// [`super::TrafficSpec::digest`].
    pub(crate) digest: u64,
    /// From the server: when the payload starts.
    pub(crate) start: Time,
}

impl Hello {
    pub(crate) fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut b = [0; HELLO_BYTES];
        b[..8].copy_from_slice(&MAGIC.to_le_bytes());
        b[8..16].copy_from_slice(&self.digest.to_le_bytes());
        b[16..].copy_from_slice(&self.start.as_nanos().to_le_bytes());
        b
    }

    /// `None`: these bytes are no hello.
    pub(crate) fn from_bytes(b: &[u8]) -> Option<Self> {
        let b: &[u8; HELLO_BYTES] = b.try_into().ok()?;
        let word = |at: usize| {
            let mut w = [0; 8];
            w.copy_from_slice(&b[at..at + 8]);
            u64::from_le_bytes(w)
        };
        (word(0) == MAGIC).then(|| Self {
            digest: word(8),
            start: Time::from_nanos(word(16)),
        })
    }

    /// Checks that the other end means the same traffic.
    pub(crate) fn agrees(self, digest: u64) -> Result<()> {
        if self.digest == digest {
            return Ok(());
        }
        Err(TrafficError::Peer(
            "client and server were given different traffic: kind, direction, times and seed must \
             be the same"
                .to_owned(),
        ))
    }
}

/// The client's part; returns the start that the server chose.
pub(crate) fn greet(conn: &Conn, digest: u64, deadline: Time, env: &Env<'_>) -> Result<Time> {
    let start = Time::ZERO;
    write_all(conn, &Hello { digest, start }.to_bytes(), deadline, env)?;
    let answer = read_hello(conn, deadline, env)?;
    answer.agrees(digest)?;
    Ok(answer.start)
}

/// The server's part; returns the start: `wanted`, or now.
pub(crate) fn answer(
    conn: &Conn,
    digest: u64,
    wanted: Option<Time>,
    deadline: Time,
    env: &Env<'_>,
) -> Result<Time> {
    let hello = read_hello(conn, deadline, env)?;
    let start = wanted.unwrap_or_else(clock::now);
    // Answer even a stranger: it then knows why the connection ends.
    write_all(conn, &Hello { digest, start }.to_bytes(), deadline, env)?;
    hello.agrees(digest)?;
    Ok(start)
}

fn read_hello(conn: &Conn, deadline: Time, env: &Env<'_>) -> Result<Hello> {
    let mut buf = [0; HELLO_BYTES];
    let mut have = 0;
    while have < HELLO_BYTES {
        env.wait(Some(conn.as_fd()), PollFlags::POLLIN, deadline)?;
        match conn.read(&mut buf[have..]) {
            Ok(Some(0)) => {
                return Err(TrafficError::Peer(format!(
                    "{} closed the connection before it said hello: is it braid traffic that \
                     listens there?",
                    conn.peer
                )));
            }
            Ok(Some(n)) => have += n,
            Ok(None) if clock::now() >= deadline => {
                return Err(TrafficError::Peer(format!(
                    "{} took the connection but said nothing: is it braid traffic, and does the \
                     path carry data?",
                    conn.peer
                )));
            }
            Ok(None) => {}
            Err(e) => {
                let attempt = format!("read the first words of {}", conn.peer);
                return Err(TrafficError::io(attempt, e));
            }
        }
    }
    Hello::from_bytes(&buf).ok_or_else(|| {
        TrafficError::Peer(format!(
            "{} does not speak as braid traffic does: check address and port",
            conn.peer
        ))
    })
}

fn write_all(conn: &Conn, mut bytes: &[u8], deadline: Time, env: &Env<'_>) -> Result<()> {
    while !bytes.is_empty() {
        env.wait(Some(conn.as_fd()), PollFlags::POLLOUT, deadline)?;
        match conn.write(bytes) {
            Ok(Some(n)) => bytes = &bytes[n..],
            Ok(None) if clock::now() >= deadline => {
                return Err(TrafficError::Peer(format!(
                    "{} takes no data: does the path carry any?",
                    conn.peer
                )));
            }
            Ok(None) => {}
            Err(e) => return Err(TrafficError::io(format!("write to {}", conn.peer), e)),
        }
    }
    Ok(())
}
