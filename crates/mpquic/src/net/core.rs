//! State that the task that drives an end shares with the programs that use it.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use noq_proto::{ConnectionError, ConnectionHandle, FourTuple, StreamEvent, Transmit, VarInt};

use super::live::Live;
use super::socket::{Arrived, Buffers, Sent, Socket};
use crate::connection::Outgoing;
use crate::{Connection, Dial, Error, Event, Host};

/// Bursts that wait for a socket to have room; more are lost, as in any queue.
const WAITING: usize = 64;
/// Batches that are received before anything is sent.
const BATCHES: usize = 8;
/// Bursts that are sent before others get their turn.
const AT_A_TIME: usize = 64;

/// Kind of this end: device or proxy.
pub(super) enum End {
    /// A socket for each access that has an address, and the connection that is made.
    Device { dial: Option<Box<Dial>> },
    /// A socket for each address.
    Proxy,
}

/// A socket, and what waits for it to have room.
pub(super) struct Port {
    pub(super) socket: Socket,
    waiting: VecDeque<(Transmit, Vec<u8>)>,
}

impl Port {
    pub(super) fn new(socket: Socket) -> Self {
        Self {
            socket,
            waiting: VecDeque::new(),
        }
    }
}

/// One end.
pub(super) struct Core {
    pub(super) host: Host,
    pub(super) end: End,
    /// At the device, by the number of the access.
    pub(super) ports: Vec<Option<Port>>,
    pub(super) sessions: BTreeMap<u64, Live>,
    by_handle: BTreeMap<usize, u64>,
    next: u64,
    /// Sessions that nobody has taken yet.
    pub(super) taken_in: VecDeque<u64>,
    pub(super) acceptors: Vec<Waker>,
    idlers: Vec<Waker>,
    /// Wakes the task.
    pub(super) driver: Option<Waker>,
    /// No program holds this end any more: it ends with its last connection.
    pub(super) left: bool,
    /// Why there is no connection.
    pub(super) failed: Option<Error>,
    outgoing: Vec<u8>,
}

/// One end, shared.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Core>>);

