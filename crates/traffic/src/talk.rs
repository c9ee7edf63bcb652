//! Exchanges over a stream: pieces of the two payload streams and short words,
//! written and read whole, with an end in sight.

use std::io;

use braid_core::Time;
use nix::poll::PollFlags;

use super::clock;
use super::error::Result;
use super::pattern::{Corruption, Pattern, Verifier};
use super::session::Session;

/// Longest piece that is written or read at once.
const CHUNK: usize = 256 * 1024;

/// Where both payload streams stand.
pub(crate) struct Talk {
    tx: Pattern,
    tx_offset: u64,
    rx: Verifier,
    buf: Vec<u8>,
}

/// Whether an exchange came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// Everything was exchanged.
    All,
    /// The time was over.
    Late,
    /// The other end closed.
    Closed,
}

impl Talk {
    /// A talk whose pieces are at most `longest` bytes.
    pub(crate) fn new(s: &Session<'_, '_>, longest: u64) -> Self {
        Self {
            tx: Pattern::new(s.spec.seed, s.spec.tx_label()),
            tx_offset: 0,
            rx: Verifier::new(Pattern::new(s.spec.seed, s.spec.rx_label())),
            buf: vec![0; longest.min(CHUNK as u64) as usize],
        }
    }

    /// The first byte received that was not the one sent.
    pub(crate) fn corruption(&self) -> Option<Corruption> {
        self.rx.corruption()
    }

    /// Sends the next `len` bytes of payload.
    pub(crate) fn send(&mut self, s: &mut Session<'_, '_>, len: u64, until: Time) -> Result<Done> {
        let mut left = len;
        while left > 0 {
            let n = left.min(self.buf.len() as u64) as usize;
            self.tx.fill(self.tx_offset, &mut self.buf[..n]);
            let mut written = 0;
            while written < n {
                match write(s, &self.buf[written..n], until)? {
                    Ok(k) => {
                        written += k;
                        s.sent.add(clock::now(), k as u64);
                    }
                    Err(done) => return Ok(done),
                }
            }
            self.tx_offset += n as u64;
            left -= n as u64;
        }
        Ok(Done::All)
    }

    /// Receives and verifies the next `len` bytes of payload.
    pub(crate) fn receive(
        &mut self,
        s: &mut Session<'_, '_>,
        len: u64,
        until: Time,
    ) -> Result<Done> {
        let mut left = len;
        while left > 0 {
            let n = left.min(self.buf.len() as u64) as usize;
            match read(s, &mut self.buf[..n], until)? {
                Ok(n) => {
                    let now = clock::now();
                    self.rx.accept(&self.buf[..n]);
                    left -= n as u64;
                    s.received.add(now, n as u64);
                    s.gaps.received(now);
                }
                Err(done) => return Ok(done),
            }
        }
        Ok(Done::All)
    }
}

/// Sends a word that is no payload.
pub(crate) fn send_word(s: &mut Session<'_, '_>, word: &[u8], until: Time) -> Result<Done> {
    let mut written = 0;
    while written < word.len() {
        match write(s, &word[written..], until)? {
            Ok(n) => written += n,
            Err(done) => return Ok(done),
        }
    }
    Ok(Done::All)
}

/// Receives a word that is no payload.
pub(crate) fn receive_word(s: &mut Session<'_, '_>, word: &mut [u8], until: Time) -> Result<Done> {
    let mut have = 0;
    while have < word.len() {
        match read(s, &mut word[have..], until)? {
            Ok(n) => have += n,
            Err(done) => return Ok(done),
        }
    }
    Ok(Done::All)
}

/// Writes some, waiting for room if there is none.
fn write(
    s: &mut Session<'_, '_>,
    bytes: &[u8],
    until: Time,
) -> Result<std::result::Result<usize, Done>> {
    loop {
        match s.conn.write(bytes) {
            Ok(Some(n)) => return Ok(Ok(n)),
            Ok(None) if clock::now() >= until => return Ok(Err(Done::Late)),
            Ok(None) => {
                s.wait(PollFlags::POLLOUT, until)?;
            }
            Err(e) => return ended(s, &e).map(Err),
        }
    }
}

/// Reads some, waiting for it.
fn read(
    s: &mut Session<'_, '_>,
    buf: &mut [u8],
    until: Time,
) -> Result<std::result::Result<usize, Done>> {
    loop {
        let ready = s.wait(PollFlags::POLLIN, until)?;
        if ready.is_empty() {
            if clock::now() >= until {
                return Ok(Err(Done::Late));
            }
            continue;
        }
        match s.conn.read(buf) {
            Ok(Some(0)) => return Ok(Err(Done::Closed)),
            Ok(Some(n)) => return Ok(Ok(n)),
            Ok(None) => {}
            Err(e) => return ended(s, &e).map(Err),
        }
    }
}

/// A reset after the end is how the other says goodbye.
fn ended(s: &Session<'_, '_>, e: &io::Error) -> Result<Done> {
    if clock::now() >= s.plan.end {
        return Ok(Done::Closed);
    }
    Err(s.gone(&format!("is gone ({e})")))
}
