//! Rules and classes of a device's configuration as ATSSS rules of a core network, and back
//! (3GPP TS 24.193 6.1.3; octets: [`braid_core::atsss`]).
//!
//! A session of ATSSS has two accesses, a 3GPP and a non-3GPP one: [`Names`] says which of the
//! configuration's they are. Nothing widens a rule: one with a part that has no counterpart is left out.
//! Each part that is left out, or means less on the other side, has its [`Remark`].

mod export;
mod import;
#[cfg(test)]
mod tests;

use std::fmt;

use braid_core::AccessKind;
use braid_core::atsss::Side;

pub use export::{Exported, export};
pub use import::{Imported, import};

use crate::config::{Config, DeviceAccess};

/// Names of the accesses that stand for the two of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// 3GPP access.
    pub threegpp: String,
    /// Non-3GPP access.
    pub non_threegpp: String,
}

impl Names {
    /// Chooses the accesses of a configuration that are not given: the first whose kind is 5G or LTE, and
    /// the first of another kind.
    ///
    /// # Errors
    /// No access is called as one that is given, or there is none to choose.
    pub fn choose(
        config: &Config<DeviceAccess>,
        threegpp: Option<&str>,
        non_threegpp: Option<&str>,
    ) -> Result<Self, String> {
        let is_threegpp = |kind| matches!(kind, AccessKind::Nr | AccessKind::Lte);
        let choose = |given: Option<&str>, wanted: bool, other: Option<&str>| {
            let mut all = config.access.iter();
            let found = match given {
                Some(name) => all.find(|(n, _)| *n == name),
                None => {
                    all.find(|(n, a)| is_threegpp(a.kind) == wanted && Some(n.as_str()) != other)
                }
            };
            let kind = if wanted { "3GPP" } else { "non-3GPP" };
            found
                .map(|(name, _)| name.clone())
                .ok_or_else(|| match given {
                    Some(name) => format!("no access is called \"{name}\""),
                    None => format!(
                        "no access is of a {kind} kind: name the one that stands for it (--{})",
                        kind.to_lowercase()
                    ),
                })
        };
        let names = Self {
            threegpp: choose(threegpp, true, non_threegpp)?,
            non_threegpp: choose(non_threegpp, false, threegpp)?,
        };
        match names.threegpp == names.non_threegpp {
            true => Err(format!(
                "\"{}\" cannot be both accesses of a session",
                names.threegpp
            )),
            false => Ok(names),
        }
    }

    /// Returns the name of an access.
    pub fn name(&self, side: Side) -> &str {
        match side {
            Side::Threegpp => &self.threegpp,
            Side::NonThreegpp => &self.non_threegpp,
        }
    }

    /// Returns which access this name stands for; `None` for neither.
    fn side(&self, name: &str) -> Option<Side> {
        [Side::Threegpp, Side::NonThreegpp]
            .into_iter()
            .find(|side| self.name(*side) == name)
    }
}

/// Part of what was given that has no counterpart, or means less there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remark {
    /// Rule, class or parameter.
    pub about: String,
    /// Description, in words.
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.what)
    }
}

/// Remarks, each of them once.
#[derive(Debug, Default)]
struct Remarks(Vec<Remark>);

impl Remarks {
    fn add(&mut self, about: &str, what: impl Into<String>) {
        let (about, what) = (about.to_owned(), what.into());
        let remark = Remark { about, what };
        if !self.0.contains(&remark) {
            self.0.push(remark);
        }
    }
}
