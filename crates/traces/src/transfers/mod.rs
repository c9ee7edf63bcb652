//! Recorded transfers: what an access carried over time, with signal and power where they were
//! recorded. `braid trace energy` reads them; docs/energy.md describes the forms.
//!
//! To add a form: an arm in [`parse`] and a reader in `forms`.

mod forms;
mod table;
#[cfg(test)]
mod tests;

use std::time::Duration;

use braid_api::diagnostic::Problem;
use braid_core::energy::Interval;

use super::{Capacity, Trace};

/// Part of a device whose power was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of it.
    Device,
    /// The radio alone.
    Radio,
}

/// One interval of a transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Length, bytes, signal.
    pub interval: Interval,
    /// Recorded power, mW.
    pub power_mw: Option<f64>,
}

/// Transfer of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Transfer {
    /// Name that tells it from others of the recording.
    pub name: String,
    /// Its intervals, one after the other.
    pub samples: Vec<Sample>,
}

/// Recorded transfers.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The transfers, in the order of the file.
    pub transfers: Vec<Transfer>,
    /// Part of the device whose power was recorded; `None` where there is none.
    pub scope: Option<Scope>,
    /// Whether the radio was connected when a transfer began.
    pub connected: bool,
    /// Remarks about the file, a sentence each.
    pub notes: Vec<String>,
}

/// Links of a table that carry a transfer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links {
    /// Towards the device; `None`: the link called `down`, or else the only one.
    pub down: Option<String>,
    /// From the device; `None`: the link called `up`, if there is one.
    pub up: Option<String>,
}

/// Reads the text of a recording; `None` where its first line is none of a table of transfers, so
/// that it may be a capacity trace of another format.
///
/// # Errors
/// The place in the text, what is wrong there, and what was expected.
pub fn parse(text: &str, links: &Links) -> Result<Option<Recording>, Problem> {
    let Some(table) = table::Table::read(text) else {
        return Ok(None);
    };
    if table.has("throughput") && table.has("time_since_start") {
        forms::transfers(&table).map(Some)
    } else if table.has("downlink_Mbps") && table.has("nr_ssRsrp") {
        forms::walk(&table).map(Some)
    } else if table.has("t_s") {
        forms::log(&table, links).map(Some)
    } else {
        Ok(None)
    }
}

/// Takes links of a capacity trace for a transfer: as if its rates had been used.
///
/// # Errors
/// There is no such link, or it cannot be told which one is meant.
pub fn of_trace(trace: &Trace, links: &Links) -> Result<Recording, String> {
    let names = trace.columns();
    let (down, up) = choose(&names, links)?;
    let second = Duration::from_secs(1);
    let resampled = match &trace.capacity {
        Capacity::Opportunities { .. } => Some(trace.resampled(second).map_err(|e| e.msg)?),
        Capacity::Steps { .. } => None,
    };
    let steps = resampled.as_ref().unwrap_or(trace);
    let Capacity::Steps {
        starts,
        end,
        columns,
    } = &steps.capacity
    else {
        return Err("the trace has no rates".to_owned());
    };
    let ends = starts.iter().skip(1).chain([end]);
    let rate = |link: Option<usize>, i: usize| {
        link.map_or(0.0, |c| columns[c].rates[i].as_bps() as f64 / 1e6)
    };
    let samples = starts.iter().zip(ends).enumerate();
    let samples = samples.map(|(i, (start, end))| Sample {
        interval: Interval::at_rates(*end - *start, rate(down, i), rate(up, i)),
        power_mw: None,
    });
    Ok(Recording {
        transfers: vec![Transfer {
            name: "trace".to_owned(),
            samples: samples.collect(),
        }],
        scope: None,
        connected: false,
        notes: vec!["the rates of the trace are taken as carried".to_owned()],
    })
}

/// Places of the links among `names`.
fn choose(names: &[&str], links: &Links) -> Result<(Option<usize>, Option<usize>), String> {
    let find = |name: &str| names.iter().position(|n| *n == name);
    let named = |flag: &str, name: &str| {
        find(name).ok_or_else(|| {
            let all = names.join(", ");
            format!("{flag}: no link is called \"{name}\": expected one of {all}")
        })
    };
    let up = match &links.up {
        Some(name) => Some(named("--up", name)?),
        None => find("up"),
    };
    let down = match (&links.down, find("down")) {
        (Some(name), _) => Some(named("--down", name)?),
        (None, Some(down)) => Some(down),
        (None, None) if links.up.is_some() || names == ["up"] => None,
        (None, None) if names.len() == 1 => Some(0),
        (None, None) => {
            let all = names.join(", ");
            return Err(format!(
                "there are several links ({all}): say which with --down and --up"
            ));
        }
    };
    Ok((down, up))
}
