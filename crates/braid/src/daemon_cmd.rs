//! `braid up` and `braid proxy`.

use std::path::PathBuf;
use std::process::ExitCode;

use braid::daemon;
use braid_core::api::Role;
use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Make the accesses of this device act as one: follow them, repair them,
    /// and serve the control API, until SIGTERM or Ctrl-C.
    Up(Where),
    /// Be the other end: answer probes, name the accesses of devices, and serve
    /// the control API.
    Proxy(Where),
}

#[derive(Args, Debug)]
pub(crate) struct Where {
    /// What to do; read again on SIGHUP.
    #[arg(long, value_name = "FILE", default_value = "/etc/braid/braid.toml")]
    config: PathBuf,
    /// The control API's Unix socket.
    #[arg(long, value_name = "SOCKET", default_value = "/run/braid/control.sock")]
    control: PathBuf,
}

pub(crate) fn run(command: DaemonCommand) -> ExitCode {
    let (role, at) = match command {
        DaemonCommand::Up(at) => (Role::Device, at),
        DaemonCommand::Proxy(at) => (Role::Proxy, at),
    };
    match daemon::run(role, &at.config, &at.control) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(130),
        Err(e) => {
            eprintln!("braid: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}
