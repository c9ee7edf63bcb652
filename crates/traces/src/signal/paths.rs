//! From signals to paths: second by second, which cells could carry traffic at
//! the same time, and how much.

use std::time::Duration;

use braid_core::Rate;

use super::capacity::ShannonFit;
use super::measurement::{DEFAULT_BANDWIDTH_MHZ, Heard, Measurements};
use super::sinr::{SinrModel, milliwatts};
use crate::format::{DOWNLINK, UPLINK};
use crate::{Capacity, Format, LineError, MAX_SPAN, Trace};

/// How capacity comes from what was heard.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityModel {
    /// From powers to SINR.
    pub sinr: SinrModel,
    /// From SINR to capacity.
    pub fit: ShannonFit,
    /// Take the device's own SINR where it was measured.
    pub measured_sinr: bool,
    /// Bandwidth of carriers whose file does not say it, MHz.
    pub default_bandwidth_mhz: f64,
    /// Bandwidths in MHz by the name of the carrier, before what the file says.
    pub bandwidths: Vec<(String, f64)>,
}

impl Default for CapacityModel {
    fn default() -> Self {
        Self {
            sinr: SinrModel::default(),
            fit: ShannonFit::default(),
            measured_sinr: false,
            default_bandwidth_mhz: DEFAULT_BANDWIDTH_MHZ,
            bandwidths: Vec::new(),
        }
    }
}

/// A cell that can carry traffic in one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Index into [`Paths::cells`].
    pub cell: usize,
    /// Its downlink capacity.
    pub rate: Rate,
}

/// A cell, its carrier and its operator by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathCell {
    /// Operator.
    pub operator: String,
    /// Carrier.
    pub carrier: String,
    /// Cell.
    pub cell: String,
    /// Number of its carrier: equal for cells that exclude each other.
    pub channel: usize,
    /// Index of its operator in [`Paths::operators`].
    pub operator_index: usize,
}

/// The paths of one second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// At most one cell per carrier, the largest capacity first.
    pub paths: Vec<Path>,
    /// Every cell that was heard, also those that share a carrier: what each
    /// would carry if it served, the largest capacity first.
    pub heard: Vec<Path>,
    /// Index of the segment, where the file says so.
    pub segment: Option<usize>,
}

/// Paths second by second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Paths {
    /// Names of the operators.
    pub operators: Vec<String>,
    /// Every cell that was ever heard.
    pub cells: Vec<PathCell>,
    /// Names of the segments.
    pub segments: Vec<String>,
    /// The seconds.
    pub seconds: Vec<Now>,
}

/// Length of a second here.
pub const STEP: Duration = Duration::from_secs(1);

impl Measurements {
    /// The paths of every second: on each carrier the cell with the largest
    /// RSRP, against all others heard on that carrier.
    ///
    /// Using several cells of a carrier at a time would interfere with itself,
    /// so the paper allows one (section 3.1).
    pub fn paths(&self, model: &CapacityModel) -> Paths {
        let mut paths = Paths {
            operators: self.operators.clone(),
            segments: self.segments.clone(),
            ..Paths::default()
        };
        paths.cells = self
            .cells
            .iter()
            .map(|c| {
                let carrier = &self.carriers[c.carrier];
                PathCell {
                    operator: self.operators[carrier.operator].clone(),
                    carrier: carrier.name.clone(),
                    cell: c.name.clone(),
                    channel: c.carrier,
                    operator_index: carrier.operator,
                }
            })
            .collect();
        let bandwidths: Vec<f64> = self
            .carriers
            .iter()
            .map(|c| {
                let given = model.bandwidths.iter().find(|(n, _)| *n == c.name);
                let given = given.map(|(_, mhz)| *mhz).or(c.bandwidth_mhz);
                given.unwrap_or(model.default_bandwidth_mhz) * 1e6
            })
            .collect();
        let second = |s: &super::Second| {
            let mut all_mw = vec![0.0; self.carriers.len()];
            for h in &s.heard {
                all_mw[self.cells[h.cell].carrier] += milliwatts(h.rsrp_dbm);
            }
            let path = |h: &Heard| {
                let carrier = self.cells[h.cell].carrier;
                let measured = h.sinr_db.filter(|_| model.measured_sinr);
                let sinr = measured.map_or_else(
                    || {
                        let others = all_mw[carrier] - milliwatts(h.rsrp_dbm);
                        model.sinr.sinr(h.rsrp_dbm, others)
                    },
                    milliwatts,
                );
                Path {
                    cell: h.cell,
                    rate: model.fit.capacity(bandwidths[carrier], sinr),
                }
            };
            // The strongest of each carrier; of equals the one known longest.
            let mut strongest: Vec<Option<&Heard>> = vec![None; self.carriers.len()];
            for h in &s.heard {
                let best = &mut strongest[self.cells[h.cell].carrier];
                if best.is_none_or(|b| h.rsrp_dbm > b.rsrp_dbm) {
                    *best = Some(h);
                }
            }
            let mut now = Now {
                paths: strongest.into_iter().flatten().map(path).collect(),
                heard: s.heard.iter().map(path).collect(),
                segment: s.segment,
            };
            now.sort();
            now
        };
        paths.seconds = self.seconds.iter().map(second).collect();
        paths
    }
}

impl Now {
    fn sort(&mut self) {
        for list in [&mut self.paths, &mut self.heard] {
            list.sort_by_key(|p| (std::cmp::Reverse(p.rate), p.cell));
        }
    }

