//! State of a running daemon, shown again and again (`--watch`).

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use braid_netns::error::LabError;
use serde::Serialize;
use tokio::signal::unix::{SignalKind, signal};

use crate::daemon_error::{daemon, is_away};
use crate::table::Output;

/// Between the two readings that rates are made of.
const BETWEEN: Duration = Duration::from_millis(500);
/// Between two looks.
const EVERY: Duration = Duration::from_secs(1);

/// A screen of its own, without cursor; and back (xterm's control sequences).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line; what is left of a line; what is left of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// Daemon that is looked at again and again.
pub(crate) trait Looked {
    /// State at one look.
    type Shown: Show;

    /// Looks at it.
    ///
    /// # Errors
    /// The client's.
    async fn look(&mut self) -> braid_api::client::Result<Self::Shown>;
}

/// State that is shown.
pub(crate) trait Show: Serialize {
    /// Returns the text for people.
    fn text(&self, output: Output) -> String;
}

/// Shows the state once, with the rates of the moment before.
///
/// # Errors
/// No daemon answers, or it does not answer as it should.
pub(crate) async fn once<L: Looked>(watched: &mut L, json: bool) -> Result<ExitCode> {
    watched.look().await.map_err(daemon)?;
    tokio::time::sleep(BETWEEN).await;
    let shown = watched.look().await.map_err(daemon)?;
    let text = match json {
        true => serde_json::to_string_pretty(&shown)? + "\n",
        false => shown.text(Output::detect()),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the state every second until it is interrupted: on a screen of its own, or one after the
/// other; with `json` a line each.
///
/// # Errors
/// No daemon answers at first, or one does not answer as it should.
pub(crate) async fn follow<L: Looked>(watched: &mut L, json: bool) -> Result<ExitCode> {
    // Said on the screen that stays, if it is not there.
    let mut look = Ok(watched.look().await.map_err(daemon)?);
    let handler = |kind| signal(kind).context("receive signals");
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    let screen = (!json && io::stdout().is_terminal()).then(Screen::enter);
    // The first has no rates yet: they follow sooner than the others.
    let mut wait = BETWEEN;
    let mut last = String::new();
    let mut away = false;
    loop {
        let going_on = match &look {
            Ok(shown) => {
                last = shown.text(Output::detect());
                match (&screen, json) {
                    (Some(_), _) => print(&redrawn(&last))?,
                    (None, true) => print(&(serde_json::to_string(shown)? + "\n"))?,
                    (None, false) => print(&format!("{last}\n"))?,
                }
            }
            Err(why) if screen.is_some() => print(&redrawn(&format!("{why}\n\n{last}")))?,
            Err(_) if away => true,
            Err(why) => {
                braid_api::note!("braid: {why}");
                true
            }
        };
        away = look.is_err();
        if !going_on {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        }
        let seen = tokio::select! {
            seen = watched.look() => seen,
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        look = match seen {
            Ok(shown) => Ok(shown),
            Err(e) if is_away(&e) => Err(format!("{e}; waiting until it is back")),
            Err(e) => return Err(daemon(e)),
        };
        wait = match (&look, away) {
            (Ok(_), true) => BETWEEN,
            _ => EVERY,
        };
    }
    if screen.is_some() {
        drop(screen);
        // The last state stays.
        print(&last)?;
    }
    Ok(ExitCode::from(LabError::Interrupted.exit_code()))
}

/// A screen of its own on the terminal, left when dropped.
struct Screen;

impl Screen {
    fn enter() -> Self {
        let _ = print(ENTER);
        Self
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = print(LEAVE);
    }
}

/// Over what was there before, line by line, so that nothing flickers.
fn redrawn(text: &str) -> String {
    let mut out = HOME.to_owned();
    for line in text.lines() {
        out += line;
        out += REST_OF_LINE;
        out += "\r\n";
    }
    out + REST_OF_SCREEN
}

/// Prints text; false where nobody reads any more.
///
/// # Errors
/// Standard output's.
pub(crate) fn print(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(e).context("write to standard output"),
    }
}
