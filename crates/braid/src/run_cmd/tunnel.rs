//! Where the daemon speaks Multipath QUIC, MPTCP is not what a program is to go over.

use std::path::Path;

use anyhow::Result;
use braid_api::Engine;
use braid_api::client::Client;
use braid_netns::error::LabError;
use serde::Deserialize;

use crate::runtime::runtime;

/// Only what is needed, so that a daemon of another version is understood.
#[derive(Deserialize)]
struct Said {
    engine: Engine,
    #[serde(default)]
    engines: Vec<Engine>,
}

/// Refuses where a daemon that serves `control` has no MPTCP, and no tunnel either, which would
/// take any program.
///
/// # Errors
/// [`LabError::BadInput`], with what to do instead.
pub(super) fn refuse(control: &Path) -> Result<()> {
    // One that is not there, or may not be asked, decides nothing.
    let said = runtime()?.block_on(Client::new(control).get::<Said>("/v1/status"));
    if said.is_ok_and(|s| s.engine == Engine::Mpquic && !s.engines.contains(&Engine::Mptcp)) {
        return Err(LabError::BadInput(format!(
            "the daemon at {} speaks Multipath QUIC, and a tunnel over which any program goes does \
             not exist yet\n  forward a port, and have the program connect there: [mpquic] forward \
             in the daemon's configuration\n  or have MPTCP beside it: braid run --by preload -- ...",
            control.display()
        ))
        .into());
    }
    Ok(())
}