impl Shared {
    pub(super) fn new(host: Host, end: End, ports: Vec<Option<Port>>) -> Self {
        Self(Arc::new(Mutex::new(Core {
            host,
            end,
            ports,
            sessions: BTreeMap::new(),
            by_handle: BTreeMap::new(),
            next: 0,
            taken_in: VecDeque::new(),
            acceptors: Vec::new(),
            idlers: Vec::new(),
            driver: None,
            left: false,
            failed: None,
            outgoing: Vec::new(),
        })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Core> {
        // A panic under the lock is a mistake of ours, and has been told.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Core {
    /// Wakes the task that drives the sessions: it has something to do.
    pub(super) fn wake_driver(&self) {
        if let Some(driver) = &self.driver {
            driver.wake_by_ref();
        }
    }

    /// A session and its connection, while that lasts.
    pub(super) fn session(&mut self, id: u64) -> Option<(&mut Live, &mut Connection)> {
        let live = self.sessions.get_mut(&id)?;
        let connection = self.host.connection(live.handle?)?;
        Some((live, connection))
    }

    /// Begins to keep account of a connection.
    fn adopt(&mut self, handle: ConnectionHandle) -> u64 {
        let id = self.next;
        self.next += 1;
        self.sessions.insert(id, Live::new(handle));
        self.by_handle.insert(handle.0, id);
        id
    }

    /// Closes a session on purpose.
    pub(super) fn close(&mut self, id: u64, now: Instant) {
        let Some((live, connection)) = self.session(id) else {
            return;
        };
        connection.close(now, VarInt::from_u32(0), b"");
        let handle = connection.handle();
        // QUIC does not tell of an end that was asked for.
        live.end(ConnectionError::LocallyClosed);
        self.by_handle.remove(&handle.0);
        self.wake_driver();
    }

    /// Nobody holds it any more.
    pub(super) fn leave(&mut self, id: u64) {
        self.close(id, Instant::now());
        self.sessions.remove(&id);
    }

    pub(super) fn is_over(&self) -> bool {
        let dialling = matches!(&self.end, End::Device { dial: Some(d) } if d.due().is_some());
        self.left && self.host.handles().is_empty() && !dialling
    }

    /// Takes what has arrived; whether that was anything.
    pub(super) fn receive(&mut self, cx: &mut Context<'_>, buffers: &mut Buffers) -> bool {
        let mut any = false;
        let Self {
            ports, host, end, ..
        } = self;
        for (i, port) in ports.iter().enumerate() {
            let Some(port) = port else { continue };
            let now = Instant::now();
            let each = |a: Arrived| match end {
                End::Device { .. } => host.arrive(now, i, a.remote, a.ecn, a.data),
                End::Proxy => {
                    let network = FourTuple::new(a.remote, a.local);
                    host.receive(now, network, a.ecn, a.data);
                }
            };
            // All that waits, before a path is judged by what has not come; a socket that
            // fails is that of an access that does.
            let mut each = each;
            for _ in 0..BATCHES {
                if !port
                    .socket
                    .poll_receive(cx, buffers, &mut each)
                    .unwrap_or(false)
                {
                    break;
                }
                any = true;
            }
        }
        any
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.host.poll_timeout().is_some_and(|t| t <= now) {
            self.host.handle_timeout(now);
        }
        if let End::Device { dial: Some(dial) } = &mut self.end
            && dial.due().is_some_and(|t| t <= now)
            && let Err(e) = dial.tick(&mut self.host, now)
        {
            self.failed = Some(e);
            if dial.due().is_none() {
                self.end = End::Device { dial: None };
            }
            self.acceptors.drain(..).for_each(Waker::wake);
        }
    }

    /// The machine was suspended for `slept`, or the task stopped.
    pub(super) fn woke(&mut self, now: Instant, slept: Duration) {
        self.host.woke(now, slept);
        if let End::Device { dial: Some(dial) } = &mut self.end {
            dial.woke(now);
        }
    }

    /// Whether the device has no session at all.
    pub(super) fn is_without_session(&self) -> bool {
        match &self.end {
            End::Device { dial: Some(dial) } => dial.connection().is_none(),
            _ => false,
        }
    }

    /// For how long the device has had no session that is heard of.
    pub(super) fn lost_for(&self, now: Instant) -> Option<Duration> {
        match &self.end {
            End::Device { dial: Some(dial) } => dial.lost_for(now),
            _ => None,
        }
    }

    /// When [`Core::tick`] is wanted.
    pub(super) fn due(&self) -> Option<Instant> {
        let dial = match &self.end {
            End::Device { dial: Some(dial) } => dial.due(),
            _ => None,
        };
        self.host.poll_timeout().into_iter().chain(dial).min()
    }

    /// Tells what has happened; whether anything has.
    pub(super) fn tell(&mut self, now: Instant) -> bool {
        let mut any = false;
        while let Some((handle, event)) = self.host.poll(now) {
            any = true;
            let event = match &mut self.end {
                End::Device { dial: Some(dial) } => {
                    match dial.event(&mut self.host, handle, event, now) {
                        Some(event) => event,
                        None => continue,
                    }
                }
                _ => event,
            };
            self.take(handle, event, now);
        }
        for live in self.sessions.values_mut() {
            if let Some(c) = live.handle.and_then(|h| self.host.connection(h)) {
                live.look(c);
            }
        }
        any
    }

    /// Takes no more sessions in, and closes those that there are: a proxy ends.
    pub(super) fn stop(&mut self, now: Instant) {
        self.host.stop_listening();
        let all: Vec<u64> = self.sessions.keys().copied().collect();
        all.into_iter().for_each(|id| self.close(id, now));
    }

    fn take(&mut self, handle: ConnectionHandle, event: Event, now: Instant) {
        if matches!(event, Event::Connected) && !self.by_handle.contains_key(&handle.0) {
            if matches!(self.end, End::Proxy) && !self.host.is_listening() {
                // Its handshake was under way when the proxy stopped.
                if let Some(c) = self.host.connection(handle) {
                    c.close(now, VarInt::from_u32(0), b"");
                }
                return;
            }
            let id = self.adopt(handle);
            self.taken_in.push_back(id);
            self.acceptors.drain(..).for_each(Waker::wake);
        }
        let over = matches!(event, Event::Lost(_) | Event::Refused(_));
        let Some(id) = self.by_handle.get(&handle.0).copied() else {
            return;
        };
        if over {
            // The library gives the handle to another connection.
            self.by_handle.remove(&handle.0);
        }
        let Some(live) = self.sessions.get_mut(&id) else {
            return;
        };
        if let Event::Stream(StreamEvent::Stopped { id, error_code }) = &event
            && live.has_written(u64::from(*id))
            && let Some(c) = self.host.connection(handle)
        {
            // The library leaves that to its user (RFC 9000 3.5): what waits would go on to
            // be sent.
            let _ = c.quic().send_stream(*id).reset(*error_code);
        }
        live.take(event);
    }

    /// Sends; whether anything was.
    pub(super) fn transmit(&mut self, now: Instant, cx: &mut Context<'_>) -> bool {
        let any = self.empty_queues(cx);
        for _ in 0..AT_A_TIME {
            let full = |p: &Option<Port>| p.as_ref().is_some_and(|p| !p.waiting.is_empty());
            if matches!(self.end, End::Proxy) && self.ports.iter().any(full) {
                return any;
            }
            let Some(out) = self.host.poll_transmit(now, &mut self.outgoing) else {
                return any;
            };
            self.send(out, cx);
        }
        true
    }

    fn send(&mut self, mut out: Outgoing, cx: &mut Context<'_>) {
        let i = match &self.end {
            End::Device { .. } => {
                // QUIC was told a label.
                out.transmit.src_ip = None;
                out.access
            }
            End::Proxy => self.port_of(&out.transmit),
        };
        let Some(i) = i else { return };
        let Some(Some(port)) = self.ports.get_mut(i) else {
            return;
        };
        let blocked = !port.waiting.is_empty()
            || port.socket.send(&out.transmit, &self.outgoing) == Sent::Full;
        if !blocked {
            return;
        }
        if port.waiting.len() < WAITING {
            let data = self.outgoing[..out.transmit.size].to_vec();
            port.waiting.push_back((out.transmit, data));
        }
        port.socket.poll_room(cx);
        // The proxy's sockets are no accesses, and it sends nothing while one is full.
        if matches!(self.end, End::Device { .. }) {
            self.host.hold(i, true);
        }
    }

    /// The socket that a burst of the proxy leaves by.
    fn port_of(&self, t: &Transmit) -> Option<usize> {
        let fits = |at: std::net::SocketAddr| {
            let same = at.is_ipv4() == t.destination.is_ipv4();
            same && (at.ip().is_unspecified() || t.src_ip.is_none_or(|ip| ip == at.ip()))
        };
        let local = |p: &Option<Port>| p.as_ref()?.socket.local().ok();
        self.ports.iter().position(|p| local(p).is_some_and(fits))
    }

    fn empty_queues(&mut self, cx: &mut Context<'_>) -> bool {
        let mut any = false;
        for (i, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port.as_mut().filter(|p| !p.waiting.is_empty()) else {
                continue;
            };
            while let Some((transmit, data)) = port.waiting.front() {
                if !port.socket.poll_room(cx) || port.socket.send(transmit, data) == Sent::Full {
                    // That it is full was noticed after it was asked for room.
                    port.socket.poll_room(cx);
                    break;
                }
                port.waiting.pop_front();
                any = true;
            }
            if port.waiting.is_empty() && matches!(self.end, End::Device { .. }) {
                self.host.hold(i, false);
            }
        }
        any
    }

    /// The names of the accesses over which data may flow in any session.
    pub(super) fn accesses_that_work(&mut self, now: Instant) -> Vec<String> {
        let mut all = Vec::new();
        for handle in self.host.handles() {
            let Some(connection) = self.host.connection(handle) else {
                continue;
            };
            let works = connection.path_infos(now).into_iter().filter(|p| p.usable);
            all.extend(works.filter_map(|p| p.access));
        }
        all
    }

    /// The device's link of access number `i` has changed. Its socket is another then.
    pub(super) fn link(&mut self, i: usize, up: bool, address: Option<IpAddr>, port: Option<Port>) {
        self.ports[i] = port;
        self.host.hold(i, false);
        if let End::Device { dial: Some(dial) } = &mut self.end {
            dial.link(&mut self.host, i, up, address, Instant::now());
        }
        self.wake_driver();
    }

    /// Access number `i` of the device sends from another port.
    pub(super) fn renew(&mut self, i: usize, port: Port) {
        self.ports[i] = Some(port);
        self.host.hold(i, false);
        self.wake_driver();
    }

    /// The next session that nobody has taken yet.
    pub(super) fn poll_session(&mut self, cx: &Context<'_>) -> Poll<Result<u64, Error>> {
        if let Some(e) = self.failed.take() {
            return Poll::Ready(Err(e));
        }
        match self.taken_in.pop_front() {
            Some(id) => Poll::Ready(Ok(id)),
            None => {
                self.acceptors.push(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Whether there is no connection left, not even one whose end the peer may not know.
    pub(super) fn poll_idle(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.host.handles().is_empty() {
            return Poll::Ready(());
        }
        self.idlers.push(cx.waker().clone());
        Poll::Pending
    }

    /// Wakes those who wait for that.
    pub(super) fn tell_idle(&mut self) {
        if !self.idlers.is_empty() && self.host.handles().is_empty() {
            self.idlers.drain(..).for_each(Waker::wake);
        }
    }

    /// Gives up what has not become a connection yet; none takes the place of one that has.
    pub(super) fn stop_dialling(&mut self) {
        if let End::Device { dial } = &mut self.end
            && let Some(d) = dial
        {
            d.stop(&mut self.host, Instant::now());
            if d.connection().is_none() {
                *dial = None;
            }
        }
    }

    /// Ends everything, as the task cannot go on.
    pub(super) fn give_up(&mut self, why: io::Error) {
        self.failed = Some(Error::Io {
            attempted: "set a timer".to_owned(),
            source: why,
        });
        for live in self.sessions.values_mut() {
            live.end(ConnectionError::LocallyClosed);
        }
        self.acceptors.drain(..).for_each(Waker::wake);
    }
}
