//! `braid lab ...`.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use braid_core::units::{format_duration, parse_duration};
use braid_lab::report::files::to_json;
use braid_lab::report::table::{Style, render};
use braid_lab::run::{self, GuestOptions, RunOptions};
use braid_lab::scenario::{self, Overrides, Scenario, shipped};
use braid_netns::error::LabError;
use braid_netns::{PortChoice, Registry};
use clap::{Args, Subcommand, ValueEnum};

use crate::campaign_cmd::{self, CampaignArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the scenarios that come with Braid, and which of them need the virtual clock.
    List,
    /// Run a scenario: print its table and write its files.
    Run(Box<RunArgs>),
    /// Run a scenario over all combinations of some axes: parallel, resumable.
    Campaign(CampaignArgs),
    /// Make report.html again from the files of a run.
    Report {
        /// Folder of the run.
        dir: PathBuf,
        /// Open it in the browser.
        #[arg(long)]
        open: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Name of a shipped scenario, or path of a scenario file.
    scenario: String,
    /// Print the shipped scenario, or a trace that one names, and run nothing.
    #[arg(long, conflicts_with = "check")]
    print: bool,
    /// Only say whether the scenario is right (exit status 2: it is not), and run nothing.
    #[arg(long)]
    check: bool,
    /// What time is: the host's own, or simulated.
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// Run only these cases, variants, or cases of every variant.
    #[arg(long, value_name = "CASE,...")]
    only: Vec<String>,
    /// Run each case so many times.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeat: u32,
    /// Seed of every random draw (default: the scenario's, or 1).
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Length of every case in seconds; the warm-up shrinks with it.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_hyphen_values = true)]
    duration: Option<Duration>,
    /// Multiply every rate.
    #[arg(long, value_name = "X", value_parser = scale, allow_hyphen_values = true)]
    scale: Option<f64>,
    /// Folder for the files of the run (default: a new one in out/).
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Virtual clock: how many cases to run side by side (default: one for each core).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Virtual clock: memory of each guest, in MB (default: 768).
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(32..=65536))]
    guest_memory: Option<u32>,
    /// Virtual clock: stop a guest whose time has stood still for so long.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
    stall: Option<Duration>,
    /// Virtual clock: stop a guest that takes longer than this.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
    wall_limit: Option<Duration>,
    /// Virtual clock: what a case may take in the guest's own time.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, hide = true)]
    virtual_limit: Option<Duration>,
    /// Print summary.json, and nothing else, on standard output.
    #[arg(long)]
    json: bool,
    /// How namespaces are joined to the emulator.
    #[arg(long, value_enum, default_value_t = Ports::Auto, hide = true)]
    ports: Ports,
}

impl RunArgs {
    fn guests(&self) -> GuestOptions {
        let default = GuestOptions::default();
        GuestOptions {
            jobs: self.jobs.map_or(default.jobs, usize::from),
            memory_mib: self.guest_memory.unwrap_or(default.memory_mib),
            stall: self.stall.unwrap_or(default.stall),
            wall_limit: self.wall_limit,
            virtual_limit: self.virtual_limit,
        }
    }

