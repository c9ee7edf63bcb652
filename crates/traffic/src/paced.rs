//! Paced messages over a stream or as UDP datagrams, one of a length every so often.
//!
//! A message is stamped when the pacing timer made it, and then waits in the
//! application while the socket takes nothing, as a live source's data would:
//! that wait is part of its latency. How late the timer itself was, the host's
//! doing, is reported apart.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use braid_core::{Rate, Time};
use nix::errno::Errno;
use nix::poll::PollFlags;

use super::clock;
use super::error::{Result, TrafficError};
use super::hello::{HELLO_BYTES, Hello};
use super::latency::Recorder;
use super::message::{Arrival, Codec, Schedule, Seen};
use super::pattern::{Corruption, Pattern};
use super::report::MessageCounts;
use super::session::Session;
use super::spec::{Role, Transport};

/// Bytes read from a stream at once; more than any datagram has.
const CHUNK: usize = 256 * 1024;
/// Messages written or read before the other direction gets its turn.
const TURN: usize = 64;

/// The sending half.
struct Tx {
    codec: Codec,
    schedule: Schedule,
    /// Number of the message that is made next.
    next: u64,
    /// Messages made and not yet written: number and stamp.
    queue: VecDeque<(u64, Time)>,
    /// The message being written, and how much of it is.
    current: Vec<u8>,
    written: usize,
    in_window: bool,
    sent: u64,
    max_late: Duration,
    /// Count of the times when the kernel took no datagram, and what it said last.
    refused: Option<(u64, io::Error)>,
}

/// The receiving half.
struct Rx<'d> {
    codec: Codec,
    schedule: Schedule,
    buf: Vec<u8>,
    /// Bytes in `buf`: the start of a message of a stream.
    have: usize,
    /// Bytes of messages read so far.
    offset: u64,
    seen: Seen,
    counts: MessageCounts,
    delays: Option<&'d mut Delays>,
    lost_file: Result<()>,
}

/// One-way delays of the messages that came, by number.
pub(crate) type Delays = Vec<Option<Duration>>;

/// Sends and receives messages of one length at a payload rate, as the session has it; `delays` gets
/// those of what came.
pub(crate) fn run(
    s: &mut Session<'_, '_>,
    rate: Rate,
    message_bytes: u32,
    delays: Option<&mut Delays>,
) -> Result<()> {
    let datagrams = s.spec.transport == Transport::Udp;
    if !datagrams {
        s.conn.set_nodelay()?;
    }
    let schedule = Schedule::new(s.plan, rate, message_bytes);
    let codec = |label| Codec::new(Pattern::new(s.spec.seed, label), message_bytes);
    let mut tx = s.spec.sends().then(|| Tx {
        codec: codec(s.spec.tx_label()),
        schedule,
        next: 0,
        queue: VecDeque::new(),
        current: vec![0; message_bytes as usize],
        written: message_bytes as usize,
        in_window: false,
        sent: 0,
        max_late: Duration::ZERO,
        refused: None,
    });
    let mut rx = None;
    if s.spec.receives() {
        s.latency = Some(Recorder::new(
            s.plan,
            1.0,
            s.spec.csv.as_deref(),
            "latency_ms",
        )?);
        rx = Some(Rx {
            codec: codec(s.spec.rx_label()),
            schedule,
            buf: vec![0; CHUNK + message_bytes as usize],
            have: 0,
            offset: 0,
            seen: Seen::default(),
            counts: MessageCounts::default(),
            delays,
            lost_file: Ok(()),
        });
    }
    s.sleep_until_start()?;
    if rx.is_some() {
        s.gaps.due(s.plan.start);
    }
    let result = flow(s, &mut tx, &mut rx, datagrams);
    count(s, schedule, &tx, &rx);
    result?;
    if let Some((n, e)) = tx.and_then(|tx| tx.refused) {
        return Err(TrafficError::io(
            format!(
                "send {n} of the datagrams to {} (the last error)",
                s.conn.peer
            ),
            e,
        ));
    }
    rx.map_or(Ok(()), |rx| rx.lost_file)
}

/// Sums up for the report.
fn count(s: &mut Session<'_, '_>, schedule: Schedule, tx: &Option<Tx>, rx: &Option<Rx<'_>>) {
    let window = schedule.window();
    let mut counts = rx
        .as_ref()
        .map_or_else(MessageCounts::default, |rx| rx.counts);
    counts.due = window.end - window.start;
    if rx.is_some() {
        counts.lost = counts.due.saturating_sub(counts.received);
    }
    if let Some(tx) = tx {
        counts.sent = tx.sent;
        counts.max_late_ms = tx.max_late.as_secs_f64() * 1e3;
    }
    s.messages = Some(counts);
}

