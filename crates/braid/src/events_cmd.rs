//! `braid events`: what has happened to the accesses of a running daemon, and goes on happening.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use braid_api::client::{Client, Error};
use braid_api::{Event, Events};
use braid_netns::error::LabError;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::daemon_error::{daemon, is_away};
use crate::runtime::runtime;

/// Between two looks of `--follow`.
const EVERY: Duration = Duration::from_millis(500);

/// `braid events`.
#[derive(Debug, Args)]
pub struct EventsArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
    /// Go on with what happens from now on, until interrupted
    #[arg(long)]
    follow: bool,
    /// Print a JSON object per line and nothing else
    #[arg(long)]
    json: bool,
    /// Connections and their subflows, too
    #[arg(long)]
    all: bool,
    /// Only events with a greater number than this
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
}

/// Prints the events.
///
/// # Errors
/// No daemon serves the control socket, or it does not answer as it should.
pub fn run(args: &EventsArgs) -> Result<ExitCode> {
    runtime()?.block_on(async {
        let mut client = Client::new(&args.control);
        let mut after = print(args, look(&mut client, args.after).await.map_err(daemon)?)?;
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut away = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                _ = interrupt.recv() => break,
                _ = terminate.recv() => break,
            }
            match look(&mut client, after).await {
                // One that began anew counts from 1.
                Ok(events) if events.next < after => after = 0,
                Ok(events) => {
                    away = false;
                    after = print(args, events)?;
                }
                Err(e) if is_away(&e) => {
                    if !away {
                        braid_api::note!("braid: {e}; waiting until it is back");
                    }
                    away = true;
                }
                Err(e) => return Err(daemon(e)),
            }
        }
        Ok(ExitCode::from(LabError::Interrupted.exit_code()))
    })
}

async fn look(client: &mut Client, after: u64) -> Result<Events, Error> {
    client.get(&format!("/v1/events?after={after}")).await
}

/// Prints them, and returns the number of the newest.
fn print(args: &EventsArgs, events: Events) -> Result<u64> {
    let mut out = io::stdout().lock();
    for event in events.events {
        if !args.all && !event.what.is_about_accesses() {
            continue;
        }
        let line = match args.json {
            true => serde_json::to_string(&event)?,
            false => line(&event),
        };
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(events.next)
}

/// Time (UTC), access, and what happened.
fn line(event: &Event) -> String {
    let at = i64::try_from(event.unix_ms).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::MAX);
    let at = at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
    match &event.access {
        Some(access) => format!("{at} {access}: {}", event.what),
        None => format!("{at} {}", event.what),
    }
}

#[cfg(test)]
mod tests {
    use braid_api::{AccessState, EventKind};

    use super::*;

    #[test]
    fn a_line_has_time_access_and_reason() {
        let event = Event {
            seq: 3,
            t_ns: 1,
            unix_ms: 1_767_225_600_042,
            access: Some("nr".into()),
            what: EventKind::AccessState {
                state: AccessState::Silent,
                why: "nothing comes back on wwan0".into(),
            },
        };
        assert_eq!(
            line(&event),
            "2026-01-01T00:00:00.042Z nr: silent: nothing comes back on wwan0"
        );
    }
}
