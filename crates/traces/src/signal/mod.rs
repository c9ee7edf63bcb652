//! Radio signals: from what a device heard of cells to what they could carry.
//!
//! [`Measurements`] hold received powers per second and cell, read from files
//! ([`import`]) or generated ([`mod@drive`]). [`sinr`] and [`capacity`] turn them
//! into [`Paths`], of which [`cells`] makes statistics and [`plan`] schedules.
//! docs/signals.md has the formulas with their sources.

pub mod capacity;
pub mod cells;
pub mod delay;
pub mod drive;
mod flaws;
pub mod import;
mod measurement;
pub mod paper;
mod paths;
pub mod picture;
pub mod plan;
pub mod series;
pub mod sinr;
pub mod write;

pub use flaws::{Flaw, FlawKind};
pub use measurement::{
    BANDWIDTH_MHZ, Carrier, Cell, DEFAULT_BANDWIDTH_MHZ, Heard, Measurements, RSRP_DBM, RSRQ_DB,
    SINR_DB, Second,
};
pub use paths::{CapacityModel, Now, Path, PathCell, Paths, STEP};
