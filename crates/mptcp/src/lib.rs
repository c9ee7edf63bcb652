//! Kernel MPTCP.
