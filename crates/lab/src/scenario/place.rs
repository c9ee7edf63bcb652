//! The key `from` of traffic: whose program begins it. And `beside`, the second traffic of a case.

use serde::{Deserialize, Serialize};
use serde_spanned::Spanned;

use super::build::unknown;
use super::diagnostic::Problem;
use super::raw::{RawCase, RawTraffic};
use super::text::Either;
use super::traffic::{self, Traffic};
use crate::engine::Engine;

/// Place where traffic begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// A program at the device; the other end is at the proxy.
    #[default]
    Device,
    /// An unchanged host behind the device; the other end is a server behind the proxy.
    Lan,
}

impl Place {
    const ALL: [Self; 2] = [Self::Device, Self::Lan];

    /// Returns the word that a scenario uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Device => "device",
            Self::Lan => "lan",
        }
    }
}

/// Traffic beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Beside {
    /// Traffic of the application.
    pub traffic: Traffic,
    /// Place where it begins.
    #[serde(default)]
    pub from: Place,
}

/// Reads traffic that an engine carries, and the place where it begins.
///
/// # Errors
/// What its kind finds, or why the engine cannot carry it.
pub(super) fn of_engine(
    raw: &Spanned<RawTraffic>,
    engine: &Engine,
) -> Result<(Traffic, Place), Problem> {
    let read = traffic::traffic(raw)?;
    let from = from(raw)?;
    if let (Traffic::Command(_), Place::Lan) = (&read, from) {
        let m =
            "a command runs at the device: hosts have traffic of the lab's own, such as \"bulk\"";
        return Err(Problem::at(raw.span(), m));
    }
    match engine.get().refuses(&read, from) {
        Some(why) => Err(Problem::at(raw.span(), why)),
        None => Ok((read, from)),
    }
}

/// Reads the traffic beside that of a case.
///
/// # Errors
/// As [`of_engine`], or it is a command.
pub(super) fn beside(raw: &RawCase, engine: &Engine) -> Result<Option<Beside>, Problem> {
    let Some(given) = &raw.beside else {
        return Ok(None);
    };
    let (traffic, from) = of_engine(given, engine)?;
    if let Traffic::Command(_) = traffic {
        let m = "beside other traffic the lab runs its own alone: expected a kind such as \"voip\"";
        return Err(Problem::at(given.span(), m));
    }
    Ok(Some(Beside { traffic, from }))
}

/// Refuses hosts behind what has none.
///
/// # Errors
/// The traffic names a place.
pub(super) fn none_named(raw: &Spanned<RawTraffic>) -> Result<(), Problem> {
    match given(raw) {
        Some(from) => Err(Problem::at(
            from.span(),
            "hosts are behind the measured device alone: remove `from`",
        )),
        None => Ok(()),
    }
}

fn given(raw: &Spanned<RawTraffic>) -> Option<&Spanned<String>> {
    match raw.get_ref() {
        Either::Short(_) => None,
        Either::Long(table) => table.from.as_ref(),
    }
}

fn from(raw: &Spanned<RawTraffic>) -> Result<Place, Problem> {
    let Some(word) = given(raw) else {
        return Ok(Place::default());
    };
    let found = Place::ALL
        .into_iter()
        .find(|p| p.as_str() == word.get_ref());
    found.ok_or_else(|| unknown(word, "place", Place::ALL.map(Place::as_str)))
}
