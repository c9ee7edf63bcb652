//! The parts of the `braid` command.

pub mod end;
#[cfg(feature = "report")]
pub mod trace_cmd;
