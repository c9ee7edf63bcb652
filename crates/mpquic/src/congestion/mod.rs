//! Congestion control of the paths of one connection.

mod ack_only;
mod coupled;
mod delivery;
mod drain;
mod gate;
mod losses;
mod resume;
mod set;
mod shared;
mod swing;

use std::sync::Arc;

use noq_proto::congestion::{Bbr3Config, CubicConfig, NewRenoConfig};

pub(crate) use gate::{Gate, Gates, Inner};
pub(crate) use losses::Overtaken;
pub(crate) use resume::Jump;
pub(crate) use set::CongestionSet;
pub(crate) use shared::{Shared, Slot};

use crate::Error;

/// Algorithms for one path alone: the library's, and [`braid_core::cc::Swing`].
const ALONE: [&str; 4] = ["reno", "cubic", "bbr", "swing"];

/// The names of all algorithms.
pub fn names() -> impl Iterator<Item = &'static str> {
    let ours = braid_core::cc::RULES.iter().map(|r| r.name());
    ALONE.into_iter().chain(ours.filter(|n| *n != "reno"))
}

/// Returns the factory of the controllers called `name`.
pub(crate) fn inner(name: &str) -> Result<Inner, Error> {
    Ok(match name {
        "reno" => Inner::Library(Arc::new(NewRenoConfig::default()), false),
        "cubic" => Inner::Library(Arc::new(CubicConfig::default()), false),
        "bbr" => Inner::Library(Arc::new(Bbr3Config::default()), true),
        "swing" => Inner::Library(Arc::new(swing::SwingConfig), false),
        _ => match braid_core::cc::by_name(name) {
            Some(rule) => Inner::Coupled(rule),
            None => {
                return Err(Error::UnknownCongestionControl {
                    name: name.to_owned(),
                    known: names().collect::<Vec<_>>().join(", "),
                });
            }
        },
    })
}
