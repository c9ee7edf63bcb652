//! Repair of what the kernel leaves: subflows that are not opened again, priorities that the peer
//! does not apply, windows that are too small, servers that MPTCP does not reach, subflows without
//! progress.
//!
//! Nothing here asks the kernel or the clock: samples of sockets are passed in, and remedies come
//! back.

pub mod priority_repeat;
pub mod receive_window;
pub mod stalls;
pub mod stripping;
pub mod subflow_reopen;
pub mod window_limited;
