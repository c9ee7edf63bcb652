//! Traffic of our own, with a payload that is verified byte for byte.
//!
//! Each end is a process, `braid __traffic --spec FILE|JSON`, in the namespace
//! where its traffic belongs; it tells what it sees as JSON lines
//! ([`TrafficEvent`]) on standard output, the [`TrafficReport`] last. Every
//! wait has an end: a path that dies ends in a report that says so.
//! `docs/traffic.md` says what each kind measures and how.

mod abr;
mod bulk;
mod cbr;
mod check;
pub mod clock;
mod command;
mod emodel;
mod error;
mod facts;
mod hello;
mod kind;
mod latency;
mod listening;
mod message;
mod meter;
mod paced;
mod pattern;
mod pieces;
mod playback;
mod report;
mod rr;
mod seconds;
mod session;
mod socket;
mod spec;
mod talk;
mod udp;
mod video;
mod voip;
mod watch;
mod web;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use nix::sys::prctl;
use signal_hook::consts::{SIGINT, SIGTERM};

pub use bulk::Bulk;
pub use cbr::Cbr;
pub use command::{CommandOutcome, CommandSpec, RunningCommand};
pub use error::{Result, TrafficError};
pub use kind::Kind;
pub use listening::sockets;
pub use meter::MOST_LISTED;
pub use pattern::{Corruption, Pattern};
pub use report::{
    Gap, MessageCounts, Segment, SocketFacts, TrafficEvent, TrafficReport, VideoReport,
    VoiceReport, WebReport,
};
pub use rr::RequestResponse;
pub use session::Env;
pub use spec::{Direction, MESSAGE_HEADER_BYTES, MESSAGE_MAX_BYTES, Role, TrafficSpec, Transport};
pub use video::Video;
pub use voip::{VoiceCodec, Voip};
pub use watch::{Feed, Sample, Watch, watch};
pub use web::Web;

use session::Session;
use socket::Conn;

/// Runs one end of the traffic and returns what it measured. Errors stand in
/// the report too; the error beside it tells their kind.
pub fn run(spec: &TrafficSpec, env: &mut Env<'_>) -> (TrafficReport, Option<TrafficError>) {
    let (mut report, error) = match spec.check().and_then(|()| meet(spec, env)) {
        Ok((conn, start)) => {
            let mut s = Session::new(spec, &conn, start, env);
            let result = spec.traffic.get().run(&mut s);
            let report = s.finish();
            // Bad data is worse news than the end it may have led to.
            let error = report
                .corruption
                .map(|c| TrafficError::corrupt(conn.peer, &c));
            (report, error.or(result.err()))
        }
        Err(e) => {
            let kind = spec.traffic.name();
            (
                TrafficReport::empty(spec.role, kind, spec.transport),
                Some(e),
            )
        }
    };
    if let Some(e) = &error {
        report.errors.insert(0, e.to_string());
    }
    env.emit(&TrafficEvent::Report(Box::new(report.clone())));
    (report, error)
}

/// Finds the other end and agrees with it on the start.
fn meet(spec: &TrafficSpec, env: &mut Env<'_>) -> Result<(Conn, braid_core::Time)> {
    let begin = clock::now();
    let deadline = begin.max(spec.start_ns.unwrap_or(begin)) + spec.setup;
    let digest = spec.digest();
    let udp = spec.transport == Transport::Udp;
    let (conn, start) = match spec.role {
        Role::Client => {
            let conn = socket::connect(spec, deadline, env)?;
            let start = if udp {
                udp::greet(&conn, digest, deadline, env)?
            } else {
                hello::greet(&conn, digest, deadline, env)?
            };
            (conn, start)
        }
        Role::Server => {
            let (listener, at) = socket::listen(spec)?;
            env.emit(&TrafficEvent::Ready { address: at });
            if udp {
                udp::answer(listener, at, spec, deadline, env)?
            } else {
                let conn = socket::accept(spec, listener, at, deadline, env)?;
                let start = hello::answer(&conn, digest, spec.start_ns, deadline, env)?;
                (conn, start)
            }
        }
    };
    env.emit(&TrafficEvent::Connected {
        local: conn.local,
        peer: conn.peer,
        start_ns: start,
    });
    Ok((conn, start))
}

/// The process `braid __traffic --spec ARG`: ARG is a file's path or JSON.
/// Prints events to standard output. SIGTERM and SIGINT end it early, with its report.
///
/// # Errors
/// The specification is wrong, or the traffic failed; [`TrafficError::exit_status`] is the
/// process's.
pub fn main(arg: &str) -> Result<()> {
    let spec = TrafficSpec::from_arg(arg)?;
    let stop = signals()?;
    // Pacing is to the nearest timer, not to the next 50 us; where this
    // is refused, it is 50 us.
    let _ = prctl::set_timerslack(1);
    let mut out = std::io::stdout().lock();
    let mut emit = |event: &TrafficEvent| {
        let line = serde_json::to_string(event)
            .expect("events hold only strings, numbers and finite floats");
        // Without a reader the traffic still runs to its end.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    };
    let mut env = Env {
        emit: &mut emit,
        stop: &stop,
    };
    let (_, error) = run(&spec, &mut env);
    error.map_or(Ok(()), Err)
}

fn signals() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| TrafficError::io("catch SIGTERM and SIGINT", e))?;
    }
    Ok(stop)
}

impl TrafficSpec {
    /// Reads JSON, or the file of that name if it does not begin as JSON does.
    ///
    /// # Errors
    /// The file cannot be read, or see [`TrafficSpec::from_json`].
    pub fn from_arg(arg: &str) -> Result<Self> {
        if arg.trim_start().starts_with('{') {
            return Self::from_json(arg);
        }
        let path = Path::new(arg);
        let text = std::fs::read_to_string(path)
            .map_err(|e| TrafficError::Spec(format!("cannot read {}: {e}", path.display())))?;
        Self::from_json(&text)
    }
}
