//! Bulk: as much as passes, for a time or up to a size.

use braid_core::Time;
use nix::poll::PollFlags;
use serde::{Deserialize, Serialize};

use super::clock;
use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::pattern::{Pattern, Verifier};
use super::session::Session;
use super::spec::TrafficSpec;

/// Bytes per system call.
const CHUNK: usize = 256 * 1024;

/// The sending half.
struct Tx {
    pattern: Pattern,
    /// Size of the transfer; `u64::MAX` when time ends it.
    limit: u64,
    /// Offset in the stream of the end of `buf`.
    offset: u64,
    buf: Vec<u8>,
    /// Bytes of `buf` already written.
    written: usize,
}

impl Tx {
    fn complete(&self) -> bool {
        self.offset == self.limit && self.written == self.buf.len()
    }

    fn pending(&mut self) -> &[u8] {
        if self.written == self.buf.len() {
            let len = (self.limit - self.offset).min(CHUNK as u64) as usize;
            self.buf.resize(len, 0);
            self.pattern.fill(self.offset, &mut self.buf);
            self.offset += len as u64;
            self.written = 0;
        }
        &self.buf[self.written..]
    }
}

/// The receiving half.
struct Rx {
    verifier: Verifier,
    buf: Vec<u8>,
}

/// As much as passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bulk {
    /// Size of the transfer (of each direction), bytes; `None`: for the
    /// whole duration.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl TrafficKind for Bulk {
    fn name(&self) -> &'static str {
        "bulk"
    }

    fn check(&self, _spec: &TrafficSpec) -> Result<()> {
        match self.bytes {
            Some(0) => Err(TrafficError::Spec(
                "bytes is 0; expected more than 0".into(),
            )),
            _ => Ok(()),
        }
    }

    /// Runs one end until the end of the time, or the transfer of a fixed size and
    /// its confirmation.
    ///
    /// A fixed size ends so: whoever has written and received everything shuts its
    /// direction down; the other takes that as the confirmation of its data.
    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        let fixed = self.bytes;
        let mut tx = s.spec.sends().then(|| Tx {
            pattern: Pattern::new(s.spec.seed, s.spec.tx_label()),
            limit: fixed.unwrap_or(u64::MAX),
            offset: 0,
            buf: Vec::new(),
            written: 0,
        });
        let mut rx = s.spec.receives().then(|| Rx {
            verifier: Verifier::new(Pattern::new(s.spec.seed, s.spec.rx_label())),
            buf: vec![0; CHUNK],
        });
        s.sleep_until_start()?;
        if rx.is_some() {
            s.gaps.due(s.plan.start);
        }
        let result = match fixed {
            None => for_a_time(s, &mut tx, &mut rx),
            Some(size) => up_to_a_size(s, &mut tx, &mut rx, size),
        };
        s.corruption = rx.and_then(|rx| rx.verifier.corruption());
        result
    }

    fn fixed_bytes(&self) -> Option<u64> {
        self.bytes
    }
}

fn for_a_time(s: &mut Session<'_, '_>, tx: &mut Option<Tx>, rx: &mut Option<Rx>) -> Result<()> {
    let end = s.plan.end;
    while clock::now() < end {
        match step(s, tx, rx, end) {
            Ok(Step::Closed) if clock::now() < end => return Err(s.gone("closed the connection")),
            Ok(_) => {}
            // The other end resets the connection when its time is over.
            Err(_) if clock::now() >= end => break,
            Err(e) => return Err(e),
        }
    }
    s.observe();
    s.conn.abort_on_close();
    if tx.is_some() && rx.is_none() {
        wait_for_close(s, end + s.spec.grace)?;
    }
    if rx.is_some() && s.received.total == 0 {
        return Err(nothing_came(s));
    }
    Ok(())
}

