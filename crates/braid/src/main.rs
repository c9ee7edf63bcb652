//! The `braid` command.

#[cfg(feature = "report")]
mod campaign_cmd;
mod children;
#[cfg(feature = "report")]
mod lab_cmd;

use std::process::ExitCode;

use braid_lab::error;
use clap::{Parser, Subcommand};

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
    #[cfg(feature = "report")]
    #[command(subcommand)]
    Lab(lab_cmd::LabCommand),
    /// Import, describe and draw traces of radio capacity.
    #[cfg(feature = "report")]
    #[command(subcommand)]
    Trace(braid::trace_cmd::TraceCommand),
    #[command(flatten)]
    Child(children::ChildCommand),
}

fn main() -> ExitCode {
    // clap ends with 2 on bad usage, as every command here does.
    let cli = Cli::parse();
    let result = match cli.command {
        #[cfg(feature = "report")]
        Command::Lab(c) => lab_cmd::run(c),
        #[cfg(feature = "report")]
        Command::Trace(c) => return braid::trace_cmd::run(c),
        Command::Child(c) => children::run(c),
    };
    match result {
        Ok(code) => code,
        Err(e) => {
            eprintln!("braid: {e:#}");
            ExitCode::from(error::exit_code(&e))
        }
    }
}
