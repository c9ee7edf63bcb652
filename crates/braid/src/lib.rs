//! The parts of the `braid` command.

pub mod end;
