//! `braid run`: an unchanged program over MPTCP.

mod by_bpf;
mod by_preload;
mod mask;
mod program;
mod service;
mod tunnel;
mod wait;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use braid_mptcp::support::Support;
use braid_netns::error::LabError;
use clap::{Args, ValueEnum};

use crate::congestion;

/// `braid run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// How TCP sockets become MPTCP sockets
    #[arg(long, value_enum, default_value_t = By::Auto)]
    by: By,
    /// Congestion control of the MPTCP connections: one of this kernel's, or lia,
    /// olia, balia, wvegas, swing
    #[arg(long, value_name = "NAME")]
    cc: Option<String>,
    /// Instead of starting a program, serve those of this cgroup (its folder below
    /// /sys/fs/cgroup) until interrupted
    #[arg(long, value_name = "PATH", conflicts_with = "command")]
    cgroup: Option<PathBuf>,
    /// Control socket of the daemon, which decides over which accesses connections go
    #[arg(long, value_name = "PATH", default_value = braid_api::DEFAULT_SOCKET)]
    control: PathBuf,
    /// Say what was chosen, and why
    #[arg(long, short)]
    verbose: bool,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        required_unless_present = "cgroup",
        trailing_var_arg = true
    )]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// eBPF where the kernel permits it, else a preloaded library
    Auto,
    /// A library that is loaded into the program (LD_PRELOAD)
    Preload,
    /// An eBPF program, for a cgroup
    Bpf,
}

/// Runs it; the exit status is that of the program.
///
/// # Errors
/// What was attempted and what to do; [`braid_netns::error::exit_code`] tells the
/// exit status.
pub fn run(args: &RunArgs) -> Result<ExitCode> {
    if args.by == By::Auto {
        tunnel::refuse(&args.control)?;
    }
    Support::detect().require().map_err(machine)?;
    if let Some(group) = &args.cgroup {
        return service::run(group, args);
    }
    // clap asks for one, unless a cgroup is given.
    let (program, arguments) = args
        .command
        .split_first()
        .ok_or_else(|| LabError::BadInput("no program to run: braid run -- CMD".into()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    let congestion = args.cc.as_deref().map(congestion::resolve);
    let congestion = congestion.transpose().map_err(machine)?;
    let name = congestion.as_ref().map(|c| c.name());
    let say = |text: String| {
        if args.verbose {
            braid_api::note!("braid: {text}");
        }
    };
    let attached = match args.by {
        By::Preload => None,
        by => match by_bpf::Attached::new(name) {
            Ok(attached) => {
                say("MPTCP by eBPF, in a cgroup of its own".into());
                Some(attached)
            }
            Err(e) if by == By::Auto => {
                say(format!("MPTCP by a preloaded library: {}", reason(&e)));
                None
            }
            Err(e) => return Err(machine(e)),
        },
    };
    match attached {
        Some(attached) => wait::run(&mut command, |c| attached.spawn(c)),
        None => {
            by_preload::prepare(&mut command, name)?;
            match &congestion {
                // Something has to stay for the time of the run.
                Some(held) if held.is_ours() => wait::run(&mut command, |c| Ok(c.spawn())),
                _ => Ok(wait::become_it(&mut command)),
            }
        }
    }
}

/// Why not, without the way out: another one was taken.
fn reason(e: &braid_mptcp::Error) -> String {
    match e {
        braid_mptcp::Error::Lacking { what, .. } => what.clone(),
        e => e.to_string(),
    }
}

/// An error with the exit status that it stands for.
fn machine(e: braid_mptcp::Error) -> anyhow::Error {
    match e {
        braid_mptcp::Error::Lacking { what, remedy } => LabError::missing(what, remedy).into(),
        e @ braid_mptcp::Error::CongestionControl { .. } => {
            LabError::BadInput(e.to_string()).into()
        }
        e => e.into(),
    }
}