fn up_to_a_size(
    s: &mut Session<'_, '_>,
    tx: &mut Option<Tx>,
    rx: &mut Option<Rx>,
    size: u64,
) -> Result<()> {
    let mut said_goodbye = false;
    // Once all data is here, only the other's goodbye is missing.
    let mut limit = s.plan.end;
    loop {
        let written = tx.as_ref().is_none_or(Tx::complete);
        let received = rx.is_none() || s.received.total == size;
        // An end that only sends waits for the other's: Linux lets nothing join a
        // connection whose own side is shut down, whatever is still under way.
        if written && received && rx.is_some() && !said_goodbye {
            s.observe();
            s.conn
                .finish_writing()
                .map_err(|e| TrafficError::io("shut the connection down", e))?;
            said_goodbye = true;
            if tx.is_none() {
                limit = limit.min(clock::now() + s.spec.grace);
            }
        }
        let now = clock::now();
        if now >= limit {
            if !said_goodbye {
                s.observe();
            }
            s.conn.abort_on_close();
            if tx.is_none() && received {
                return Ok(());
            }
            return Err(incomplete(s, size, received));
        }
        if let Step::Closed = step(s, tx, rx, limit)? {
            let received = rx.is_none() || s.received.total == size;
            let written = tx.as_ref().is_none_or(Tx::complete);
            if !(received && written) {
                return Err(s.gone("closed the connection"));
            }
            if rx.is_none() {
                s.completed = Some(clock::now());
            }
            if !said_goodbye {
                s.observe();
                // Nothing is left to say; a failure has nobody to hear it.
                let _ = s.conn.finish_writing();
            }
            return Ok(());
        }
        if s.received.total > size {
            return Err(TrafficError::Peer(format!(
                "{} sent more than the {size} bytes agreed on",
                s.conn.peer
            )));
        }
        if rx.is_some() && s.received.total == size && s.completed.is_none() {
            let now = clock::now();
            s.completed = Some(now);
            s.gaps.idle(now);
        }
    }
}

enum Step {
    Open,
    Closed,
}

/// Waits for the socket until `until`, reads once and writes once.
fn step(
    s: &mut Session<'_, '_>,
    tx: &mut Option<Tx>,
    rx: &mut Option<Rx>,
    until: Time,
) -> Result<Step> {
    let sending = tx.as_mut().filter(|tx| !tx.complete());
    let mut interest = PollFlags::POLLIN;
    if sending.is_some() {
        interest |= PollFlags::POLLOUT;
    }
    let ready = s.wait(interest, until)?;
    if ready.contains(PollFlags::POLLIN) {
        let mut none = [0; 1];
        let buf = rx.as_mut().map_or(&mut none[..], |rx| &mut rx.buf[..]);
        match s.conn.read(buf) {
            Ok(Some(0)) => return Ok(Step::Closed),
            Ok(Some(n)) => {
                let now = clock::now();
                let Some(rx) = rx else {
                    return Err(s.unexpected_data());
                };
                s.received.add(now, n as u64);
                s.gaps.received(now);
                rx.verifier.accept(&rx.buf[..n]);
            }
            Ok(None) => {}
            Err(e) => return Err(s.gone(&format!("is gone ({e})"))),
        }
    }
    if ready.contains(PollFlags::POLLOUT)
        && let Some(tx) = sending
    {
        match s.conn.write(tx.pending()) {
            Ok(n) => {
                let n = n.unwrap_or(0);
                tx.written += n;
                s.sent.add(clock::now(), n as u64);
            }
            Err(e) => return Err(s.gone(&format!("is gone ({e})"))),
        }
    }
    Ok(Step::Open)
}

/// Waits until the other end closes or resets the connection.
fn wait_for_close(s: &mut Session<'_, '_>, until: Time) -> Result<()> {
    while clock::now() < until {
        let ready = s.wait(PollFlags::POLLIN, until)?;
        if !ready.is_empty() && !matches!(s.conn.read(&mut [0; 1]), Ok(None)) {
            break;
        }
    }
    Ok(())
}

fn nothing_came(s: &Session<'_, '_>) -> TrafficError {
    TrafficError::Peer(format!(
        "nothing came from {} in {:.1} s: check that the path is up and that the other end sends",
        s.conn.peer,
        s.spec.duration.as_secs_f64()
    ))
}

fn incomplete(s: &Session<'_, '_>, size: u64, received: bool) -> TrafficError {
    let limit = s.spec.duration.as_secs_f64();
    if received {
        TrafficError::Peer(format!(
            "{} did not confirm the transfer of {size} bytes within the time limit of {limit:.1} \
             s; {} bytes were handed to the kernel",
            s.conn.peer, s.sent.total
        ))
    } else {
        TrafficError::Peer(format!(
            "{} of {size} bytes came from {} within the time limit of {limit:.1} s",
            s.received.total, s.conn.peer
        ))
    }
}
