//! `braid status`: what a running daemon does, over its control API.

mod check;
mod fallen;
mod listed;
mod rates;
mod show;
mod totals;
mod view;

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use braid_api::Connections;
use braid_api::client::{Client, Error};
use braid_netns::error::LabError;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use crate::daemon_error::{daemon, is_away};
use crate::runtime::runtime;
use crate::table::Output;
use show::Shown;
use view::View;

/// `braid status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Control socket of the daemon
    #[arg(long, value_name = "PATH", default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
    /// Show it anew every second, until interrupted
    #[arg(long)]
    watch: bool,
    /// Print JSON and nothing else; with --watch, a line every second
    #[arg(long)]
    json: bool,
    /// List the MPTCP connections too, with the tokens that name them, and those that fell back to
    /// TCP, with their processes and the likely cause
    #[arg(long)]
    connections: bool,
    /// Print one line, and end with 0 (all is well), 1 (something is wrong) or 2 (nothing works, or
    /// no daemon answers), as monitoring plugins do
    #[arg(long, conflicts_with_all = ["watch", "json", "connections"])]
    check: bool,
}

/// Between the two readings that rates are made of.
const BETWEEN: Duration = Duration::from_millis(500);
/// Between two looks of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// A screen of its own, without cursor; and back (xterm's control sequences).
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
/// To the first line; what is left of a line; what is left of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K";
const REST_OF_SCREEN: &str = "\x1b[J";

/// Shows the state.
///
/// # Errors
/// No daemon serves the control socket, or it does not answer as it should.
pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    let runtime = runtime()?;
    runtime.block_on(async {
        if args.check {
            check(args).await
        } else if args.watch {
            watch(args).await
        } else {
            once(args).await
        }
    })
}

async fn once(args: &StatusArgs) -> Result<ExitCode> {
    let mut watched = Daemon::new(args);
    watched.look().await.map_err(daemon)?;
    tokio::time::sleep(BETWEEN).await;
    let shown = watched.look().await.map_err(daemon)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&shown)? + "\n",
        false => shown.text(Output::detect()),
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

async fn check(args: &StatusArgs) -> Result<ExitCode> {
    let view = Client::new(&args.control).get("/v1/status").await;
    let (level, text) = match view {
        Ok(view) => check::judge(&view),
        Err(e) => (check::unanswered(&e), format!("{:#}", daemon(e))),
    };
    print(&check::line(level, &text))?;
    Ok(ExitCode::from(level as u8))
}

async fn watch(args: &StatusArgs) -> Result<ExitCode> {
    let mut watched = Daemon::new(args);
    // Said on the screen that stays, if it is not there.
    let mut look = Ok(watched.look().await.map_err(daemon)?);
    let handler = |kind| signal(kind).context("receive signals");
    let mut interrupt = handler(SignalKind::interrupt())?;
    let mut terminate = handler(SignalKind::terminate())?;
    let screen = (!args.json && io::stdout().is_terminal()).then(Screen::enter);
    // The first has no rates yet: they follow sooner than the others.
    let mut wait = BETWEEN;
    let mut last = String::new();
    let mut away = false;
    loop {
        let going_on = match &look {
            Ok(shown) => {
                last = shown.text(Output::detect());
                match (&screen, args.json) {
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

/// A daemon that is looked at again and again.
struct Daemon {
    client: Client,
    before: Option<Connections>,
    list: bool,
}

impl Daemon {
    fn new(args: &StatusArgs) -> Self {
        Self {
            client: Client::new(&args.control),
            before: None,
            list: args.connections,
        }
    }

    async fn look(&mut self) -> braid_api::client::Result<Shown> {
        let before = self.before.take();
        let mut view: View = self.client.get("/v1/status?connections=true").await?;
        // Daemons of before do not have them there.
        let connections = match view.connections.take() {
            Some(connections) => connections,
            None => self.client.get("/v1/connections").await?,
        };
        // Daemons of before do not have it.
        let control = match self.client.get("/v1/control").await {
            Ok(control) => Some(control),
            Err(Error::Refused { status: 404, .. }) => None,
            Err(e) => return Err(e),
        };
        let shown = Shown::new(&view, before.as_ref(), &connections, self.list, control);
        // Only readings of one daemon, one after the other, make a rate.
        self.before = Some(connections);
        Ok(shown)
    }
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

/// Whether somebody still reads.
fn print(text: &str) -> Result<bool> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(e) => Err(e).context("write to standard output"),
    }
}
