//! How channels end before all of them has been sent: either end may reset what it sends
//! (RFC 9000 19.4) and stop what it receives (RFC 9000 19.5).

use std::collections::BTreeMap;

use super::Lane;
use super::incoming::{End, Violation};
use super::told::Word;

impl Lane {
    /// Resets what this end sends on a channel, with an error code below 2^62 for the
    /// application of the peer: what has not arrived is not sent any more. Nothing where the
    /// peer is known to have all of it.
    pub fn reset(&mut self, channel: u64, code: u64) {
        self.outgoing.reset(channel, code);
    }

    /// Stops what the peer sends on a channel, with an error code below 2^62 for its
    /// application: what has arrived is thrown away, and so is what is under way. Nothing
    /// where it has ended.
    pub fn stop(&mut self, channel: u64, code: u64) {
        if self.incoming.stop(channel) {
            self.outgoing.told.set(Word::Stop(channel, code));
        }
        self.outgoing.told.forget_credit(channel);
        self.tell_credit();
    }

    /// How a channel of the peer has ended, once all of it has been read that can be; it is
    /// forgotten then.
    pub fn end(&mut self, channel: u64) -> Option<End> {
        let end = self.incoming.end(channel);
        if end.is_some() {
            self.outgoing.told.forget_credit(channel);
        }
        end
    }

    /// Whether a channel of the peer has been read to its end, whatever that is.
    #[cfg(test)]
    pub(crate) fn ended(&mut self, channel: u64) -> bool {
        self.end(channel).is_some()
    }

    /// Channels that the peer has stopped, and its error codes, since this was asked last:
    /// what this end sent there is reset.
    pub fn take_stops(&mut self) -> BTreeMap<u64, u64> {
        self.outgoing.take_stops()
    }

    /// Whether both directions of a channel have ended, and nothing of it is left.
    pub fn is_over(&self, channel: u64) -> bool {
        self.outgoing.is_done(channel) && self.incoming.is_over(channel)
    }

    /// Bytes that may be written to a channel now; none where this end, or a stop of the
    /// peer, has ended it.
    pub fn writable(&self, channel: u64) -> Option<u64> {
        self.outgoing.room(channel)
    }

    /// Bytes of a channel that have not been sent once.
    pub fn unsent(&self, channel: u64) -> u64 {
        self.outgoing.unsent(channel)
    }

    pub(super) fn take_reset(
        &mut self,
        channel: u64,
        code: u64,
        size: u64,
    ) -> Result<(), Violation> {
        self.check_new(channel)?;
        self.incoming.reset(channel, code, size)?;
        self.outgoing.told.forget_credit(channel);
        self.outgoing.told.forget_stop(channel);
        self.tell_credit();
        Ok(())
    }

    /// Whether the peer may send on a channel, which is new or is not.
    pub(super) fn check_new(&self, channel: u64) -> Result<(), Violation> {
        match self.incoming.knows(channel) {
            true => Ok(()),
            false => self.outgoing.check_open(),
        }
    }

    pub(super) fn tell_credit(&mut self) {
        while let Some(credit) = self.incoming.credit() {
            self.outgoing.told.set(credit);
        }
    }
}
