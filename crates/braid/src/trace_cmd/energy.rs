//! `braid trace energy`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use braid_api::diagnostic::nearest;
use braid_api::power_set;
use braid_core::energy::sets::{self, ParameterSet};
use braid_core::energy::{Energy, Interval, MODELS, UnknownModel, names};
use braid_core::units::parse_duration;
use braid_traces::transfers::{self, Links, Recording, Scope, Transfer};
use braid_traces::{Format, Trace};
use clap::Args;
use serde::Serialize;

use super::{Failure, number, warn};
use crate::table::{Column, Output, draw};

#[derive(Debug, Args)]
pub struct EnergyArgs {
    /// Recorded transfers: our log, a published recording, or a capacity trace (docs/energy.md)
    #[arg(required_unless_present = "list")]
    file: Option<PathBuf>,
    /// Power model: affine, drx, nr38840, wifi-airtime or paper002
    #[arg(long, required_unless_present_any = ["list", "set"])]
    model: Option<String>,
    /// Parameters: the name of a set, or a TOML file [default: the model's first set]
    #[arg(long, value_name = "SET|FILE.toml")]
    set: Option<String>,
    /// Format of a capacity trace [default: what the content shows]
    #[arg(long)]
    format: Option<Format>,
    /// Link that carries what goes to the device [default: down, or the only one]
    #[arg(long, value_name = "LINK")]
    down: Option<String>,
    /// Link that carries what comes from the device [default: up, if there is one]
    #[arg(long, value_name = "LINK")]
    up: Option<String>,
    /// Only transfers whose name has this in it
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Time without data after each transfer: its tail counts
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = parse_duration)]
    after: Duration,
    /// The radio is connected when a transfer begins: no promotion
    #[arg(long)]
    connected: bool,
    /// List models and sets and do nothing else
    #[arg(long)]
    list: bool,
    /// Print JSON and nothing else
    #[arg(long)]
    json: bool,
}

/// Recorded energy beside the predicted one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Measured {
    joules: f64,
    /// Predicted for the part of the device that was recorded.
    predicted_joules: f64,
    error_percent: f64,
    mape_percent: f64,
}

/// Result of one transfer, or of all.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Row {
    name: String,
    seconds: f64,
    down_mb: f64,
    up_mb: f64,
    mean_mw: f64,
    total_joules: f64,
    #[serde(flatten)]
    energy: Energy,
    joules_per_mb: Option<f64>,
    measured: Option<Measured>,
}

#[derive(Serialize)]
struct Report<'a> {
    file: String,
    model: &'static str,
    set: &'a str,
    source: &'a str,
    rest_mw: f64,
    transfers: &'a [Row],
    total: &'a Row,
}

#[derive(Serialize)]
struct Listed<'a> {
    name: &'a str,
    model: &'static str,
    device: &'a str,
    access: &'a str,
    source: &'a str,
    quality: &'a str,
    assumed: &'a str,
    rest_mw: f64,
}

pub(super) fn run(args: &EnergyArgs) -> Result<(), Failure> {
    let text = match (&args.file, args.list) {
        (Some(file), false) => report(args, file)?,
        _ => list(args.json)?,
    };
    let failed = |e| Failure::Write("standard output".to_owned(), e);
    writeln!(io::stdout(), "{}", text.trim_end()).map_err(failed)
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    let failed = |e: serde_json::Error| Failure::Write("JSON".to_owned(), e.into());
    serde_json::to_string_pretty(value).map_err(failed)
}

fn report(args: &EnergyArgs, file: &Path) -> Result<String, Failure> {
    let set = parameters(args)?;
    let recording = read(args, file)?;
    warn(file, &recording.notes);
    let chosen: Vec<&Transfer> = recording
        .transfers
        .iter()
        .filter(|t| chosen(args, t))
        .collect();
    if chosen.is_empty() {
        let names = recording.transfers.iter().map(|t| t.name.as_str());
        let near = names.take(8).collect::<Vec<_>>().join(", ");
        return Err(Failure::Usage(format!(
            "--only: no transfer has this in its name: {near}, ..."
        )));
    }
    beyond_range(file, &set, &chosen);
    let mut sum = Sum::default();
    let rows: Vec<Row> = chosen
        .iter()
        .map(|t| {
            let one = pass(args, &set, &recording, t);
            sum.add(&one);
            one.row(&t.name)
        })
        .collect();
    let total = sum.row("all");
    if args.json {
        return json(&Report {
            file: file.display().to_string(),
            model: set.parameters.model(),
            set: &set.name,
            source: &set.source,
            rest_mw: set.rest_mw,
            transfers: &rows,
            total: &total,
        });
    }
    let mut shown = rows;
    if shown.len() > 1 {
        shown.push(total);
    }
    Ok(describe(&set, recording.scope, &shown))
}

