//! The parts of the `braid` command.

mod congestion;
mod daemon_error;
pub mod doctor;
pub mod events_cmd;
pub mod replay_cmd;
pub mod rules_cmd;
pub mod run_cmd;
mod runtime;
pub mod set_cmd;
pub mod status;
mod table;
pub mod trace_cmd;
mod twice;
mod watch;
