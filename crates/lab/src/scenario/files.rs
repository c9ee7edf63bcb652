//! Where the traces that a scenario names are found.

use std::path::Path;
use std::time::Duration;

use braid_api::power_set;
use braid_core::energy::sets::ParameterSet;
use braid_radio::model::RateSpec;
use braid_traces::signal::plan::{self, Plan};
use braid_traces::{Format, LineError, Quantity, Trace};
use serde_spanned::Spanned;

use super::shipped;

/// The place that relative trace paths start from.
pub(super) enum Files<'a> {
    /// A directory.
    In(&'a Path),
    /// The traces built into the binary.
    Shipped,
}

impl Files<'_> {
    /// Reads the path plan `name`.
    pub(super) fn plan(&self, name: &str) -> Result<Plan, String> {
        let parsed = match self {
            Self::In(dir) => {
                let path = dir.join(name);
                let bytes = braid_api::bounded::read(&path, braid_traces::MAX_FILE_BYTES)
                    .map_err(|e| format!("cannot read the plan {}: {e}", path.display()))?;
                plan::parse(&bytes).map_err(|e| e.in_file(&path))
            }
            Self::Shipped => {
                let bytes = shipped::find_trace(name)
                    .ok_or_else(|| format!("plan {name} is not among the shipped ones"))?;
                plan::parse(bytes).map_err(|e| e.in_file(Path::new(name)))
            }
        };
        parsed.map_err(|e| e.to_string())
    }

    /// Reads the parameters `name` of a power model.
    pub(super) fn power_set(&self, name: &str) -> Result<ParameterSet, String> {
        match self {
            Self::In(dir) => power_set::load(name, dir),
            Self::Shipped => power_set::shipped(name),
        }
    }

    /// Reads the column of `quantity` of the trace `name`: values and when each begins to
    /// hold, and the time after which they repeat.
    pub(super) fn values(
        &self,
        name: &str,
        column: Option<&Spanned<String>>,
        quantity: Quantity,
    ) -> Result<(Vec<(Duration, f64)>, Duration), String> {
        let path = match self {
            Self::In(dir) => dir.join(name),
            Self::Shipped => Path::new(name).to_owned(),
        };
        let bytes = match self {
            Self::In(_) => braid_traces::read_bytes(&path).map_err(|e| e.to_string())?,
            Self::Shipped => shipped::find_trace(name)
                .ok_or_else(|| format!("trace {name} is not among the shipped ones"))?
                .to_vec(),
        };
        let wrong = |e: LineError| e.in_file(&path).to_string();
        let trace = Trace::parse_quantity(&bytes, quantity).map_err(wrong)?;
        let column = column.map(|c| c.get_ref().as_str());
        let index = trace.column_index(column).map_err(wrong)?;
        Ok((trace.values(index), trace.span()))
    }

    /// Reads the trace `name` as a capacity over time.
    pub(super) fn load(
        &self,
        name: &str,
        column: Option<&Spanned<String>>,
        format: Option<&Spanned<String>>,
    ) -> Result<RateSpec, String> {
        let format: Option<Format> = match format {
            Some(f) => Some(
                f.get_ref()
                    .parse()
                    .map_err(|e| format!("trace format: {e}"))?,
            ),
            None => None,
        };
        let path = Path::new(name);
        let trace = match self {
            Self::In(dir) => Trace::read(&dir.join(name), format),
            Self::Shipped => {
                let bytes = shipped::find_trace(name)
                    .ok_or_else(|| format!("trace {name} is not among the shipped ones"))?;
                Trace::parse(bytes, format).map_err(|e| e.in_file(path))
            }
        }
        .map_err(|e| e.to_string())?;
        let column = column.map(|c| c.get_ref().as_str());
        let index = trace
            .column_index(column)
            .map_err(|e| e.in_file(path).to_string())?;
        Ok(trace.rate_spec(index))
    }
}