fn chosen(args: &EnergyArgs, t: &Transfer) -> bool {
    args.only
        .as_ref()
        .is_none_or(|part| t.name.contains(part.as_str()))
}

/// Warns where the set has no data for what was carried.
fn beyond_range(file: &Path, set: &ParameterSet, transfers: &[&Transfer]) {
    let Some(range) = set.range else { return };
    let samples = || transfers.iter().flat_map(|t| &t.samples);
    let most = |bytes: fn(&Interval) -> f64| {
        let rates = samples().map(|s| {
            let seconds = s.interval.length.as_secs_f64();
            bytes(&s.interval) * 8e-6 / if seconds > 0.0 { seconds } else { 1.0 }
        });
        rates.fold(0.0, f64::max)
    };
    for (most, measured, way) in [
        (most(|i| i.down_bytes), range.down_mbps, "down"),
        (most(|i| i.up_bytes), range.up_mbps, "up"),
    ] {
        if most > measured * 1.001 {
            let name = &set.name;
            let most = number(most);
            let text = format!("{most} Mbit/s {way}: {name} was measured up to {measured} Mbit/s");
            warn(file, &[text]);
        }
    }
}

/// Parameters that the flags name.
fn parameters(args: &EnergyArgs) -> Result<ParameterSet, Failure> {
    if let Some(model) = args.model.as_deref().filter(|m| !names().any(|n| n == *m)) {
        let near = nearest(model, names());
        let near = near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
        let unknown = UnknownModel(model.to_owned());
        return Err(Failure::Usage(format!("--model: {unknown}{near}")));
    }
    let set = match &args.set {
        Some(name) => named(name)?,
        // Every model has a set: a test of theirs holds that.
        None => args
            .model
            .as_deref()
            .and_then(sets::default_of)
            .ok_or_else(|| {
                Failure::Usage("--model: no set is shipped for it: name one with --set".to_owned())
            })?,
    };
    match args.model.as_deref() {
        Some(model) if model != set.parameters.model() => Err(Failure::Usage(format!(
            "--set {}: its parameters are of the model {}, not of {model}",
            set.name,
            set.parameters.model()
        ))),
        _ => Ok(set),
    }
}

/// The set of that name, or of that file.
fn named(name: &str) -> Result<ParameterSet, Failure> {
    power_set::load(name, Path::new("")).map_err(|e| Failure::Usage(format!("--set: {e}")))
}

fn read(args: &EnergyArgs, file: &Path) -> Result<Recording, Failure> {
    let links = Links {
        down: args.down.clone(),
        up: args.up.clone(),
    };
    if args.format.is_none() {
        let bytes = braid_traces::read_bytes(file)?;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let read = transfers::parse(text, &links);
            if let Some(r) = read.map_err(|p| p.in_file(file.to_owned(), text))? {
                return Ok(r);
            }
        }
    }
    let trace = Trace::read(file, args.format)?;
    warn(file, &trace.problems);
    let failed = |e| Failure::Usage(format!("{}: {e}", file.display()));
    transfers::of_trace(&trace, &links).map_err(failed)
}

/// Sums over samples.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    time: Duration,
    down_bytes: f64,
    up_bytes: f64,
    energy: Energy,
    measured_joules: f64,
    predicted_joules: f64,
    /// Relative errors of power, and how many.
    errors: f64,
    samples: u64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.time += other.time;
        self.down_bytes += other.down_bytes;
        self.up_bytes += other.up_bytes;
        self.energy += other.energy;
        self.measured_joules += other.measured_joules;
        self.predicted_joules += other.predicted_joules;
        self.errors += other.errors;
        self.samples += other.samples;
    }

    fn row(&self, name: &str) -> Row {
        let total_joules = self.energy.total_joules();
        let mb = (self.down_bytes + self.up_bytes) / 1e6;
        Row {
            name: name.to_owned(),
            seconds: self.time.as_secs_f64(),
            down_mb: self.down_bytes / 1e6,
            up_mb: self.up_bytes / 1e6,
            mean_mw: self.energy.mean_mw(self.time),
            total_joules,
            energy: self.energy,
            joules_per_mb: (mb > 0.0).then(|| total_joules / mb),
            measured: (self.samples > 0).then(|| Measured {
                joules: self.measured_joules,
                predicted_joules: self.predicted_joules,
                error_percent: (self.predicted_joules / self.measured_joules - 1.0) * 100.0,
                mape_percent: self.errors / self.samples as f64 * 100.0,
            }),
        }
    }
}

