//! The programs that the lab starts: hidden subcommands of this binary.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use braid_radio::emulator;
use braid_traffic as traffic;
use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ChildCommand {
    /// The radio emulator, on inherited ports.
    #[command(name = "__radio", hide = true)]
    Radio {
        #[arg(long)]
        config: PathBuf,
        #[arg(long)]
        control: PathBuf,
    },
    /// One end of the lab's own traffic.
    #[command(name = "__traffic", hide = true)]
    Traffic {
        /// A file, or the JSON itself.
        #[arg(long)]
        spec: String,
    },
    /// The first process of a virtual-clock guest.
    #[command(name = "__guest", hide = true)]
    Guest,
}

pub(crate) fn run(command: ChildCommand) -> Result<ExitCode> {
    match command {
        ChildCommand::Radio { config, control } => {
            let text = read(&config)?;
            let config = serde_json::from_str(&text)
                .with_context(|| format!("read {}", config.display()))?;
            emulator::run(config, &control)?;
        }
        ChildCommand::Guest => braid_lab::run::guest::init::main()?,
        ChildCommand::Traffic { spec } => {
            if let Err(e) = traffic::main(&spec) {
                braid_api::note!("braid traffic: {e}");
                return Ok(ExitCode::from(e.exit_status()));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &std::path::Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))
}