    /// Refuses what is said of guests where there are none.
    fn check_clock(&self) -> Result<(), LabError> {
        let of_guests = [
            ("jobs", self.jobs.is_some()),
            ("guest-memory", self.guest_memory.is_some()),
            ("stall", self.stall.is_some()),
            ("wall-limit", self.wall_limit.is_some()),
            ("virtual-limit", self.virtual_limit.is_some()),
        ];
        match of_guests.iter().find(|(_, given)| *given) {
            Some((name, _)) if self.clock == Clock::Real => Err(LabError::BadInput(format!(
                "--{name} counts on the virtual clock alone: add --clock virtual, or leave it out"
            ))),
            _ => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    Real,
    Virtual,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Ports {
    Auto,
    Tun,
    Packet,
}

fn seconds(s: &str) -> Result<Duration, String> {
    let d = match s.parse::<f64>() {
        Ok(v) if v.is_finite() && v > 0.0 => {
            Duration::try_from_secs_f64(v).map_err(|e| e.to_string())?
        }
        Ok(_) => return Err("expected a number of seconds above zero".into()),
        Err(_) => parse_duration(s).map_err(|e| e.to_string())?,
    };
    let most = Duration::from_secs(86_400);
    if d < Duration::from_millis(500) || d > most {
        return Err("expected 0.5 seconds to 24 hours".into());
    }
    Ok(d)
}

fn scale(s: &str) -> Result<f64, String> {
    match s.parse::<f64>() {
        Ok(v) if (1e-4..=1e3).contains(&v) => Ok(v),
        _ => Err("expected a factor from 0.0001 to 1000".into()),
    }
}

pub(crate) fn run(command: LabCommand) -> Result<ExitCode> {
    match command {
        LabCommand::List => {
            let terminal = std::io::stdout().is_terminal();
            braid_api::output::say(format_args!(
                "{}",
                list(terminal.then(|| Style::detect().width))
            ));
            Ok(ExitCode::SUCCESS)
        }
        LabCommand::Run(args) => lab_run(&args),
        LabCommand::Campaign(args) => campaign_cmd::run(&args),
        LabCommand::Report { dir, open } => {
            let path = run::remake(&dir)?;
            braid_api::say!("{}", path.display());
            if open {
                open_in_browser(&path)?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A line for each shipped scenario, wrapped to `width` where there is one.
fn list(width: Option<usize>) -> String {
    let names = shipped().iter().map(|s| s.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for s in shipped() {
        let read = Scenario::load(s.name, &Overrides::default());
        let needs = read.is_ok_and(|s| s.needs_virtual_clock().is_some());
        let clock = if needs { " [--clock virtual]" } else { "" };
        let line = format!("{:names$}  {}{clock}", s.name, s.summary());
        let indent = " ".repeat(names + 2);
        let options = textwrap::Options::new(width.unwrap_or(usize::MAX));
        text += &textwrap::fill(&line, options.subsequent_indent(&indent));
        text.push('\n');
    }
    text
}

/// Prints a shipped scenario or trace.
fn print(name: &str) -> Result<ExitCode> {
    let (bytes, traces) = scenario::print(name).map_err(LabError::BadInput)?;
    let mut out = std::io::stdout().lock();
    out.write_all(bytes)
        .and_then(|()| out.flush())
        .context("write to standard output")?;
    for trace in traces {
        braid_api::note!(
            "note: it reads {trace} from its own folder: \
             braid lab run --print {trace} prints that"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Line that says what a scenario without errors comes to.
fn right(scenario: &Scenario, clock: Clock) -> String {
    let cases = scenario.cases.len();
    let length: Duration = scenario.cases.iter().map(|c| c.duration).sum();
    let mut text = format!(
        "{} is right: {cases} case{}, {}",
        scenario.origin.display(),
        if cases == 1 { "" } else { "s" },
        format_duration(length),
    );
    if clock == Clock::Real
        && let Some(why) = scenario.needs_virtual_clock()
    {
        text += &format!("; run it with --clock virtual: {why}");
    }
    text
}

fn lab_run(args: &RunArgs) -> Result<ExitCode> {
    if args.print {
        return print(&args.scenario);
    }
    args.check_clock()?;
    let overrides = Overrides {
        duration: args.duration,
        scale: args.scale,
        seed: args.seed,
        only: args.only.clone(),
    };
    // Bad input is told before anything needs rights.
    let scenario = Scenario::load(&args.scenario, &overrides)
        .map_err(|d| LabError::BadInput(d.to_string()))?;
    if args.check {
        braid_api::say!("{}", right(&scenario, args.clock));
        return Ok(ExitCode::SUCCESS);
    }
    match args.clock {
        Clock::Real => {
            braid_netns::acquire(sweep)?;
            if !args.json {
                for limit in braid_netns::limits()? {
                    braid_api::note!("note: {limit}");
                }
            }
        }
        // Its guests need no rights, and no host that is punctual.
        Clock::Virtual => sweep()?,
    }
    let options = RunOptions {
        repeat: args.repeat,
        out: args.out.clone(),
        braid: std::env::current_exe()
            .context("find the braid program, which the lab starts its children from")?,
        command: std::env::args().collect::<Vec<_>>().join(" "),
        ports: match args.ports {
            Ports::Auto => PortChoice::Auto,
            Ports::Tun => PortChoice::Tun,
            Ports::Packet => PortChoice::Packet,
        },
    };
    let mut progress = if args.json {
        run::silent()
    } else {
        run::for_terminal()
    };
    let outcome = match args.clock {
        Clock::Real => run::run(&scenario, &options, progress.as_mut())?,
        Clock::Virtual => run::run_virtual(&scenario, &options, &args.guests(), progress.as_mut())?,
    };
    if args.json {
        braid_api::say!("{}", to_json(&outcome.summary));
    } else {
        braid_api::output::say(format_args!(
            "{}",
            render(&outcome.summary, Style::detect())
        ));
        braid_api::say!("\nreport: {}", outcome.report.display());
    }
    let failed = outcome.summary.cases.iter().any(|c| c.failed.is_some());
    Ok(if failed {
        ExitCode::from(1)
    } else {
        ExitCode::SUCCESS
    })
}

/// Removes what runs left that were killed.
fn sweep() -> Result<(), LabError> {
    let swept = Registry::open()?.sweep()?;
    for run in &swept.runs {
        braid_api::note!("note: cleaned up after run {run}, which had been killed");
    }
    for note in &swept.notes {
        braid_api::note!("note: {note}");
    }
    Ok(())
}

fn open_in_browser(path: &std::path::Path) -> Result<()> {
    std::process::Command::new("xdg-open")
        .arg(path)
        .status()
        .with_context(|| {
            format!(
                "open {} in the browser with xdg-open; open it by hand",
                path.display()
            )
        })
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_whole_and_marks_the_virtual_clock() {
        let plain = list(None);
        assert_eq!(plain.lines().count(), shipped().len());
        for line in plain.lines() {
            let whole = line.trim_end_matches(" [--clock virtual]");
            assert!(whole.ends_with(['.', '?']), "{line}");
        }
        let marked = |name: &str| {
            let line = plain.lines().find(|l| l.starts_with(&format!("{name} ")));
            line.unwrap().ends_with("[--clock virtual]")
        };
        assert!(marked("schedulers") && marked("fairness-vegas"));
        assert!(!marked("static") && !marked("schedulers-mpquic"));
        let narrow = list(Some(80));
        assert!(narrow.lines().all(|l| l.chars().count() <= 80), "{narrow}");
    }
}
