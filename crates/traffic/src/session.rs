//! Common needs of every kind of traffic while it runs: waiting with an end in
//! sight, samples, counts, and the report that comes of them.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_core::{Rate, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeSpec, TimeValLike};

use super::clock;
use super::error::{Result, TrafficError};
use super::facts::Facts;
use super::latency::Recorder;
use super::meter::{Counter, Gaps, Plan};
use super::pattern::Corruption;
use super::report::{
    MessageCounts, TrafficEvent, TrafficReport, VideoReport, VoiceReport, WebReport,
};
use super::socket::Conn;
use super::spec::TrafficSpec;

/// Time between samples.
const SAMPLE: Duration = Duration::from_millis(100);

/// Where events go, and the flag that asks for an early end.
pub struct Env<'a> {
    /// Called with every event.
    pub emit: &'a mut dyn FnMut(&TrafficEvent),
    /// Set by a signal handler: report what there is and end.
    pub stop: &'a AtomicBool,
}

impl Env<'_> {
    /// Waits until `fd` is ready for `interest` or until `until`. Empty flags:
    /// neither yet (the time has come, or a signal). An error on the socket
    /// shows as the readiness that was asked for, so that the next call on it
    /// returns the error.
    pub(crate) fn wait(
        &self,
        fd: Option<BorrowedFd<'_>>,
        interest: PollFlags,
        until: Time,
    ) -> Result<PollFlags> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(TrafficError::Interrupted);
        }
        let left = until.since(clock::now());
        let timeout = TimeSpec::nanoseconds(i64::try_from(left.as_nanos()).unwrap_or(i64::MAX));
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(1);
        fds.extend(fd.map(|fd| PollFd::new(fd, interest)));
        match ppoll(&mut fds, Some(timeout), None) {
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(PollFlags::empty()),
            Err(e) => return Err(TrafficError::io("wait for a socket", e)),
        }
        let seen = fds.first().and_then(PollFd::revents);
        let seen = seen.unwrap_or(PollFlags::empty());
        if seen.intersects(PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL) {
            return Ok(interest);
        }
        Ok(seen)
    }

    pub(crate) fn emit(&mut self, event: &TrafficEvent) {
        (self.emit)(event);
    }
}

/// The state of one end while its traffic runs.
pub(crate) struct Session<'a, 'e> {
    pub(crate) spec: &'a TrafficSpec,
    pub(crate) plan: Plan,
    pub(crate) conn: &'a Conn,
    env: &'a mut Env<'e>,
    next_sample: Time,
    pub(crate) sent: Counter,
    pub(crate) received: Counter,
    pub(crate) gaps: Gaps,
    pub(crate) corruption: Option<Corruption>,
    pub(crate) latency: Option<Recorder>,
    /// When a transfer of a fixed size was complete.
    pub(crate) completed: Option<Time>,
    pub(crate) messages: Option<MessageCounts>,
    pub(crate) video: Option<VideoReport>,
    pub(crate) web: Option<WebReport>,
    pub(crate) voice: Option<VoiceReport>,
    facts: Facts,
    cpu_at_start: f64,
}

impl<'a, 'e> Session<'a, 'e> {
    pub(crate) fn new(
        spec: &'a TrafficSpec,
        conn: &'a Conn,
        start: Time,
        env: &'a mut Env<'e>,
    ) -> Self {
        let fixed = spec.fixed_bytes().is_some();
        let plan = Plan {
            start,
            window: if fixed { start } else { start + spec.warmup },
            end: start + spec.duration,
        };
        Self {
            spec,
            plan,
            conn,
            env,
            next_sample: start + SAMPLE,
            sent: Counter::new(plan),
            received: Counter::new(plan),
            gaps: Gaps::new(plan),
            corruption: None,
            latency: None,
            completed: None,
            messages: None,
            video: None,
            web: None,
            voice: None,
            facts: Facts::default(),
            cpu_at_start: cpu_seconds(),
        }
    }

    /// Waits for the socket, or until `until`; emits samples on the way.
    pub(crate) fn wait(&mut self, interest: PollFlags, until: Time) -> Result<PollFlags> {
        self.tick();
        let until = until.min(self.next_sample);
        self.env.wait(Some(self.conn.as_fd()), interest, until)
    }

