//! What programs wait for on a session.

use std::collections::HashMap;
use std::task::Waker;

use noq_proto::{ConnectionHandle, StreamEvent};
use rangemap::RangeSet;
use tokio::sync::broadcast;

use super::ended::Ended;
use crate::{Connection, Event};

/// Events that a slow listener may be behind.
const EVENTS: usize = 256;
/// Bytes that wait in the lane for room on a path before a writer waits, too: some
/// milliseconds of the fastest accesses, so that what is written is sent soon.
const BACKLOG: u64 = 1 << 20;

/// A path has come or gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The access; none if it is none of those that are known.
    pub access: Option<String>,
    /// Whether it carries data now.
    pub up: bool,
    /// Why not, in words; empty where it does.
    pub why: String,
}

/// One session, as long as a program holds it.
pub(super) struct Live {
    /// None once it has ended.
    pub(super) handle: Option<ConnectionHandle>,
    pub(super) connected: bool,
    pub(super) ended: Option<Ended>,
    pub(super) readers: HashMap<u64, Waker>,
    pub(super) writers: HashMap<u64, Waker>,
    /// Who waits until the peer has all of a stream.
    pub(super) finishers: HashMap<u64, Waker>,
    /// Who waits for a stream to be opened, by either end, or for messages.
    pub(super) others: Vec<Waker>,
    /// Channels that this end has opened.
    pub(super) opened: u64,
    /// Channels of the peer that were accepted.
    pub(super) accepted: RangeSet<u64>,
    pub(super) events: broadcast::Sender<PathChange>,
}

impl Live {
    pub(super) fn new(handle: ConnectionHandle) -> Self {
        Self {
            handle: Some(handle),
            connected: false,
            ended: None,
            readers: HashMap::new(),
            writers: HashMap::new(),
            finishers: HashMap::new(),
            others: Vec::new(),
            opened: 0,
            accepted: RangeSet::new(),
            events: broadcast::channel(EVENTS).0,
        }
    }

    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Connected => {
                self.connected = true;
                self.wake_others();
            }
            Event::Lost(reason) => self.end(reason),
            Event::Refused(reason) => self.end(reason),
            Event::PathUp { access } => self.tell(access, true, String::new()),
            Event::PathDown { access, why } => self.tell(access, false, why),
            Event::Stream(event) => match event {
                StreamEvent::Readable { id } => wake(self.readers.remove(&u64::from(id))),
                StreamEvent::Writable { id } => wake(self.writers.remove(&u64::from(id))),
                StreamEvent::Finished { id } | StreamEvent::Stopped { id, .. } => {
                    wake(self.writers.remove(&u64::from(id)));
                    wake(self.finishers.remove(&u64::from(id)));
                }
                StreamEvent::Opened { .. } | StreamEvent::Available { .. } => self.wake_others(),
            },
        }
    }

    fn tell(&self, access: Option<String>, up: bool, why: String) {
        // Nobody needs to listen.
        let _ = self.events.send(PathChange { access, up, why });
    }

    fn wake_others(&mut self) {
        self.others.drain(..).for_each(Waker::wake);
    }

    pub(super) fn end(&mut self, reason: impl Into<Ended>) {
        self.handle = None;
        self.ended.get_or_insert(reason.into());
        let writing = self.writers.drain().chain(self.finishers.drain());
        let all = self.readers.drain().chain(writing);
        all.for_each(|(_, w)| w.wake());
        self.wake_others();
    }

    /// The datagram lane has no events: who waits on it is woken where there is
    /// something to do.
    pub(super) fn look(&mut self, connection: &mut Connection) {
        let server = connection.is_server();
        let Some(lane) = connection.lane() else {
            return;
        };
        wake_those(&mut self.readers, |channel| lane.is_readable(channel));
        if lane.backlog() < BACKLOG {
            self.writers.drain().for_each(|(_, w)| w.wake());
        }
        // Not those that are not done: they would come back here at once, for a round trip.
        wake_those(&mut self.finishers, |channel| lane.is_done(channel));
        let new = |c: &u64| (c & 1 == 1) != server && !self.accepted.contains(c);
        if !self.others.is_empty() && (lane.has_message() || lane.channels().any(|c| new(&c))) {
            self.wake_others();
        }
    }

    /// Whether a writer has to wait.
    pub(super) fn is_full(connection: &mut Connection) -> bool {
        connection.lane().is_some_and(|l| l.backlog() >= BACKLOG)
    }

    pub(super) fn wait(&mut self, waker: &Waker) {
        if !self.others.iter().any(|w| w.will_wake(waker)) {
            self.others.push(waker.clone());
        }
    }
}

/// Wakes those whose channel is ready, who then wait no more.
fn wake_those(waiting: &mut HashMap<u64, Waker>, ready: impl Fn(u64) -> bool) {
    waiting.retain(|channel, waker| {
        let ready = ready(*channel);
        if ready {
            waker.wake_by_ref();
        }
        !ready
    });
}

fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}
