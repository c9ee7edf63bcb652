//! Columns of a table that somebody else has made: which of them are what.

use braid_traces::{Mapping, Moment, Quantity, Trace, read_bytes};
use clap::{Args, ValueEnum};

use super::{Failure, Source};
use crate::twice::twice;

/// Meaning of the columns of a table.
#[derive(Debug, Args)]
#[command(next_help_heading = "A table with columns of its own")]
pub(super) struct Table {
    /// Column of times: numbers, or dates as in ISO 8601
    #[arg(long, value_name = "COLUMN")]
    time: Option<String>,
    /// Unit of times that are numbers
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = TimeUnit::S, requires = "time")]
    time_unit: TimeUnit,
    /// Column of rates, and the name of the link; may be repeated
    #[arg(long, value_name = "COLUMN[=NAME]", requires = "time")]
    rate: Vec<String>,
    /// Unit of the rates
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = RateUnit::Mbit, requires = "rate")]
    unit: RateUnit,
    /// Column of delays one way, and the name of the link; may be repeated
    #[arg(long, value_name = "COLUMN[=NAME]", requires = "time")]
    delay: Vec<String>,
    /// Unit of the delays
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = TimeUnit::Ms, requires = "delay")]
    delay_unit: TimeUnit,
    /// Column of losses, and the name of the link; may be repeated
    #[arg(long, value_name = "COLUMN[=NAME]", requires = "time")]
    loss: Vec<String>,
    /// Unit of the losses
    #[arg(long, value_enum, value_name = "UNIT", default_value_t = LossUnit::Fraction, requires = "loss")]
    loss_unit: LossUnit,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TimeUnit {
    S,
    Ms,
    Us,
    Ns,
}

impl TimeUnit {
    fn moment(self) -> Moment {
        match self {
            Self::S => Moment::Seconds,
            Self::Ms => Moment::Millis,
            Self::Us => Moment::Micros,
            Self::Ns => Moment::Nanos,
        }
    }

    fn to_ms(self) -> f64 {
        match self {
            Self::S => 1e3,
            Self::Ms => 1.0,
            Self::Us => 1e-3,
            Self::Ns => 1e-6,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RateUnit {
    #[value(name = "bit/s")]
    Bit,
    #[value(name = "kbit/s")]
    Kbit,
    #[value(name = "Mbit/s")]
    Mbit,
    #[value(name = "Gbit/s")]
    Gbit,
    #[value(name = "B/s")]
    Byte,
    #[value(name = "kB/s")]
    Kbyte,
    #[value(name = "MB/s")]
    Mbyte,
}

impl RateUnit {
    fn to_mbps(self) -> f64 {
        match self {
            Self::Bit => 1e-6,
            Self::Kbit => 1e-3,
            Self::Mbit => 1.0,
            Self::Gbit => 1e3,
            Self::Byte => 8e-6,
            Self::Kbyte => 8e-3,
            Self::Mbyte => 8.0,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LossUnit {
    /// From 0 to 1
    Fraction,
    #[value(name = "%")]
    Percent,
}

impl Table {
    /// Reads the columns that are named, by quantity; nothing where none is.
    pub(super) fn read(&self, source: &Source) -> Result<Vec<(Trace, Quantity)>, Failure> {
        let Some(time) = &self.time else {
            return Ok(Vec::new());
        };
        let percent = match self.loss_unit {
            LossUnit::Fraction => 1.0,
            LossUnit::Percent => 0.01,
        };
        let wanted = [
            (&self.rate, Quantity::Rate, self.unit.to_mbps()),
            (&self.delay, Quantity::Delay, self.delay_unit.to_ms()),
            (&self.loss, Quantity::Loss, percent),
        ];
        if wanted.iter().all(|(columns, ..)| columns.is_empty()) {
            return Err(Failure::Usage(
                "--time: expected the columns to take too: --rate, --delay or --loss COLUMN".into(),
            ));
        }
        if source.format.is_some() {
            return Err(Failure::Usage(
                "--time and --format: a table with columns of its own has no other format".into(),
            ));
        }
        for (columns, quantity, _) in &wanted {
            let names: Vec<String> = columns.iter().map(|c| named(c, *quantity).1).collect();
            if let Some(name) = twice(&names) {
                return Err(Failure::Usage(format!(
                    "two columns for the link \"{name}\": name one COLUMN=NAME"
                )));
            }
        }
        let bytes = read_bytes(&source.file)?;
        let wanted = wanted
            .into_iter()
            .filter(|(columns, ..)| !columns.is_empty());
        wanted
            .map(|(columns, quantity, scale)| {
                let mapping = Mapping {
                    time: time.clone(),
                    moment: self.time_unit.moment(),
                    columns: columns.iter().map(|c| named(c, quantity)).collect(),
                    quantity,
                    scale,
                };
                let trace = Trace::parse_mapped(&bytes, &mapping).map_err(|e| source.error(e))?;
                Ok((trace, quantity))
            })
            .collect()
    }
}

/// Column and name of its link: without one the column's, of what may stand in a header.
fn named(given: &str, quantity: Quantity) -> (String, String) {
    if let Some((column, name)) = given.rsplit_once('=') {
        return (column.to_owned(), name.to_owned());
    }
    let stem = given.strip_suffix(quantity.suffix()).unwrap_or(given);
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let name: String = stem
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .collect();
    (given.to_owned(), name)
}
