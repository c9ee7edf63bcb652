//! Identity of this end, and the peers that it trusts.

use std::fs;

use braid_mpquic::tls::{self, Devices, Identity, Trust};

use crate::DaemonError;
use crate::config::quic::{Files, Quic, Who};

/// In certificates that ends make for themselves: they are known by their keys.
const NAME: &str = "braid";

/// Reads an end's key; makes it, where it is ours to make and is not there.
pub(crate) fn identity(files: &Files) -> Result<Identity, DaemonError> {
    if files.own && !files.key.exists() && !files.certificate.exists() {
        let folder = files.key.parent();
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|e| {
                DaemonError::Failed(format!(
                    "make the folder {} for this end's key: {e}: give certificate and key in \
                     [mpquic], or make the folder",
                    folder.display()
                ))
            })?;
        }
        return Identity::create(NAME, &files.certificate, &files.key)
            .map_err(|e| DaemonError::Failed(e.to_string()));
    }
    Identity::load(&files.certificate, &files.key).map_err(|e| {
        DaemonError::Config(format!(
            "[mpquic] certificate, key: {e} (PEM files; without the two entries Braid makes a key)"
        ))
    })
}

pub(crate) fn trust(config: &Quic) -> Result<Option<Trust>, DaemonError> {
    Ok(match &config.trust {
        Who::Pins(pins) => Some(Trust::Pins(pins.clone())),
        Who::Authorities(file) => Some(Trust::Authorities(
            tls::certificates(file)
                .map_err(|e| DaemonError::Config(format!("[mpquic] authorities: {e}")))?,
        )),
        Who::Anyone => None,
    })
}

pub(crate) fn devices(config: &Quic) -> Result<Devices, DaemonError> {
    Ok(trust(config)?.map_or(Devices::Anyone, Devices::Trusted))
}
