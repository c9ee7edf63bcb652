//! Request-response: one question at a time, like netperf's TCP_RR.

use std::time::Duration;

use braid_core::Time;
use nix::poll::PollFlags;

use super::clock;
use super::error::{Result, TrafficError};
use super::latency::Recorder;
use super::pattern::{Pattern, Verifier};
use super::session::Session;
use super::spec::{Kind, Role};

/// Longest piece that is read or written at once.
const CHUNK: usize = 64 * 1024;

/// Questions and answers are consecutive pieces of the two payload streams.
struct Talk {
    tx: Pattern,
    tx_offset: u64,
    rx: Verifier,
    buf: Vec<u8>,
}

/// Whether an exchange went on to its end.
#[derive(PartialEq, Eq)]
enum Done {
    All,
    /// The time was over.
    Late,
    /// The other end closed.
    Closed,
}

pub(crate) fn run(s: &mut Session<'_, '_>) -> Result<()> {
    let Kind::RequestResponse {
        request_bytes,
        response_bytes,
    } = s.spec.traffic
    else {
        return Ok(());
    };
    s.conn.set_nodelay()?;
    let longest = request_bytes.max(response_bytes) as usize;
    let mut talk = Talk {
        tx: Pattern::new(s.spec.seed, s.spec.tx_label()),
        tx_offset: 0,
        rx: Verifier::new(Pattern::new(s.spec.seed, s.spec.rx_label())),
        buf: vec![0; longest.min(CHUNK)],
    };
    let result = match s.spec.role {
        Role::Client => ask(s, &mut talk, request_bytes.into(), response_bytes.into()),
        Role::Server => serve(s, &mut talk, request_bytes.into(), response_bytes.into()),
    };
    s.corruption = talk.rx.corruption();
    result
}

fn ask(s: &mut Session<'_, '_>, talk: &mut Talk, request: u64, response: u64) -> Result<()> {
    s.latency = Some(Recorder::new(s.plan, 0.5, s.spec.csv.as_deref(), "rtt_ms")?);
    s.sleep_until_start()?;
    let end = s.plan.end;
    // A file that cannot be written ends the file, not the measurement.
    let mut lost_file = Ok(());
    loop {
        let asked = clock::now();
        if asked >= end {
            break;
        }
        s.gaps.due(asked);
        let mut done = send(s, talk, request, end)?;
        if done == Done::All {
            done = receive(s, talk, response, end)?;
        }
        match done {
            Done::All => {}
            Done::Late => break,
            Done::Closed => return Err(closed(s)),
        }
        let rtt = clock::now().since(asked);
        if let Some(r) = &mut s.latency
            && let Err(e) = r.record(asked, rtt)
        {
            lost_file = Err(e);
        }
    }
    s.conn.abort_on_close();
    if s.received.total == 0 {
        return Err(TrafficError::Peer(format!(
            "no answer came from {} in {:.1} s: check that the path is up in both directions",
            s.conn.peer,
            s.spec.duration.as_secs_f64()
        )));
    }
    lost_file
}

fn serve(s: &mut Session<'_, '_>, talk: &mut Talk, request: u64, response: u64) -> Result<()> {
    s.sleep_until_start()?;
    let limit = s.plan.end + s.spec.grace;
    loop {
        let mut done = receive(s, talk, request, limit)?;
        if done == Done::All {
            done = send(s, talk, response, limit)?;
        }
        match done {
            Done::All => {}
            Done::Late => return Ok(()),
            // The client's clock is ours: it does not leave before the end.
            Done::Closed if clock::now() + Duration::from_millis(1) >= s.plan.end => {
                return Ok(());
            }
            Done::Closed => return Err(closed(s)),
        }
    }
}

fn send(s: &mut Session<'_, '_>, talk: &mut Talk, len: u64, until: Time) -> Result<Done> {
    let mut left = len;
    while left > 0 {
        let n = left.min(talk.buf.len() as u64) as usize;
        talk.tx.fill(talk.tx_offset, &mut talk.buf[..n]);
        match s.conn.write(&talk.buf[..n]) {
            Ok(Some(n)) => {
                talk.tx_offset += n as u64;
                left -= n as u64;
                s.sent.add(clock::now(), n as u64);
            }
            Ok(None) => {
                if clock::now() >= until {
                    return Ok(Done::Late);
                }
                s.wait(PollFlags::POLLOUT, until)?;
            }
            Err(e) => return ended(s, e),
        }
    }
    Ok(Done::All)
}

fn receive(s: &mut Session<'_, '_>, talk: &mut Talk, len: u64, until: Time) -> Result<Done> {
    let mut left = len;
    while left > 0 {
        let ready = s.wait(PollFlags::POLLIN, until)?;
        if ready.is_empty() {
            if clock::now() >= until {
                return Ok(Done::Late);
            }
            continue;
        }
        let n = left.min(talk.buf.len() as u64) as usize;
        match s.conn.read(&mut talk.buf[..n]) {
            Ok(Some(0)) => return Ok(Done::Closed),
            Ok(Some(n)) => {
                let now = clock::now();
                talk.rx.accept(&talk.buf[..n]);
                left -= n as u64;
                s.received.add(now, n as u64);
                s.gaps.received(now);
            }
            Ok(None) => {}
            Err(e) => return ended(s, e),
        }
    }
    Ok(Done::All)
}

/// A reset after the end is how the other says goodbye.
fn ended(s: &Session<'_, '_>, e: std::io::Error) -> Result<Done> {
    if clock::now() >= s.plan.end {
        return Ok(Done::Closed);
    }
    Err(TrafficError::Peer(format!(
        "the connection to {} broke after {} bytes received, {:.3} s before the end: {e}",
        s.conn.peer,
        s.received.total,
        s.plan.end.since(clock::now()).as_secs_f64()
    )))
}

fn closed(s: &Session<'_, '_>) -> TrafficError {
    TrafficError::Peer(format!(
        "{} closed the connection after {} bytes received, {:.3} s before the end",
        s.conn.peer,
        s.received.total,
        s.plan.end.since(clock::now()).as_secs_f64()
    ))
}