    /// Sleeps until `until`; emits samples on the way.
    pub(crate) fn sleep(&mut self, until: Time) -> Result<()> {
        while clock::now() < until {
            self.tick();
            let until = until.min(self.next_sample);
            self.env.wait(None, PollFlags::empty(), until)?;
        }
        Ok(())
    }

    /// Sleeps until the payload starts.
    pub(crate) fn sleep_until_start(&mut self) -> Result<()> {
        self.sleep(self.plan.start)
    }

    fn tick(&mut self) {
        let now = clock::now();
        if now < self.next_sample {
            return;
        }
        self.observe();
        self.env.emit(&TrafficEvent::Sample {
            t_ns: now,
            bytes_received: self.received.total,
            bytes_sent: self.sent.total,
        });
        while self.next_sample <= now {
            self.next_sample += SAMPLE;
        }
    }

    /// Asks the kernel about the connection; what it no longer says after a
    /// close stays as it was said last.
    pub(crate) fn observe(&mut self) {
        self.conn.observe(&mut self.facts);
    }

    /// The error of a connection that ended before its time.
    pub(crate) fn gone(&self, did: &str) -> TrafficError {
        TrafficError::Peer(format!(
            "{} {did} after {} bytes received and {} sent, {:.3} s before the end",
            self.conn.peer,
            self.received.total,
            self.sent.total,
            self.plan.end.since(clock::now()).as_secs_f64()
        ))
    }

    /// The error of an end that sends although it should only receive.
    pub(crate) fn unexpected_data(&self) -> TrafficError {
        let peer = self.conn.peer;
        TrafficError::Peer(format!("{peer} sent data although it should only receive"))
    }

    /// The report of what was measured until now.
    pub(crate) fn finish(mut self) -> TrafficReport {
        self.observe();
        let plan = self.plan;
        let mut report = TrafficReport::empty(
            self.spec.role,
            self.spec.traffic.name(),
            self.spec.transport,
        );
        let closed = match (self.spec.fixed_bytes(), self.completed) {
            (Some(_), Some(t)) => t,
            _ => clock::now().min(plan.end),
        };
        self.gaps.idle(closed);
        let window = closed.since(plan.window);
        let (longest, gaps) = self.gaps.finish();
        report.start_ns = Some(plan.start);
        report.window_start_ns = Some(plan.window);
        report.window_end_ns = Some(closed.max(plan.window));
        report.seconds = window.as_secs_f64();
        report.bytes_received = self.received.total;
        report.window_bytes_received = self.received.window;
        report.bytes_sent = self.sent.total;
        report.window_bytes_sent = self.sent.window;
        if !window.is_zero() {
            let rate = self.received.window as f64 * 8.0 / window.as_secs_f64();
            report.goodput_mbps = Rate::from_bps(rate.round() as u64).as_mbps();
        }
        report.corruption = self.corruption;
        report.intact = self.corruption.is_none();
        if self.spec.receives() && self.spec.traffic.get().is_due(self.spec.role) {
            report.gap_ms = Some(longest.as_secs_f64() * 1e3);
            report.gaps = gaps;
        }
        report.completion_s = self.completed.map(|t| t.since(plan.start).as_secs_f64());
        if let Some(mut r) = self.latency {
            if let Err(e) = r.flush() {
                report.errors.push(e.to_string());
            }
            report.latency_ms = r.percentiles();
            report.latency_cdf = r.cdf();
            report.latency_samples = r.len();
        }
        report.messages = self.messages;
        report.video = self.video;
        report.web = self.web;
        report.voice = self.voice;
        report.facts = self.facts.report(self.spec.transport);
        report.cpu_seconds = (cpu_seconds() - self.cpu_at_start).max(0.0);
        report
    }
}

/// CPU time of this process so far, user and system, s.
fn cpu_seconds() -> f64 {
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |u| {
        let us = u.user_time().num_microseconds() + u.system_time().num_microseconds();
        us as f64 / 1e6
    })
}
