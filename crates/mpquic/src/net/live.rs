//! Tasks of programs that wait on a session, and what they wait for.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::task::Waker;

use noq_proto::{ConnectionHandle, StreamEvent};
use tokio::sync::broadcast;

use super::session_end::Ended;
use crate::lane::{Arrived, Lane};
use crate::{Connection, Event};

/// Events that a slow listener may be behind.
const EVENTS: usize = 256;
/// Bytes of all channels that wait in the lane, for room on a path or for credit of the peer, before
/// writers wait, too: some milliseconds of the fastest accesses, so that what is written is sent soon.
const BACKLOG: u64 = 1 << 20;
/// Bytes of one channel that may wait however many others do, so that each has something to send
/// when its turn comes.
const LEAST_SHARE: u64 = 16 << 10;

/// Channels of the lane that this end has open at a time; others wait. The peer ends the
/// session over more than 16384, and may have some that are over here and unread there.
const MAX_OPEN: usize = 12_000;

/// Kind of a change of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// Path that carries data from now on.
    Up,
    /// Path on which nothing comes back.
    Silent,
    /// Path on which something comes back again.
    Heard,
    /// Path that has ended.
    Down,
}

/// Change of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathChange {
    /// The access; none if it is none of those that are known.
    pub access: Option<String>,
    /// Kind of the change.
    pub what: PathEvent,
    /// Why it has ended, in words; else empty.
    pub why: String,
}

