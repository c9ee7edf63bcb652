//! Pieces on request: the client asks for so many bytes, the server answers with the next of its
//! payload. Requests may be under way together; they are answered in order.

use super::clock;
use super::error::{Result, TrafficError};
use super::pattern::Pattern;
use super::session::Session;
use super::talk::{Done, Talk, receive_word, send_word};

/// A request: number and size of the piece and a check of the two.
const REQUEST: usize = 24;

/// Requests of one end, in their order.
pub(super) struct Pieces {
    check: Pattern,
    next: u64,
}

impl Pieces {
    /// Begins with the first request of a session.
    pub(super) fn new(s: &Session<'_, '_>) -> Self {
        Self {
            check: Pattern::new(s.spec.seed, "request"),
            next: 0,
        }
    }

    fn word(&self, number: u64, bytes: u64) -> [u8; REQUEST] {
        let mut word = [0; REQUEST];
        word[..8].copy_from_slice(&number.to_le_bytes());
        word[8..16].copy_from_slice(&bytes.to_le_bytes());
        let digest = self.check.digest(&word[..16]);
        word[16..].copy_from_slice(&digest.to_le_bytes());
        word
    }

    /// Asks for the next piece, of so many bytes, before the end of the time.
    pub(super) fn ask(&mut self, s: &mut Session<'_, '_>, bytes: u64) -> Result<Done> {
        let word = self.word(self.next, bytes);
        self.next += 1;
        send_word(s, &word, s.plan.end)
    }

    /// Answers requests until the client leaves or the time is over.
    pub(super) fn serve(mut self, s: &mut Session<'_, '_>, talk: &mut Talk) -> Result<()> {
        let limit = s.plan.end + s.spec.grace;
        loop {
            let mut word = [0; REQUEST];
            let mut done = receive_word(s, &mut word, limit)?;
            if done == Done::All {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&word[8..16]);
                let bytes = u64::from_le_bytes(bytes);
                let number = self.next;
                if word != self.word(number, bytes) {
                    return Err(TrafficError::Peer(format!(
                        "what came from {} is not request {number}: it was damaged on the way",
                        s.conn.peer
                    )));
                }
                self.next += 1;
                done = talk.send(s, bytes, limit)?;
            }
            match done {
                Done::All => {}
                Done::Late => return Ok(()),
                // Both ends have one clock: the client does not leave before the end.
                Done::Closed if clock::now() >= s.plan.end => return Ok(()),
                Done::Closed => return Err(s.gone("closed the connection")),
            }
        }
    }
}