fn flow(
    s: &mut Session<'_, '_>,
    tx: &mut Option<Tx>,
    rx: &mut Option<Rx<'_>>,
    datagrams: bool,
) -> Result<()> {
    let end = s.plan.end;
    // What was made before the end still gets time to arrive.
    let limit = end + s.spec.grace;
    let mut said_goodbye = false;
    loop {
        let mut blocked = false;
        if let Some(tx) = tx {
            tx.make(clock::now());
            blocked = tx.write(s)?;
        }
        let written = tx.as_ref().is_none_or(Tx::complete);
        if tx.is_some() && written && !said_goodbye && !datagrams {
            s.observe();
            // If this fails the other end is gone, which the next read tells.
            let _ = s.conn.finish_writing();
            said_goodbye = true;
        }
        let closed = read(s, rx, datagrams)?;
        let complete = written && rx.as_ref().is_none_or(Rx::complete);
        let now = clock::now();
        if closed && !complete && now < end {
            return Err(s.gone("closed the connection"));
        }
        // A sender over a stream stays until the receiver has it all.
        if closed || (complete && (datagrams || rx.is_some())) {
            s.sleep(end)?;
            break;
        }
        if now >= limit {
            s.conn.abort_on_close();
            break;
        }
        let mut wake = limit;
        let mut interest = PollFlags::POLLIN;
        if let Some(tx) = tx {
            if blocked {
                interest |= PollFlags::POLLOUT;
            } else if !tx.idle() {
                wake = now;
            }
            wake = wake.min(tx.next_due());
        }
        s.wait(interest, wake)?;
    }
    if let Some(rx) = rx
        && rx.offset == 0
    {
        return Err(TrafficError::Peer(format!(
            "no message came from {} in {:.1} s: check that the path is up and that the other end \
             sends",
            s.conn.peer,
            s.spec.duration.as_secs_f64()
        )));
    }
    Ok(())
}

impl Tx {
    /// Whether nothing is left to make or to write.
    fn complete(&self) -> bool {
        self.next == self.schedule.total() && self.idle()
    }

    /// Whether nothing made is left to write.
    fn idle(&self) -> bool {
        self.queue.is_empty() && self.written == self.current.len()
    }

    fn next_due(&self) -> Time {
        if self.next < self.schedule.total() {
            self.schedule.due(self.next)
        } else {
            Time::MAX
        }
    }

    fn make(&mut self, now: Time) {
        while self.next_due() <= now {
            self.max_late = self.max_late.max(now.since(self.next_due()));
            self.queue.push_back((self.next, now));
            self.next += 1;
        }
    }

    /// Writes some of what waits; whether the socket takes no more for now.
    fn write(&mut self, s: &mut Session<'_, '_>) -> Result<bool> {
        let datagrams = s.spec.transport == Transport::Udp;
        let window = self.schedule.window();
        for _ in 0..TURN {
            if self.written == self.current.len() {
                let Some((number, stamp)) = self.queue.pop_front() else {
                    break;
                };
                self.codec.write(number, stamp, &mut self.current);
                self.written = 0;
                self.in_window = window.contains(&number);
            }
            match s.conn.write(&self.current[self.written..]) {
                Ok(Some(n)) => {
                    self.written += n;
                    s.sent.add(clock::now(), n as u64);
                    if self.written == self.current.len() {
                        self.sent += u64::from(self.in_window);
                    }
                }
                Ok(None) => return Ok(true),
                Err(e) if datagrams && passing(&e) => {
                    // The path is down: a datagram is lost, the next may pass.
                    self.written = self.current.len();
                    let times = self.refused.take().map_or(0, |r| r.0) + 1;
                    self.refused = Some((times, e));
                }
                Err(_) if clock::now() >= s.plan.end => {
                    self.queue.clear();
                    self.written = self.current.len();
                }
                Err(e) => return Err(broken(s, &e)),
            }
        }
        Ok(false)
    }
}

/// Errors of sending that a datagram socket gets over.
fn passing(e: &io::Error) -> bool {
    let known = [
        Errno::ENETUNREACH,
        Errno::EHOSTUNREACH,
        Errno::ENETDOWN,
        Errno::ENOBUFS,
        Errno::EPERM,
    ];
    e.raw_os_error()
        .is_some_and(|n| known.contains(&Errno::from_raw(n)))
}

