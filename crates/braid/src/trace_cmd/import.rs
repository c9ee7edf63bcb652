//! `braid trace import`.

use std::time::Duration;

use braid_core::units::parse_duration;
use braid_traces::signal::{self, import};
use braid_traces::{Capacity, Quantity, Trace, write};
use clap::{Args, ValueEnum};

use super::columns::Table;
use super::{Destination, Failure, Source, warn};

/// Windows over which opportunities become rates, unless told otherwise.
const WINDOW: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
pub struct ImportArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    out: Destination,
    #[command(flatten)]
    table: Table,
    /// What to write
    #[arg(long, value_enum, default_value_t = To::Csv)]
    to: To,
    /// Take this column only, under NEW if given; may be repeated
    #[arg(long, value_name = "NAME[=NEW]")]
    column: Vec<String>,
    /// Take a mean over every TIME [default: the samples as they are;
    /// opportunities: 100 ms]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    step: Option<Duration>,
    /// Begin here
    #[arg(long, value_name = "TIME", default_value = "0 s", value_parser = parse_duration)]
    start: Duration,
    /// Take this much [default: all there is]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    length: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum To {
    /// Seconds and Mbit/s, a column per link
    Csv,
    /// Mahimahi delivery opportunities, of one link
    Mahimahi,
    /// Received powers per second and cell
    Signal,
}

impl To {
    fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Mahimahi => "mahimahi",
            Self::Signal => "signal.csv",
        }
    }
}

pub(super) fn run(args: &ImportArgs) -> Result<(), Failure> {
    if args.to == To::Signal {
        return signals(args);
    }
    let source = &args.source;
    let mut all = args.table.read(source)?;
    if all.is_empty() {
        all.push((source.read()?, Quantity::Rate));
    }
    let traces = all.iter().map(|(t, q)| Ok((prepared(args, t, *q)?, *q)));
    let traces: Vec<(Trace, Quantity)> = traces.collect::<Result<_, Failure>>()?;
    let (whole, trace) = (&all[0].0, &traces[0].0);

    let path = args.out.path(&source.file, args.to.extension());
    let mut text = Vec::new();
    let samples = match args.to {
        To::Csv => {
            let comments = provenance(args, whole);
            let invalid = |e: std::io::Error| Failure::Usage(e.to_string());
            let columns: Vec<_> = traces.iter().map(|(t, q)| (t, *q)).collect();
            write::columns(&columns, &comments, &mut text).map_err(invalid)?;
            let names: Vec<_> = traces.iter().flat_map(|(t, _)| t.columns()).collect();
            format!("{} samples of {}", trace.samples(), names.join(", "))
        }
        To::Mahimahi if traces.iter().any(|(_, q)| *q != Quantity::Rate) => {
            return Err(Failure::Usage(
                "--to mahimahi: opportunities say nothing of --delay and --loss".into(),
            ));
        }
        To::Mahimahi => {
            let index = trace.column_index(None).map_err(|mut e| {
                e.msg += "; choose it with --column";
                source.error(e)
            })?;
            let ms = trace.opportunities(index).map_err(|e| source.error(e))?;
            write::mahimahi(&ms, &mut text)
                .map_err(|e| Failure::Write(path.display().to_string(), e))?;
            format!("{} delivery opportunities", ms.len())
        }
        To::Signal => return signals(args),
    };
    args.out.write(&source.file, &path, &text)?;
    for (trace, _) in &all {
        warn(&source.file, &trace.problems);
        warn(&source.file, &trace.notes);
    }
    braid_api::note!(
        "{}: {samples}, {:.3} s, from {} ({})",
        path.display(),
        trace.span().as_secs_f64(),
        source.file.display(),
        whole.format.describe()
    );
    Ok(())
}

/// The part, the columns and the steps of a trace that are asked for.
fn prepared(args: &ImportArgs, whole: &Trace, quantity: Quantity) -> Result<Trace, Failure> {
    let source = &args.source;
    let part = match (args.start, args.length) {
        (Duration::ZERO, None) => whole.clone(),
        (start, length) => whole.part(start, length).map_err(|e| source.error(e))?,
    };
    let columns = match quantity {
        Quantity::Rate => &args.column[..],
        Quantity::Delay | Quantity::Loss => &[],
    };
    let chosen = source.columns(&part, columns)?;
    let mut trace = part.select(&chosen);
    let step = args.step.or_else(|| {
        let opportunities = matches!(trace.capacity, Capacity::Opportunities { .. });
        (opportunities && args.to == To::Csv).then_some(WINDOW)
    });
    if let Some(step) = step {
        trace = trace.resampled(step).map_err(|e| source.error(e))?;
        if let (Capacity::Steps { columns, .. }, [(_, name)]) = (&mut trace.capacity, &chosen[..]) {
            columns[0].name.clone_from(name);
        }
    }
    Ok(trace)
}

/// Writes the powers of a recording, not its rates.
fn signals(args: &ImportArgs) -> Result<(), Failure> {
    let part = args.start != Duration::ZERO || args.length.is_some();
    if !args.column.is_empty() || args.step.is_some() || part || args.source.format.is_some() {
        return Err(Failure::Usage(
            "--to signal takes the whole recording as it is: expected none of --format, \
             --column, --step, --start, --length"
                .to_owned(),
        ));
    }
    let file = &args.source.file;
    let m = import::read(file, None)?;
    let path = args.out.path(file, args.to.extension());
    let mut comments = vec![format!(
        "imported from {} by braid {}",
        args.source.name(),
        env!("CARGO_PKG_VERSION")
    )];
    comments.extend(m.flaws.iter().map(ToString::to_string));
    comments.extend(m.notes.iter().cloned());
    let mut text = Vec::new();
    let invalid = |e: std::io::Error| Failure::Usage(e.to_string());
    signal::write::csv(&m, &comments, &mut text).map_err(invalid)?;
    args.out.write(file, &path, &text)?;
    warn(file, &m.flaws);
    warn(file, &m.notes);
    braid_api::note!(
        "{}: {} s, {} cells on {} carriers of {} operators",
        path.display(),
        m.seconds.len(),
        m.cells.len(),
        m.carriers.len(),
        m.operators.len()
    );
    Ok(())
}

/// Lines that say where an imported trace comes from.
fn provenance(args: &ImportArgs, whole: &Trace) -> Vec<String> {
    let mut lines = vec![format!(
        "imported from {} ({}) by braid {}",
        args.source.name(),
        whole.format.describe(),
        env!("CARGO_PKG_VERSION")
    )];
    let seconds = Duration::as_secs_f64;
    if let Some(step) = &args.step {
        lines.push(format!("means over {} s", seconds(step)));
    } else if matches!(whole.capacity, Capacity::Opportunities { .. }) {
        lines.push(format!("means over {} s", seconds(&WINDOW)));
    }
    if args.start != Duration::ZERO || args.length.is_some() {
        let length = args.length.as_ref().map_or("the end".to_owned(), |l| {
            format!("{} s", seconds(&args.start.saturating_add(*l)))
        });
        lines.push(format!(
            "from {} s to {length} of the recording",
            seconds(&args.start)
        ));
    }
    lines.extend(whole.problems.iter().map(ToString::to_string));
    lines.extend(whole.notes.iter().cloned());
    lines
}
