//! Radio signals: from what a device heard of cells to what they could carry.

pub mod capacity;
pub mod cells;
pub mod delay;
pub mod drive;
mod flaws;
pub mod import;
mod measurement;
mod paths;
pub mod sinr;
pub mod write;

pub use flaws::{Flaw, FlawKind};
pub use measurement::{
    BANDWIDTH_MHZ, Carrier, Cell, DEFAULT_BANDWIDTH_MHZ, Heard, Measurements, RSRP_DBM, RSRQ_DB,
    SINR_DB, Second,
};
pub use paths::{CapacityModel, Now, Path, PathCell, Paths, STEP};
