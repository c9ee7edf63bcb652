//! The proxy sends bytes that tell their place, and the device checks them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use braid_core::Time;
use bytes::Bytes;
use noq_proto::{ConnectionHandle, Dir, ReadError, StreamEvent, StreamId, WriteError};

use crate::{Connection, Event};

#[derive(Debug, Default)]
struct Sending {
    sent: u64,
    stream: Option<StreamId>,
    finished: bool,
}

/// Channel of the datagram lane that carries the download.
const CHANNEL: u64 = 0;
/// Bytes that the application keeps waiting there.
const BACKLOG: u64 = 1 << 20;

/// One download.
#[derive(Debug, Default)]
pub(super) struct App {
    total: u64,
    /// Progress of every connection that the proxy has: bytes sent, and on which stream.
    sending: BTreeMap<usize, Sending>,
    pub(super) received: u64,
    incoming: Option<StreamId>,
    /// Sessions that the device has had.
    pub(super) sessions: u64,
    /// Sessions that the device was told are lost.
    pub(super) lost: u64,
    /// Whether sessions may be lost.
    may_be_lost: bool,
    /// The device has all of it.
    complete: bool,
    /// Description of what went wrong.
    pub(super) wrong: Option<String>,
    pub(super) arrivals: Vec<(Time, u64)>,
    pub(super) log: Vec<String>,
}

/// A prime: no packet or window is a multiple of it.
pub(super) const PERIOD: u64 = 65_521;

/// The bytes from `place` on, `n` of them, at most [`PERIOD`].
pub(super) fn bytes(place: u64, n: usize) -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    let byte = |i: u64| ((i % PERIOD).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    let pattern = PATTERN.get_or_init(|| (0..2 * PERIOD).map(byte).collect());
    let begin = (place % PERIOD) as usize;
    &pattern[begin..begin + n]
}

impl App {
    pub(super) fn new(total: u64) -> Self {
        Self {
            total,
            ..Self::default()
        }
    }

    /// Nothing is sent; sessions may be lost, and others take their place.
    pub(super) fn renewed() -> Self {
        Self {
            may_be_lost: true,
            ..Self::new(0)
        }
    }

    pub(super) fn done(&self) -> bool {
        self.complete || self.wrong.is_some()
    }

    /// The device has tried for long enough.
    pub(super) fn not_connected(&mut self, why: String) {
        if !self.may_be_lost {
            self.fail(why);
        }
    }

    fn fail(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(super) fn at_device(&mut self, event: &Event) {
        match event {
            Event::Connected => self.sessions += 1,
            Event::Lost(_) if self.may_be_lost => self.lost += 1,
            Event::Lost(reason) => self.fail(format!("the device's end was lost: {reason}")),
            Event::PathUp { .. } | Event::PathDown { .. } => self.log.push(format!("{event:?}")),
            _ => {}
        }
    }

    pub(super) fn at_proxy(&mut self, handle: ConnectionHandle, event: &Event) {
        match event {
            Event::Connected => {
                self.sending.insert(handle.0, Sending::default());
            }
            // That of the device tells; attempts of it that were not needed are closed.
            Event::Lost(_) => {
                self.sending.remove(&handle.0);
            }
            // Transfers of others, over sessions that may be lost, are stopped on purpose.
            Event::Stream(StreamEvent::Stopped { .. }) if !self.may_be_lost => {
                self.fail("stopped".to_owned());
            }
            _ => {}
        }
    }

    /// Sends; says whether something was.
    pub(super) fn proxy(&mut self, handle: ConnectionHandle, c: &mut Connection) -> bool {
        let total = self.total;
        let Some(s) = self.sending.get_mut(&handle.0).filter(|s| !s.finished) else {
            return false;
        };
        if let Some(lane) = c.lane() {
            let mut any = false;
            while s.sent < total {
                let n = (total - s.sent).min(PERIOD);
                let taken = lane.write(CHANNEL, Bytes::from_static(bytes(s.sent, n as usize)));
                s.sent += taken as u64;
                any |= taken > 0;
                if taken == 0 || lane.backlog() > BACKLOG {
                    return any;
                }
            }
            lane.finish(CHANNEL);
            s.finished = true;
            return true;
        }
        if s.stream.is_none() {
            s.stream = c.quic().streams().open(Dir::Uni);
        }
        let Some(id) = s.stream else {
            return false;
        };
        let mut any = false;
        while s.sent < total {
            let n = (total - s.sent).min(PERIOD);
            let data = Bytes::from_static(bytes(s.sent, n as usize));
            let written = c.quic().send_stream(id).write_chunks(&mut &mut [data][..]);
            c.set_stream_blocked(!matches!(written, Ok(n) if n > 0));
            match written {
                Ok(n) if n > 0 => {
                    s.sent += n as u64;
                    any = true;
                }
                Ok(_) | Err(WriteError::Blocked) => return any,
                Err(e) => {
                    self.fail(format!("write: {e}"));
                    return true;
                }
            }
        }
        s.finished = c.quic().send_stream(id).finish().is_ok();
        true
    }

    /// Receives and checks; says whether something came.
    pub(super) fn device(&mut self, c: &mut Connection, now: Time) -> bool {
        if c.lane().is_some() {
            return self.device_lane(c, now);
        }
        let id = match self.incoming {
            Some(id) => id,
            None => match c.quic().streams().accept(Dir::Uni) {
                Some(id) => *self.incoming.insert(id),
                None => return false,
            },
        };
        if self.complete {
            return false;
        }
        let mut stream = c.quic().recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return false;
        };
        let before = self.received;
        let mut end = None;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    let wanted = bytes(self.received, chunk.bytes.len());
                    let right = chunk.offset == self.received && chunk.bytes[..] == *wanted;
                    if !right {
                        end = Some(format!("wrong bytes at {}", chunk.offset));
                        break;
                    }
                    self.received += chunk.bytes.len() as u64;
                }
                Ok(None) => {
                    self.complete = self.received == self.total;
                    if !self.complete {
                        end = Some(format!("it ended at {}", self.received));
                    }
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(e) => {
                    end = Some(format!("read: {e}"));
                    break;
                }
            }
        }
        // What is to be sent for it is asked for anyway.
        let _ = chunks.finalize();
        if let Some(what) = end {
            self.fail(what);
        }
        if self.received > before {
            self.arrivals.push((now, self.received));
        }
        self.received > before
    }

    fn device_lane(&mut self, c: &mut Connection, now: Time) -> bool {
        let Some(lane) = c.lane() else {
            return false;
        };
        let before = self.received;
        while let Some(data) = lane.read(CHANNEL) {
            let right = data[..] == *bytes(self.received, data.len());
            if !right {
                self.wrong = Some(format!("wrong bytes at {}", self.received));
                return true;
            }
            self.received += data.len() as u64;
        }
        if !self.complete && lane.ended(CHANNEL) {
            self.complete = self.received == self.total;
            if !self.complete {
                self.wrong = Some(format!("it ended at {}", self.received));
            }
        }
        if self.received > before {
            self.arrivals.push((now, self.received));
        }
        self.received > before
    }
}
