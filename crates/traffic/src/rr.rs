//! Request-response: one question at a time, like netperf's TCP_RR.
//!
//! Questions and answers are consecutive pieces of the two payload streams, so
//! that a lost, repeated or damaged one is seen.

use serde::{Deserialize, Serialize};

use super::clock;
use super::error::{Result, TrafficError};
use super::kind::TrafficKind;
use super::latency::Recorder;
use super::session::Session;
use super::spec::{Direction, Role, TrafficSpec};
use super::talk::{Done, Talk};

/// One question at a time, like netperf's TCP_RR.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestResponse {
    /// Length of a question, bytes.
    #[serde(default = "one")]
    pub request_bytes: u32,
    /// Length of an answer, bytes.
    #[serde(default = "one")]
    pub response_bytes: u32,
}

fn one() -> u32 {
    1
}

impl TrafficKind for RequestResponse {
    fn name(&self) -> &'static str {
        "request-response"
    }

    fn check(&self, _spec: &TrafficSpec) -> Result<()> {
        if self.request_bytes == 0 || self.response_bytes == 0 {
            return Err(TrafficError::Spec(
                "request_bytes and response_bytes must be at least 1".into(),
            ));
        }
        Ok(())
    }

    fn run(&self, s: &mut Session<'_, '_>) -> Result<()> {
        s.conn.set_nodelay()?;
        let request = u64::from(self.request_bytes);
        let response = u64::from(self.response_bytes);
        let mut talk = Talk::new(s, request.max(response));
        let result = match s.spec.role {
            Role::Client => ask(s, &mut talk, request, response),
            Role::Server => serve(s, &mut talk, request, response),
        };
        s.corruption = talk.corruption();
        result
    }

    fn sends(&self, _role: Role, _direction: Direction) -> bool {
        true
    }

    /// No question is due at the server: the client asks when it likes.
    fn is_due(&self, role: Role) -> bool {
        role == Role::Client
    }
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
        let mut done = talk.send(s, request, end)?;
        if done == Done::All {
            done = talk.receive(s, response, end)?;
        }
        match done {
            Done::All => {}
            Done::Late => break,
            Done::Closed => return Err(s.gone("closed the connection")),
        }
        let rtt = clock::now().since(asked);
        if let Some(r) = &mut s.latency
            && let Err(e) = r.record(asked, rtt)
        {
            lost_file = Err(e);
        }
    }
    s.observe();
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
        let mut done = talk.receive(s, request, limit)?;
        if done == Done::All {
            done = talk.send(s, response, limit)?;
        }
        match done {
            Done::All => {}
            Done::Late => return Ok(()),
            // Both ends have one clock: the client does not leave before the end.
            Done::Closed if clock::now() >= s.plan.end => return Ok(()),
            Done::Closed => return Err(s.gone("closed the connection")),
        }
    }
}