impl Rx<'_> {
    /// Whether every message has come.
    fn complete(&self) -> bool {
        self.offset / self.codec.bytes() >= self.schedule.total()
    }

    fn message(&mut self, s: &mut Session<'_, '_>, from: usize, to: usize, now: Time) {
        let ordered = s.spec.transport != Transport::Udp;
        let due = self.seen.next();
        let read = self
            .codec
            .read(&self.buf[from..to])
            .and_then(|(number, stamp)| {
                // A stream has no business to skip, repeat or reorder.
                let misplaced = ordered && number != due;
                if misplaced || number >= self.schedule.total() {
                    let bytes = self.codec.bytes();
                    return Err(Corruption {
                        offset: 0,
                        expected: due as u8,
                        found: number as u8,
                        belongs_at: Some(number.saturating_mul(bytes)),
                    });
                }
                Ok((number, stamp))
            });
        let (number, stamp) = match read {
            Ok(v) => v,
            Err(c) => {
                s.corruption.get_or_insert(Corruption {
                    offset: self.offset + c.offset,
                    ..c
                });
                self.offset += (to - from) as u64;
                return;
            }
        };
        let arrival = self.seen.take(number);
        let counted = u64::from(self.schedule.window().contains(&number));
        match arrival {
            Arrival::Duplicate => {
                self.counts.duplicated += counted;
                return;
            }
            Arrival::Reordered => self.counts.reordered += counted,
            Arrival::Next => {}
        }
        self.offset += (to - from) as u64;
        self.counts.received += counted;
        s.received.add(now, (to - from) as u64);
        s.gaps.received(now);
        s.gaps.idle(now);
        // Nothing more is due before the next message is.
        s.gaps.due(now.max(self.schedule.due(self.seen.next())));
        let delay = now.since(stamp);
        if let Some(delays) = &mut self.delays {
            let at = number as usize;
            if delays.len() <= at {
                delays.resize(at + 1, None);
            }
            delays[at] = Some(delay);
        }
        if let Some(r) = &mut s.latency
            && let Err(e) = r.record(self.schedule.due(number), delay)
        {
            self.lost_file = Err(e);
        }
    }
}

/// Reads what is there; whether the other end has closed.
fn read(s: &mut Session<'_, '_>, rx: &mut Option<Rx<'_>>, datagrams: bool) -> Result<bool> {
    let mut small = [0; HELLO_BYTES];
    for _ in 0..TURN {
        let buf = match rx.as_mut() {
            Some(rx) => &mut rx.buf[rx.have..],
            None => &mut small[..],
        };
        let n = match s.conn.read(buf) {
            Ok(Some(0)) if !datagrams => return Ok(true),
            Ok(Some(n)) => n,
            Ok(None) => break,
            // The other end reset the connection, or left its UDP port.
            Err(_) if clock::now() >= s.plan.end => return Ok(true),
            Err(e) if datagrams && passing(&e) => continue,
            Err(e) => return Err(broken(s, &e)),
        };
        let now = clock::now();
        if datagrams && n == HELLO_BYTES {
            greet_again(s, &buf[..n]);
            continue;
        }
        let Some(rx) = rx.as_mut() else {
            return Err(s.unexpected_data());
        };
        if datagrams {
            rx.message(s, 0, n, now);
            continue;
        }
        let size = rx.codec.bytes() as usize;
        let (mut from, to) = (0, rx.have + n);
        while to - from >= size {
            rx.message(s, from, from + size, now);
            from += size;
        }
        rx.buf.copy_within(from..to, 0);
        rx.have = to - from;
        if n < CHUNK {
            break;
        }
    }
    Ok(false)
}

/// The server's answer was lost and the client asks again.
fn greet_again(s: &Session<'_, '_>, datagram: &[u8]) {
    if s.spec.role == Role::Server && Hello::from_bytes(datagram).is_some() {
        let answer = Hello {
            digest: s.spec.digest(),
            start: s.plan.start,
        };
        // If this one is lost too, it asks once more.
        let _ = s.conn.write(&answer.to_bytes());
    }
}

fn broken(s: &Session<'_, '_>, e: &io::Error) -> TrafficError {
    let advice = match e.raw_os_error().map(Errno::from_raw) {
        Some(Errno::ECONNREFUSED) => ": nothing listens there any more",
        _ => "",
    };
    s.gone(&format!("is gone ({e}{advice})"))
}