/// One session, as long as a program holds it.
pub(super) struct Live {
    /// Handle of the connection; none once it has ended.
    pub(super) handle: Option<ConnectionHandle>,
    pub(super) connected: bool,
    pub(super) ended: Option<Ended>,
    pub(super) readers: HashMap<u64, Waker>,
    pub(super) writers: HashMap<u64, Waker>,
    /// Tasks that wait until the peer has all of a stream, by stream.
    pub(super) finishers: HashMap<u64, Waker>,
    /// Streams that programs write, and the error code where the peer has stopped them.
    pub(super) writing: HashMap<u64, Option<u64>>,
    /// Tasks that wait for the peer to stop a stream, whether or not it writes.
    pub(super) watchers: HashMap<u64, Waker>,
    /// Streams of QUIC that were shut down and dropped, and that the peer does not have all of.
    pub(super) leaving: HashSet<u64>,
    /// Tasks that wait for the end of the session, for room to open a stream, for a stream that the
    /// peer opens, and for a message: each is woken for what it waits for.
    pub(super) enders: Waiters,
    pub(super) openers: Waiters,
    pub(super) acceptors: Waiters,
    pub(super) listeners: Waiters,
    /// Whether something has changed that the task that drives the session is to handle.
    pub(super) driver_wanted: bool,
    /// Channels that this end has opened, and those of them that may not be over.
    opened: u64,
    open: BTreeSet<u64>,
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
            writing: HashMap::new(),
            watchers: HashMap::new(),
            leaving: HashSet::new(),
            enders: Waiters::default(),
            openers: Waiters::default(),
            acceptors: Waiters::default(),
            listeners: Waiters::default(),
            driver_wanted: false,
            opened: 0,
            open: BTreeSet::new(),
            events: broadcast::channel(EVENTS).0,
        }
    }

    pub(super) fn take(&mut self, event: Event) {
        match event {
            Event::Connected => self.connected = true,
            Event::Lost(reason) => self.end(reason),
            Event::Refused(reason) => self.end(reason),
            Event::PathUp { access } => self.tell(access, PathEvent::Up, String::new()),
            Event::PathSilent { access, silent } => {
                let what = match silent {
                    true => PathEvent::Silent,
                    false => PathEvent::Heard,
                };
                self.tell(access, what, String::new());
            }
            Event::PathDown { access, why } => self.tell(access, PathEvent::Down, why),
            Event::Stream(event) => match event {
                StreamEvent::Readable { id } => wake(self.readers.remove(&u64::from(id))),
                StreamEvent::Writable { id } => wake(self.writers.remove(&u64::from(id))),
                StreamEvent::Finished { id } => {
                    self.leaving.remove(&u64::from(id));
                    wake(self.writers.remove(&u64::from(id)));
                    wake(self.finishers.remove(&u64::from(id)));
                }
                StreamEvent::Stopped { id, error_code } => {
                    self.stopped(u64::from(id), error_code.into_inner());
                }
                StreamEvent::Opened { .. } => self.acceptors.wake(),
                StreamEvent::Available { .. } => self.openers.wake(),
            },
        }
    }

    /// Opens a channel of the lane, if there are not too many. Those of the device are even,
    /// those of the proxy odd, as with streams of QUIC (RFC 9000 2.1).
    pub(super) fn open(&mut self, lane: &Lane, server: bool) -> Option<u64> {
        self.may_open(lane).then(|| {
            let id = 2 * self.opened + u64::from(server);
            self.opened += 1;
            self.open.insert(id);
            id
        })
    }

    fn may_open(&mut self, lane: &Lane) -> bool {
        if self.open.len() >= MAX_OPEN {
            self.open.retain(|id| !lane.is_closed(*id));
        }
        self.open.len() < MAX_OPEN
    }

    /// Whether a program writes a stream, or did: not one that nobody has accepted, which the
    /// library must not be told to reset (it counts it as one less than there were).
    pub(super) fn has_written(&self, id: u64) -> bool {
        self.writing.contains_key(&id) || self.leaving.contains(&id)
    }

    /// The peer has stopped a stream, which is reset.
    fn stopped(&mut self, id: u64, code: u64) {
        self.leaving.remove(&id);
        if let Some(stopped) = self.writing.get_mut(&id) {
            *stopped = Some(code);
        }
        wake(self.writers.remove(&id));
        wake(self.finishers.remove(&id));
        wake(self.watchers.remove(&id));
    }

    /// Nobody writes a stream any more.
    pub(super) fn leave_writing(&mut self, id: u64, connection: &mut Connection) {
        self.writing.remove(&id);
        self.finishers.remove(&id);
        self.watchers.remove(&id);
        self.writers.remove(&id);
        connection.set_stream_blocked(!self.writers.is_empty());
    }

    fn tell(&self, access: Option<String>, what: PathEvent, why: String) {
        // Nobody needs to listen.
        let _ = self.events.send(PathChange { access, what, why });
    }

    pub(super) fn end(&mut self, reason: impl Into<Ended>) {
        self.handle = None;
        self.ended.get_or_insert(reason.into());
        let writing = self.writers.drain().chain(self.finishers.drain());
        let all = self.readers.drain().chain(self.watchers.drain());
        let all = all.chain(writing);
        all.for_each(|(_, w)| w.wake());
        let waiting = [
            &mut self.enders,
            &mut self.openers,
            &mut self.acceptors,
            &mut self.listeners,
        ];
        waiting.into_iter().for_each(Waiters::wake);
    }

    /// The datagram lane has no events: who waits on it is woken where what it waits for is
    /// there. On any other condition it would come back at once, have the task look again,
    /// and so on for as long as that holds.
    pub(super) fn look(&mut self, connection: &mut Connection) {
        let server = connection.is_server();
        let Some(lane) = connection.lane() else {
            return;
        };
        for (channel, code) in lane.take_stops() {
            self.stopped(channel, code);
        }
        match lane.take_arrived() {
            Arrived::On(channels) => {
                for channel in channels {
                    if lane.is_readable(channel) {
                        wake(self.readers.remove(&channel));
                    }
                }
            }
            Arrived::Anywhere => {
                wake_those(&mut self.readers, |channel| lane.is_readable(channel));
            }
        }
        if !self.writers.is_empty() {
            let sending = lane.sending();
            wake_those(&mut self.writers, |channel| {
                room(lane, sending, channel) != Some(0)
            });
        }
        wake_those(&mut self.finishers, |channel| lane.is_done(channel));
        if !self.acceptors.is_empty() && lane.has_opened(!server) {
            self.acceptors.wake();
        }
        if lane.has_message() {
            self.listeners.wake();
        }
        if !self.openers.is_empty() && self.may_open(lane) {
            self.openers.wake();
        }
    }
}

/// Bytes that may be written to a channel of the lane now; none where it has ended.
pub(super) fn lane_room(lane: &Lane, channel: u64) -> Option<u64> {
    room(lane, lane.sending(), channel)
}

/// Each channel has its share of what may wait. By the sum alone, a writer that always has more would
/// fill it again whenever there is room, and one that begins would never come to write.
fn room(lane: &Lane, sending: usize, channel: u64) -> Option<u64> {
    let room = lane.writable(channel)?;
    let unsent = lane.unsent(channel);
    let others = sending as u64 - u64::from(unsent > 0 && sending > 0);
    let share = (BACKLOG / (others + 1)).max(LEAST_SHARE);
    Some(if unsent >= share { 0 } else { room })
}

/// Tasks that wait for one thing.
#[derive(Default)]
pub(super) struct Waiters(Vec<Waker>);

impl Waiters {
    pub(super) fn add(&mut self, waker: &Waker) {
        if !self.0.iter().any(|w| w.will_wake(waker)) {
            self.0.push(waker.clone());
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn wake(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
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
