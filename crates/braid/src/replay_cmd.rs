//! `braid replay`: a policy over the journal of a control loop, and where it decides otherwise.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use braid_api::{bounded, output};
use braid_core::Time;
use braid_core::control::{AccessRole, Steering};
use braid_core::journal::{Entry, Header, JournalError, Reader};
use braid_core::policy;
use braid_core::replay::{Difference, ReplayError, replay};
use braid_netns::error::LabError;
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Serialize;

/// Bytes of a journal, at most: a daemon's has 64 MiB unless it is configured otherwise.
const MAX_JOURNAL: u64 = 1 << 30;

/// `braid replay`.
#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// Journal of a daemon's control loop, as `[control] journal` has it written
    #[arg(value_name = "JOURNAL")]
    journal: PathBuf,
    /// Policy to run in place of the recorded one; several are run one after the other
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(policy::names()))]
    policy: Vec<String>,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
}

/// Output of `braid replay --json`.
#[derive(Debug, Serialize)]
struct Report {
    header: Header,
    observations: usize,
    decisions: usize,
    replays: Vec<Replay>,
}

/// Run of one policy.
#[derive(Debug, Serialize)]
struct Replay {
    /// Name of the policy; absent for the recorded one.
    policy: Option<String>,
    differences: Vec<Moment>,
}

/// Moment from which the steerings in force differ.
#[derive(Debug, Serialize)]
struct Moment {
    /// Seconds since the first entry of the journal.
    t_s: f64,
    recorded: Option<Steering>,
    replayed: Option<Steering>,
}

/// Replays a journal.
///
/// # Errors
/// The journal cannot be read, is broken (with its line), or has an observation that no loop
/// takes.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let report = report(&args.journal, &args.policy)?;
    let text = match args.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text(&report),
    };
    output::say(format_args!("{text}"));
    Ok(ExitCode::SUCCESS)
}

fn report(path: &Path, policies: &[String]) -> Result<Report> {
    let bad = |what: String| LabError::BadInput(format!("{}{what}", path.display()));
    let unreadable = |e| bad(format!(": the journal cannot be read: {e}"));
    let mut text = bounded::read(path, MAX_JOURNAL).map_err(unreadable)?;
    // A daemon that runs, or was killed, has written only a part of it.
    let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let cut = whole > 0 && whole < text.len();
    if cut {
        text.truncate(whole);
    }
    let broken = |e: JournalError| {
        let column = e.column.map(|c| format!(":{c}")).unwrap_or_default();
        bad(format!(":{}{column}: {}", e.line, e.problem))
    };
    let reader = Reader::new(&text[..]).map_err(broken)?;
    let header = reader.header().clone();
    if cut {
        let path = path.display();
        braid_api::note!("braid: {path}: the last line is cut off: its moment is left out");
    }
    let mut entries = reader.collect::<Result<Vec<Entry>, _>>().map_err(broken)?;
    if cut && let Some(last) = entries.last().map(at) {
        entries.retain(|e| at(e) < last);
    }
    let begin = entries.first().map_or(Time::ZERO, at);
    let asked: Vec<Option<&str>> = match policies {
        [] => vec![None],
        all => all.iter().map(|p| Some(p.as_str())).collect(),
    };
    let mut replays = Vec::new();
    for policy in asked {
        let differences = replay(&header, &entries, policy).map_err(|e| match e {
            ReplayError::Observation { line, source } => bad(format!(":{line}: {source}")),
            ReplayError::Policy(e) => LabError::BadInput(e.to_string()),
        })?;
        let moment = |d: Difference| Moment {
            t_s: d.at.since(begin).as_secs_f64(),
            recorded: d.recorded,
            replayed: d.replayed,
        };
        replays.push(Replay {
            policy: policy.map(str::to_owned),
            differences: differences.into_iter().map(moment).collect(),
        });
    }
    let decided = |e: &&Entry| matches!(e, Entry::Decision(_));
    let decisions = entries.iter().filter(decided).count();
    Ok(Report {
        header,
        observations: entries.len() - decisions,
        decisions,
        replays,
    })
}

fn at(entry: &Entry) -> Time {
    match entry {
        Entry::Header(_) => Time::ZERO,
        Entry::Observation(o) => o.at,
        Entry::Decision(d) => d.at,
    }
}

/// Returns the word that the journal has for a role or an engine.
fn word(value: &impl Serialize) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn text(report: &Report) -> String {
    let h = &report.header;
    let mut text = format!(
        "{} {} by {}: {} observations, {} decisions\n",
        word(&h.role),
        word(&h.engine),
        h.program,
        report.observations,
        report.decisions
    );
    for replay in &report.replays {
        let name = replay.policy.as_deref().unwrap_or("as recorded");
        text += &match replay.differences.len() {
            0 => format!("policy {name}: decides as recorded\n"),
            1 => format!("policy {name}: 1 difference\n"),
            n => format!("policy {name}: {n} differences\n"),
        };
        for d in &replay.differences {
            text += &format!("{:9.3} s  recorded  {}\n", d.t_s, line(d.recorded.as_ref()));
            text += &format!("{:11}  replayed  {}\n", "", line(d.replayed.as_ref()));
        }
    }
    text
}

/// Weights, down and up where they differ, roles but active, and the reason.
fn line(steering: Option<&Steering>) -> String {
    let Some(s) = steering else {
        return "nothing decided yet".to_owned();
    };
    let access = |(name, a): (&String, &braid_core::control::AccessSteering)| {
        let role = match a.role {
            AccessRole::Active => "",
            AccessRole::Backup => " (backup)",
            AccessRole::Off => " (off)",
        };
        match a.weight {
            w if w.down == w.up => format!("{name} {}{role}", w.down),
            w => format!("{name} down {} up {}{role}", w.down, w.up),
        }
    };
    let all: Vec<String> = s.accesses.iter().map(access).collect();
    format!("{}: {}", all.join(", "), s.why)
}
