//! The parts of the `braid` command.

#[cfg(feature = "report")]
mod congestion;
#[cfg(feature = "report")]
mod daemon_error;
#[cfg(feature = "report")]
pub mod doctor;
#[cfg(feature = "report")]
pub mod events_cmd;
#[cfg(feature = "report")]
pub mod replay_cmd;
#[cfg(feature = "report")]
pub mod run_cmd;
#[cfg(feature = "report")]
mod runtime;
#[cfg(feature = "report")]
pub mod set_cmd;
#[cfg(feature = "report")]
pub mod status;
#[cfg(feature = "report")]
mod table;
#[cfg(feature = "report")]
pub mod trace_cmd;