    /// Capacity of all paths together.
    pub fn multipath(&self) -> Rate {
        Rate::from_bps(self.paths.iter().map(|p| p.rate.as_bps()).sum())
    }

    /// How many cells were heard.
    pub fn visible(&self) -> usize {
        self.heard.len()
    }

    /// Returns the rate that `cell` would carry, if it was heard.
    pub fn rate_of(&self, cell: usize) -> Option<Rate> {
        let found = self.heard.iter().find(|p| p.cell == cell);
        found.map(|p| p.rate)
    }

    /// Capacity of the best path; none is zero.
    pub fn best(&self) -> Rate {
        self.paths.first().map_or(Rate::ZERO, |p| p.rate)
    }
}

impl Paths {
    /// The links of a capacity trace as cells, each of an operator and on a
    /// carrier of its own; a rate of zero is a cell that is not heard. Rates are
    /// means over every second. The uplink of the UCC dataset is no second cell.
    ///
    /// # Errors
    /// The trace cannot be cut into seconds.
    pub fn from_trace(trace: &Trace) -> Result<Self, LineError> {
        let trace = trace.resampled(STEP)?;
        let trace = match trace.column_index(Some(UPLINK)) {
            Ok(_) if trace.format == Format::Ucc5g => {
                let down = trace.column_index(Some(DOWNLINK))?;
                trace.select(&[(down, DOWNLINK.to_owned())])
            }
            _ => trace,
        };
        let Capacity::Steps { columns, .. } = &trace.capacity else {
            return Err(LineError {
                line: None,
                msg: "no rates in the trace".into(),
            });
        };
        let named = |(i, c): (usize, &crate::Column)| PathCell {
            operator: c.name.clone(),
            carrier: c.name.clone(),
            cell: c.name.clone(),
            channel: i,
            operator_index: i,
        };
        let seconds = columns.iter().map(|c| c.rates.len()).max().unwrap_or(0);
        let second = |t: usize| {
            let alive = columns.iter().enumerate().filter_map(|(cell, c)| {
                let rate = *c.rates.get(t)?;
                (rate > Rate::ZERO).then_some(Path { cell, rate })
            });
            let mut now = Now {
                paths: alive.collect(),
                ..Now::default()
            };
            now.sort();
            now.heard.clone_from(&now.paths);
            now
        };
        Ok(Self {
            operators: columns.iter().map(|c| c.name.clone()).collect(),
            cells: columns.iter().enumerate().map(named).collect(),
            segments: Vec::new(),
            seconds: (0..seconds).map(second).collect(),
        })
    }

    /// Only `length` from `start` on, in whole seconds.
    ///
    /// # Errors
    /// Nothing is left.
    pub fn part(&self, start: Duration, length: Option<Duration>) -> Result<Self, LineError> {
        let all = self.seconds.len();
        let from = usize::try_from(start.as_secs()).unwrap_or(all).min(all);
        let length = length.unwrap_or(MAX_SPAN).as_secs();
        let until = from.saturating_add(usize::try_from(length).unwrap_or(all));
        let seconds = self.seconds[from..until.min(all)].to_vec();
        if seconds.is_empty() {
            return Err(LineError {
                line: None,
                msg: format!("nothing is left: the recording is {all} s long"),
            });
        }
        Ok(Self {
            seconds,
            ..self.clone()
        })
    }

    /// Only the seconds of the segment called `name`, joined.
    ///
    /// # Errors
    /// There is no such segment; says which there are.
    pub fn segment(&self, name: &str) -> Result<Self, LineError> {
        let index = self.segments.iter().position(|s| s == name);
        let seconds: Vec<Now> = self
            .seconds
            .iter()
            .filter(|n| index.is_some() && n.segment == index)
            .cloned()
            .collect();
        if seconds.is_empty() {
            let known = match &self.segments[..] {
                [] => "the recording names none".to_owned(),
                some => format!("expected one of {}", some.join(", ")),
            };
            return Err(LineError {
                line: None,
                msg: format!("no segment \"{name}\": {known}"),
            });
        }
        Ok(Self {
            seconds,
            ..self.clone()
        })
    }

    /// Capacity of the best path of operator `index` at `second`.
    pub fn operator_best(&self, index: usize, second: &Now) -> Rate {
        let own = |p: &&Path| self.cells[p.cell].operator_index == index;
        second.paths.iter().find(own).map_or(Rate::ZERO, |p| p.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Else a device would download over what it uploaded by.
    #[test]
    fn an_uplink_is_no_second_cell() {
        let text = "Timestamp,Operatorname,RAWCELLID,NetworkMode,RSRP,DL_bitrate,UL_bitrate,State\n\
                    2019.12.14_10.16.30,B,11,LTE,-90,20000,900,D\n\
                    2019.12.14_10.16.31,B,11,LTE,-90,30000,900,D\n";
        let trace = Trace::parse(text.as_bytes(), None).unwrap();
        assert_eq!(trace.columns(), [DOWNLINK, UPLINK]);
        let paths = Paths::from_trace(&trace).unwrap();
        assert_eq!(paths.operators, [DOWNLINK]);
        let best: Vec<f64> = paths.seconds.iter().map(|s| s.best().as_mbps()).collect();
        assert_eq!(best, [20.0, 30.0]);
    }
}
