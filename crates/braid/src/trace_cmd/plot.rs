//! `braid trace plot`.

use std::path::Path;

use braid_traces::plot::{self, Options, PlotError};
use clap::Args;

use super::{Destination, Failure, Measures, Source};

#[derive(Debug, Args)]
pub struct PlotArgs {
    #[command(flatten)]
    source: Source,
    #[command(flatten)]
    measures: Measures,
    #[command(flatten)]
    out: Destination,
    /// Draw this column only, under NEW if given; may be repeated
    #[arg(long, value_name = "NAME[=NEW]")]
    column: Vec<String>,
    /// Line on top [default: the name of FILE, its format and its length]
    #[arg(long)]
    title: Option<String>,
    /// Width in pixels; PNG has twice as many
    #[arg(long, default_value_t = 1200)]
    width: u32,
    /// Height in pixels; PNG has twice as many
    #[arg(long, default_value_t = 520)]
    height: u32,
}

pub(super) fn run(args: &PlotArgs) -> Result<(), Failure> {
    let source = &args.source;
    let path = args.out.path(&source.file, "png");
    let svg_only = svg_only(&path)?;
    let whole = source.read()?;
    let trace = whole.select(&source.columns(&whole, &args.column)?);
    let stats = args.measures.options(plot::window(trace.span()))?;
    let title = args.title.clone().unwrap_or_else(|| {
        let span = trace.span().as_secs_f64();
        format!(
            "{}  ({}, {span:.0} s)",
            source.name(),
            trace.format.describe()
        )
    });
    let options = Options {
        title,
        width: args.width,
        height: args.height,
        stats,
        ..Options::default()
    };
    let failed = |e: PlotError| match e {
        PlotError::Trace(e) => source.error(e),
        e @ PlotError::Size(..) => Failure::Usage(e.to_string()),
        e @ PlotError::Draw(_) => {
            Failure::Write(path.display().to_string(), std::io::Error::other(e))
        }
    };
    let svg = plot::svg(&trace, &options).map_err(failed)?;
    let content = if svg_only {
        svg.into_bytes()
    } else {
        plot::png(&svg, options.scale).map_err(failed)?
    };
    args.out.write(&source.file, &path, &content)?;
    if path != Path::new("-") {
        braid_api::say!("{}", path.display());
    }
    Ok(())
}

/// Whether the picture at `path` is to be SVG.
pub(super) fn svg_only(path: &Path) -> Result<bool, Failure> {
    match extension(path).as_deref() {
        Some("svg") => Ok(true),
        Some("png") => Ok(false),
        _ if path == Path::new("-") => Ok(true),
        _ => Err(Failure::Usage(format!(
            "{}: expected a name that ends in .png or .svg, or - for SVG",
            path.display()
        ))),
    }
}

fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}
