//! The parts of the `braid` command.

pub mod end;
pub mod trace_cmd;
