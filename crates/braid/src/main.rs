//! The `braid` command.

mod campaign_cmd;
mod children;
mod daemon_cmd;
mod help;
mod lab_cmd;

use std::io::Write;
use std::process::ExitCode;

use braid_api::output;
use braid_netns::error;
use clap::{CommandFactory, FromArgMatches};
use clap::{Parser, Subcommand};

/// Frees what is as long as a packet about as fast as what is short, and returns no pages to the kernel
/// while a stream is written.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Makes several radio accesses act as one connection, and measures how well.
#[derive(Debug, Parser)]
#[command(name = "braid", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run experiments over emulated radios.
    #[command(subcommand)]
    Lab(lab_cmd::LabCommand),
    /// Import, describe and draw traces of radio capacity; signals of cells.
    #[command(subcommand)]
    Trace(Box<braid::trace_cmd::TraceCommand>),
    /// Run an unchanged program over MPTCP.
    Run(braid::run_cmd::RunArgs),
    /// Say what this machine has for Braid, and what is missing.
    Doctor(braid::doctor::DoctorArgs),
    /// Show what a running daemon does: accesses, their state, rates.
    Status(braid::status::StatusArgs),
    /// Print what has happened to the accesses of a running daemon.
    Events(braid::events_cmd::EventsArgs),
    /// Change a running daemon: weights, scheduler, accesses, their order.
    Set(braid::set_cmd::SetArgs),
    /// Show the rules about hosts behind a device, and what has met them.
    Rules(braid::rules_cmd::RulesArgs),
    /// Run a policy over a journal, and say where it decides otherwise.
    Replay(braid::replay_cmd::ReplayArgs),
    #[command(flatten)]
    Daemon(daemon_cmd::DaemonCommand),
    #[command(flatten)]
    Child(children::ChildCommand),
}

/// Reads the command line.
fn cli() -> Cli {
    let given = help::described(Cli::command(), "").try_get_matches();
    given
        .and_then(|given| Cli::from_arg_matches(&given))
        .unwrap_or_else(|e| end(&e))
}

/// Prints what clap has to say, help or what is wrong, and ends.
fn end(said: &clap::Error) -> ! {
    let written = said.print().and_then(|()| std::io::stdout().flush());
    std::process::exit(match written {
        Err(e) if !said.use_stderr() && e.kind() != std::io::ErrorKind::BrokenPipe => {
            braid_api::note!("braid: write to standard output: {e}");
            1
        }
        _ => said.exit_code(),
    })
}

fn main() -> ExitCode {
    // clap ends with 2 on bad usage, as every command here does.
    let cli = cli();
    let result = match cli.command {
        Command::Lab(c) => lab_cmd::run(c),
        Command::Trace(c) => Ok(braid::trace_cmd::run(*c)),
        Command::Daemon(c) => Ok(daemon_cmd::run(c)),
        Command::Run(args) => braid::run_cmd::run(&args),
        Command::Doctor(args) => braid::doctor::run(&args),
        Command::Status(args) => braid::status::run(&args),
        Command::Events(args) => braid::events_cmd::run(&args),
        Command::Set(args) => braid::set_cmd::run(args),
        Command::Rules(args) => braid::rules_cmd::run(args),
        Command::Replay(args) => braid::replay_cmd::run(&args),
        Command::Child(c) => children::run(c),
    };
    match (result, output::failed()) {
        (Ok(code), None) => code,
        (Ok(_), Some(why)) => {
            braid_api::note!("braid: write to standard output: {why}");
            ExitCode::FAILURE
        }
        (Err(e), _) => {
            braid_api::note!("braid: {e:#}");
            ExitCode::from(error::exit_code(&e))
        }
    }
}
