//! `braid up` and `braid proxy`.

use std::path::PathBuf;
use std::process::ExitCode;

use braid_api::Role;
use braid_daemon as daemon;
use clap::{Args, Subcommand, ValueEnum};
use tracing_subscriber::filter::LevelFilter;

#[derive(Debug, Subcommand)]
pub(crate) enum DaemonCommand {
    /// Make the accesses of this device act as one: follow them, repair them,
    /// and serve the control API, until SIGTERM or Ctrl-C.
    Up(Where),
    /// Be the other end: answer probes, name the accesses of devices, and serve
    /// the control API.
    Proxy(Where),
    /// Take back what the daemon of this device leaves in place when it ends: the kill switch of
    /// [lan], which keeps hosts from leaving past the bond.
    Down {
        /// The daemon's control socket: one that serves there has to be stopped first.
        #[arg(long, value_name = "PATH", default_value = "/run/braid/control.sock")]
        control: PathBuf,
    },
    /// Print this machine's key for Multipath QUIC, by which the other end knows it
    /// (`pins` in its configuration); make it if it is not there.
    Key {
        /// That of a proxy, not of a device
        #[arg(long)]
        proxy: bool,
    },
}

#[derive(Args, Debug)]
pub(crate) struct Where {
    /// What to do; read again on SIGHUP.
    #[arg(long, value_name = "FILE", default_value = "/etc/braid/braid.toml")]
    config: PathBuf,
    /// The control API's Unix socket.
    #[arg(long, value_name = "PATH", default_value = "/run/braid/control.sock")]
    control: PathBuf,
    /// Only say whether the configuration is right (exit status 2: it is not), and warn of what
    /// cannot work as this machine is now; change nothing.
    #[arg(long)]
    check: bool,
    /// Least important message logged on standard error: every change of an access's state (info), of every
    /// connection (debug), or only what went wrong.
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log: Level,
}

/// Least important message that is logged.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// Logs to standard error: in the journal without the time, which it has itself.
fn log(level: Level) {
    let level = match level {
        Level::Error => LevelFilter::ERROR,
        Level::Warn => LevelFilter::WARN,
        Level::Info => LevelFilter::INFO,
        Level::Debug => LevelFilter::DEBUG,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_target(false)
        .with_writer(std::io::stderr);
    match std::env::var_os("JOURNAL_STREAM") {
        Some(_) => lines.without_time().init(),
        None => lines.init(),
    }
}

fn say(line: Result<String, daemon::DaemonError>) -> ExitCode {
    match line {
        Ok(line) => {
            braid_api::say!("{line}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            braid_api::note!("braid: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}

pub(crate) fn run(command: DaemonCommand) -> ExitCode {
    let (role, at) = match command {
        DaemonCommand::Up(at) => (Role::Device, at),
        DaemonCommand::Proxy(at) => (Role::Proxy, at),
        DaemonCommand::Down { control } => return say(daemon::down(&control)),
        DaemonCommand::Key { proxy } => {
            let role = if proxy { Role::Proxy } else { Role::Device };
            return say(daemon::key(role));
        }
    };
    if at.check {
        return say(daemon::check(role, &at.config).map(|checked| {
            for warning in checked.warnings {
                braid_api::note!("braid: warning: {warning}");
            }
            checked.summary
        }));
    }
    log(at.log);
    match daemon::run(role, &at.config, &at.control) {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(130),
        Err(e) => {
            braid_api::note!("braid: {e}");
            ExitCode::from(e.exit_code())
        }
    }
}