/// Passes one transfer through the model.
fn pass(args: &EnergyArgs, set: &ParameterSet, recording: &Recording, t: &Transfer) -> Sum {
    let mut model = set.parameters.make();
    if args.connected || recording.connected {
        // Longer than any promotion, and not counted.
        model.advance(&Interval::at_rates(Duration::from_secs(3600), 1e-9, 0.0));
    }
    let rest_mw = match recording.scope {
        Some(Scope::Device) => set.rest_mw,
        Some(Scope::Radio) | None => 0.0,
    };
    let mut sum = Sum::default();
    for s in &t.samples {
        let length = s.interval.length;
        let energy = model.advance(&s.interval);
        sum.time += length;
        sum.down_bytes += s.interval.down_bytes;
        sum.up_bytes += s.interval.up_bytes;
        sum.energy += energy;
        if let Some(mw) = s.power_mw.filter(|mw| *mw > 0.0 && !length.is_zero()) {
            let predicted = energy.mean_mw(length) + rest_mw;
            sum.measured_joules += mw * length.as_secs_f64() / 1e3;
            sum.predicted_joules += predicted * length.as_secs_f64() / 1e3;
            sum.errors += (predicted / mw - 1.0).abs();
            sum.samples += 1;
        }
    }
    sum.energy += model.advance(&Interval::silent(args.after));
    sum.time += args.after;
    sum
}

fn describe(set: &ParameterSet, scope: Option<Scope>, rows: &[Row]) -> String {
    let mut titles = vec![
        "transfer",
        "s",
        "MB down",
        "MB up",
        "mW",
        "J",
        "active",
        "promotion",
        "tail",
        "idle",
        "J/MB",
    ];
    let compared = rows.iter().any(|r| r.measured.is_some());
    if compared {
        titles.extend(["J recorded", "J predicted", "error", "power error"]);
    }
    let cells: Vec<Vec<String>> = rows.iter().map(|r| cells(r, compared)).collect();
    let titles: Vec<String> = titles.into_iter().map(str::to_owned).collect();
    let access = match set.access.is_empty() {
        true => String::new(),
        false => format!(" ({})", set.access),
    };
    let model = set.parameters.model();
    let mut text = format!("model    {model}\nset      {}{access}\n", set.name);
    for (key, value) in [
        ("source", &set.source),
        ("quality", &set.quality),
        ("assumed", &set.assumed),
    ] {
        if !value.is_empty() {
            text += &format!("{key:8} {value}\n");
        }
    }
    text += &format!(
        "\n{}",
        draw(&Column::all(&titles, 1, &cells), Output::detect())
    );
    text += "J, active, promotion, tail, idle: energy of the radio, joules.\n";
    if compared {
        text += match scope {
            Some(Scope::Device) => {
                "J predicted: of the whole device, as recorded: with what is beside the radio "
            }
            _ => "J predicted: of the radio, as recorded ",
        };
        let rest = if scope == Some(Scope::Device) {
            set.rest_mw
        } else {
            0.0
        };
        text += &format!("({rest} mW).\nPower error: mean relative error of the samples.\n");
    }
    text
}

fn cells(r: &Row, compared: bool) -> Vec<String> {
    let e = &r.energy;
    let mut cells = vec![r.name.clone()];
    let values = [
        r.seconds,
        r.down_mb,
        r.up_mb,
        r.mean_mw,
        r.total_joules,
        e.active_joules,
        e.promotion_joules,
        e.tail_joules,
        e.idle_joules,
    ];
    cells.extend(values.map(number));
    cells.push(r.joules_per_mb.map_or("-".to_owned(), number));
    if compared {
        cells.extend(match &r.measured {
            Some(m) => [
                number(m.joules),
                number(m.predicted_joules),
                format!("{:+.1} %", m.error_percent),
                format!("{:.1} %", m.mape_percent),
            ],
            None => ["-"; 4].map(str::to_owned),
        });
    }
    cells
}

fn list(as_json: bool) -> Result<String, Failure> {
    let all = sets::all();
    if as_json {
        let listed: Vec<Listed<'_>> = all
            .iter()
            .map(|s| Listed {
                name: &s.name,
                model: s.parameters.model(),
                device: &s.device,
                access: &s.access,
                source: &s.source,
                quality: &s.quality,
                assumed: &s.assumed,
                rest_mw: s.rest_mw,
            })
            .collect();
        return json(&listed);
    }
    let titles = |t: [&str; 2]| t.map(str::to_owned);
    let models: Vec<Vec<String>> = MODELS
        .iter()
        .map(|(name, what)| vec![(*name).to_owned(), (*what).to_owned()])
        .collect();
    let sets: Vec<Vec<String>> = all
        .iter()
        .map(|s| {
            vec![
                s.name.clone(),
                s.parameters.model().to_owned(),
                s.access.clone(),
                s.quality.clone(),
            ]
        })
        .collect();
    let output = Output::detect();
    let of_sets = ["set", "model", "access", "quality"].map(str::to_owned);
    Ok(format!(
        "{}\n{}",
        draw(
            &Column::all(&titles(["model", "computes from"]), 2, &models),
            output
        ),
        draw(&Column::all(&of_sets, 4, &sets), output)
    ))
}
