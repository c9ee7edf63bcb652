//! Benchmarks of Braid against its bars; run by `make bench`.

mod clock;
mod downloads;
mod figures;
mod host;
mod lab;
mod machine;
mod mpquic;
mod mptcp;
mod pattern;
mod pauses;
mod peer;
mod probe;
mod radio;
mod report;
mod runs;
mod starter;
mod swing;
mod tcp;
mod text;
mod udp;
mod wire;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use braid_netns::error::exit_code;
use clap::{Parser, Subcommand};

/// Allocates as the program does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures Braid against its bars.
#[derive(Debug, Parser)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The radio emulator; takes root, and a machine that does nothing else.
    Radio(radio::Options),
    /// The lab's scenarios: tables from the files of runs.
    Lab(lab::Options),
    /// Downloads over path plans: tables from the folders of campaigns.
    Downloads(downloads::Options),
    /// Outages of each access: gaps, and when it is used again; takes root.
    Recovery(mptcp::recovery::Options),
    /// 100 runs of 20 s: does one collapse? Takes root.
    Soak(mptcp::soak::Options),
    /// Weights on this machine's kernel; takes root.
    Weights(mptcp::weights::Options),
    /// MPTCP beside TCP: shares of a line, the shift to the better path; takes root.
    Fairness(mptcp::fairness::Options),
    /// What weights cost in processor time; takes root.
    Cost(mptcp::cost::Options),
    /// Multipath QUIC; on the real clock takes root, and a machine that does nothing else.
    Mpquic(mpquic::Options),
    /// Links that swing: does an engine carry less than its better path alone? On the virtual clock.
    Swing(swing::Options),
    /// Multipath QUIC with picoquic as the peer; takes root.
    Peer(peer::Options),
    /// The ends of such a transfer, started by the benchmark.
    #[command(name = "__hq", hide = true, subcommand)]
    Hq(peer::hq::Hq),
    /// The emulator itself, started by the benchmark.
    #[command(name = "__radio", hide = true)]
    Emulator {
        #[arg(long)]
        config: PathBuf,
        #[arg(long)]
        control: PathBuf,
    },
}

fn main() -> ExitCode {
    let done = match Args::parse().what {
        What::Radio(options) => radio::run(&options),
        What::Lab(options) => lab::run(&options),
        What::Downloads(options) => downloads::run(&options),
        What::Recovery(options) => mptcp::recovery::run(&options),
        What::Soak(options) => mptcp::soak::run(&options),
        What::Weights(options) => mptcp::weights::run(&options),
        What::Fairness(options) => mptcp::fairness::run(&options),
        What::Mpquic(options) => mpquic::run(&options),
        What::Swing(options) => swing::run(&options),
        What::Peer(options) => peer::run(&options),
        What::Hq(what) => peer::hq::run(what),
        What::Cost(options) => mptcp::cost::run(&options),
        What::Emulator { config, control } => emulate(&config, &control).map(|()| true),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("error: {e:#}");
            ExitCode::from(exit_code(&e))
        }
    }
}

fn emulate(config: &std::path::Path, control: &std::path::Path) -> Result<()> {
    // Whatever becomes of the benchmark, its emulator goes with it.
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .context("cannot tie the emulator to the benchmark")?;
    let text =
        std::fs::read(config).with_context(|| format!("cannot read {}", config.display()))?;
    let config = serde_json::from_slice(&text)
        .with_context(|| format!("cannot understand {}", config.display()))?;
    braid_radio::emulator::run(config, control)
}
