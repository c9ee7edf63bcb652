//! Path plans: which cell is on which interface when, so that an engine can be
//! run over a recording with so many interfaces.

mod file;
mod select;
mod summary;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use braid_core::Rate;

pub use file::{parse, write};
pub use select::plan;
pub use summary::{PlanSummary, summary};

/// Most interfaces of a plan.
pub const MAX_INTERFACES: usize = 8;

/// How many interfaces there are, as the paper's tables call it (section 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// `sp`: one interface, always on the best cell, without any interruption:
    /// an ideal that no network gives.
    SinglePath,
    /// `1` to `8`: so many interfaces, each on a carrier of its own, with real
    /// handovers.
    Interfaces(usize),
}

impl Case {
    /// The paper's cases.
    pub const PAPER: [Self; 5] = [
        Self::SinglePath,
        Self::Interfaces(1),
        Self::Interfaces(2),
        Self::Interfaces(3),
        Self::Interfaces(4),
    ];

    /// Number of interfaces.
    pub const fn interfaces(self) -> usize {
        match self {
            Self::SinglePath => 1,
            Self::Interfaces(n) => n,
        }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SinglePath => f.write_str("sp"),
            Self::Interfaces(n) => write!(f, "{n}"),
        }
    }
}

impl FromStr for Case {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        if s == "sp" {
            return Ok(Self::SinglePath);
        }
        let n = s.parse::<usize>().ok();
        n.filter(|n| (1..=MAX_INTERFACES).contains(n))
            .map(Self::Interfaces)
            .ok_or_else(|| format!("\"{s}\" is no case: expected sp or 1 to {MAX_INTERFACES}"))
    }
}

/// When a handover gives the interface a new address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewAddress {
    /// Never: the network hides mobility.
    Never,
    /// With every operator.
    Operator,
    /// With every cell, as in the paper (section 1: "a separate IP address for
    /// the terminal for every accessible cell").
    Cell,
}

impl FromStr for NewAddress {
    type Err = String;
    fn from_str(s: &str) -> Result<Self, String> {
        match s {
            "never" => Ok(Self::Never),
            "operator" => Ok(Self::Operator),
            "cell" => Ok(Self::Cell),
            _ => Err(format!("\"{s}\": expected never, operator or cell")),
        }
    }
}

impl fmt::Display for NewAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "never",
            Self::Operator => "operator",
            Self::Cell => "cell",
        })
    }
}

/// How handovers are decided and what they cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Handover {
    /// A cell must carry this much more than the present one, as a part of it,
    /// 0 to 10 ...
    pub hysteresis: f64,
    /// ... for this long (time to trigger, TS 36.331 5.5.4), 0 to 60 s.
    pub time_to_trigger: Duration,
    /// For this long nothing passes, 0 to 60 s. TS 36.133 5.1.2.1.2 allows LTE
    /// some 50 ms when the target is known.
    pub interruption: Duration,
    /// When the address changes.
    pub new_address: NewAddress,
}

impl Default for Handover {
    fn default() -> Self {
        Self {
            hysteresis: 0.25,
            time_to_trigger: Duration::from_secs(1),
            interruption: Duration::from_millis(50),
            new_address: NewAddress::Cell,
        }
    }
}

impl Handover {
    /// Longest time of each kind.
    pub const MAX: Duration = Duration::from_secs(60);

    /// Whether every parameter is in its range.
    ///
    /// # Errors
    /// Says which is not.
    pub fn check(&self) -> Result<(), String> {
        if !(0.0..=10.0).contains(&self.hysteresis) {
            return Err(format!("hysteresis {}: expected 0 to 10", self.hysteresis));
        }
        for (name, t) in [
            ("time to trigger", self.time_to_trigger),
            ("interruption", self.interruption),
        ] {
            if t > Self::MAX {
                return Err(format!("{name} {t:?}: expected at most 60 s"));
            }
        }
        Ok(())
    }
}

/// A schedule of interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// How many interfaces there are.
    pub interfaces: usize,
    /// How long it lasts.
    pub length: Duration,
    /// Changes of state, ascending by time, then interface; each interface has a row at time
    /// zero.
    pub rows: Vec<Row>,
}

/// From `at` on, until its next row, an interface is in `state`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Since the start.
    pub at: Duration,
    /// Number of the interface, from 1.
    pub interface: usize,
    /// State of the interface.
    pub state: State,
}

/// State of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// On a cell.
    Up(Attached),
    /// On its way to a cell: nothing passes; rate and delay are what will be.
    Handover(Attached),
    /// No cell is left for it.
    Down,
}

/// A cell with an interface on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Operator.
    pub operator: String,
    /// Carrier.
    pub carrier: String,
    /// Cell.
    pub cell: String,
    /// Downlink capacity.
    pub rate: Rate,
    /// One-way delay, in whole microseconds.
    pub delay: Duration,
    /// Number of the interface's address, from 1: another number, another
    /// address.
    pub address: u32,
}

impl Attached {
    /// Whether both are on one cell.
    pub fn same_cell(&self, other: &Self) -> bool {
        (&self.operator, &self.carrier, &self.cell)
            == (&other.operator, &other.carrier, &other.cell)
    }
}

#[cfg(test)]
mod tests;
