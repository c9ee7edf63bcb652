//! `braid status`: what a running daemon does, over its control API.

mod check;
mod energy;
mod fallen;
mod listed;
mod rates;
mod show;
mod totals;
mod view;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use braid_api::Connections;
use braid_api::client::{Client, Error};
use clap::Args;

use crate::daemon_error::daemon;
use crate::runtime::runtime;
use crate::watch::{self, Looked, print};
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

/// Shows the state.
///
/// # Errors
/// No daemon serves the control socket, or it does not answer as it should.
pub fn run(args: &StatusArgs) -> Result<ExitCode> {
    let runtime = runtime()?;
    let mut watched = Daemon::new(args);
    runtime.block_on(async {
        if args.check {
            check(args).await
        } else if args.watch {
            watch::follow(&mut watched, args.json).await
        } else {
            watch::once(&mut watched, args.json).await
        }
    })
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
}

impl Looked for Daemon {
    type Shown = Shown;

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
