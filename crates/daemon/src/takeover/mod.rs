//! Takeover: state that a daemon saves, so that the one that follows it after a kill adopts it or
//! restores what was before.

pub(crate) mod next_hops;
pub(crate) mod overrides;
pub(crate) mod pins;
pub(crate) mod state_file;
pub(crate) mod sysctls;
