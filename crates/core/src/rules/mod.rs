//! Rules of steering: which traffic goes over the bond, by one access directly, or nowhere.
//!
//! A [`Rule`] has a traffic descriptor and an outcome, as an ATSSS rule has (3GPP TS 24.193 6.1.3).
//! Rules stand in the order of precedence, the one that is asked first in front ([`ask`]). What
//! meets none goes over the bond.

mod descriptor;
mod flow;
#[cfg(test)]
mod tests;
mod values;
mod written;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use descriptor::{Criterion, Descriptor, Match};
pub use flow::Flow;
pub use values::{Client, Dscp, Mac, Ports, Protocol, Unit, User};
pub use written::Written;

/// Rules at most: TS 24.193 6.1.3 gives the precedence one byte, and one value is for what meets no
/// rule.
pub const MAX_RULES: usize = 254;
/// Values at most of one criterion.
pub const MAX_VALUES: usize = 256;
/// Class of traffic that there is without being configured.
pub const DEFAULT_CLASS: &str = "default";

/// Rule of steering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Rule {
    /// Name, under which it is shown; absent: its place is shown.
    pub name: Option<String>,
    /// Traffic that it is for.
    pub descriptor: Descriptor,
    /// Steering of that traffic.
    pub outcome: Outcome,
}

/// Steering of traffic that meets a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Goes over the bond, in this class.
    Class(String),
    /// Leaves by the first of these accesses that works, past the bond.
    Direct(Vec<String>),
    /// Is refused; its sender is told.
    Block,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "class {class}"),
            Self::Direct(accesses) => write!(f, "direct by {}", accesses.join(", else ")),
            Self::Block => f.write_str("block"),
        }
    }
}

impl Rule {
    /// Returns its name, or its place, counted from 1, where it has none.
    pub fn title(&self, place: usize) -> String {
        self.name.clone().unwrap_or_else(|| format!("rule {place}"))
    }
}

/// Asks rules about a flow until one decides. Returns the results of those that do not, and the place,
/// from 0, of the one that does; `None` where none does.
pub fn ask<'a>(
    rules: impl IntoIterator<Item = &'a Rule>,
    flow: &Flow,
) -> (Vec<Match>, Option<usize>) {
    let mut asked = Vec::new();
    for rule in rules {
        match rule.descriptor.judge(flow) {
            Match::Yes => {
                let place = asked.len();
                return (asked, Some(place));
            }
            other => asked.push(other),
        }
    }
    (asked, None)
}
