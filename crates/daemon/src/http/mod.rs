//! HTTP: the control API on a Unix socket, and metrics.

pub(crate) mod api;
mod control_socket;
pub(crate) mod metrics;
