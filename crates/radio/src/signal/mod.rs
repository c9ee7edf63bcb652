//! Radio signals: from what a device heard of cells to what they could carry.

pub mod capacity;
pub mod delay;
pub mod sinr;
