//! Converter of the proxy (RFC 8803), and the device's way over it: connections of TCP go on over
//! Multipath TCP where no session of Multipath QUIC can be had.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use braid_api::config as file;
use braid_forward::carrier::{Fallback, OverConverter};
use braid_forward::convert::{Cookie, Settings};
use braid_forward::{Allowed, Carrier, convert};
use ipnet::IpNet;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::DaemonError;
use crate::config::Config;
use crate::config::quic::allowed;
use crate::engine::Result;

/// `[converter]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Converter {
    /// Port of TCP at the proxy.
    pub port: u16,
    /// File with the secret that both ends know.
    pub cookie_file: PathBuf,
    /// Networks that devices connect from; empty: all.
    pub sources: Vec<IpNet>,
    /// Destinations that the proxy connects to.
    pub allow: Allowed,
}

impl Converter {
    /// Takes `[converter]` over; `otherwise`: the destinations where it names none.
    pub(crate) fn take_over(c: file::Converter, otherwise: Option<&Allowed>) -> Self {
        let allow = c.allow.map(allowed);
        Self {
            port: c.port,
            cookie_file: c.cookie_file,
            sources: c.sources,
            allow: allow.or_else(|| otherwise.cloned()).unwrap_or_default(),
        }
    }

    /// Reads the cookie.
    ///
    /// # Errors
    /// The file cannot be read, or holds no secret.
    pub(crate) fn cookie(&self) -> std::result::Result<Cookie, String> {
        read(&self.cookie_file)
    }

    fn addresses(&self, proxy: &[IpAddr]) -> Vec<SocketAddr> {
        let all = proxy.iter();
        all.map(|ip| SocketAddr::new(*ip, self.port)).collect()
    }
}

fn read(file: &Path) -> std::result::Result<Cookie, String> {
    let text = braid_api::bounded::read_text(file);
    let text = text.map_err(|e| format!("{}: cannot be read: {e}", file.display()))?;
    Cookie::new(&text).map_err(|what| format!("{}: {what}", file.display()))
}

fn wrong(what: String) -> DaemonError {
    DaemonError::Config(format!("[converter] cookie_file: {what}"))
}

/// Way of the device over the converter.
#[derive(Default)]
pub(crate) struct Conversion {
    /// Addresses of the converter.
    at: watch::Sender<Vec<SocketAddr>>,
    carrier: OnceLock<OverConverter>,
    /// Carrier over sessions that falls back to it.
    bonded: OnceLock<Arc<dyn Carrier>>,
    falls_back: watch::Sender<bool>,
}

impl Conversion {
    /// Makes the way, if the configuration has one.
    ///
    /// # Errors
    /// The cookie cannot be read.
    pub(crate) fn begin(&self, config: &Config) -> Result<()> {
        let Some(converter) = &config.converter else {
            return Ok(());
        };
        let cookie = converter.cookie().map_err(wrong)?;
        self.reach(config, &config.proxy);
        let carrier = OverConverter::new(self.at.subscribe(), cookie);
        let _ = self.carrier.set(carrier);
        Ok(())
    }

    /// Goes by these addresses of the proxy.
    pub(crate) fn reach(&self, config: &Config, proxy: &[IpAddr]) {
        if let Some(converter) = &config.converter {
            self.at.send_replace(converter.addresses(proxy));
        }
    }

    /// Returns the way over the converter, if there is one.
    pub(crate) fn carrier(&self) -> Option<Arc<dyn Carrier>> {
        let carrier = self.carrier.get()?.clone();
        Some(Arc::new(carrier))
    }

    /// Returns the way over sessions, and over the converter while there is no `contact` by them.
    pub(crate) fn beside(
        &self,
        contact: impl FnOnce() -> watch::Receiver<bool>,
        over_sessions: Arc<dyn Carrier>,
    ) -> Arc<dyn Carrier> {
        let Some(second) = self.carrier() else {
            return over_sessions;
        };
        let make = || -> Arc<dyn Carrier> {
            let falls_back = self.falls_back.clone();
            let told = move |falls: bool| {
                falls_back.send_replace(falls);
                match falls {
                    true => tracing::warn!("{FALLS_BACK}"),
                    false => tracing::info!("connections begin over Multipath QUIC again"),
                }
            };
            let (carrier, following) = Fallback::new(contact(), over_sessions, second, told);
            tokio::spawn(following);
            Arc::new(carrier)
        };
        Arc::clone(self.bonded.get_or_init(make))
    }

    /// Returns whether connections fall back, as it is from now on.
    pub(crate) fn falls_back(&self) -> watch::Receiver<bool> {
        self.falls_back.subscribe()
    }

    /// Returns what the user is to know of it, in a sentence.
    pub(crate) fn note(&self) -> Option<String> {
        self.falls_back.borrow().then(|| FALLS_BACK.to_owned())
    }
}

/// Note for as long as connections fall back.
const FALLS_BACK: &str = "nothing comes from the proxy by Multipath QUIC (is UDP blocked?): connections \
                          of TCP begin over Multipath TCP, and all else but DNS gets no answer";

/// Serves connections at the proxy's addresses, if the configuration says so. Returns what serves, and
/// what the user is to know.
///
/// # Errors
/// The cookie cannot be read; nobody can listen there.
pub(crate) fn serve(config: &Config) -> Result<(Vec<JoinHandle<()>>, Option<String>)> {
    let Some(converter) = &config.converter else {
        return Ok((vec![], None));
    };
    let settings = Settings {
        cookie: converter.cookie().map_err(wrong)?,
        sources: converter.sources.clone(),
        allowed: Arc::new(converter.allow.clone()),
    };
    let mut serving = vec![];
    for at in converter.addresses(&config.proxy) {
        let listening = convert::Converter::listen(at, settings.clone());
        let listening = listening.map_err(|e| match e {
            braid_mptcp::Error::Lacking { .. } => DaemonError::from(e),
            e => DaemonError::Failed(format!(
                "{e} (as proxy and [converter] port say; ss -Mtlnp tells who listens there already)"
            )),
        })?;
        serving.push(tokio::spawn(listening.serve()));
    }
    let note = settings.sources.is_empty().then(|| {
        "whoever sees the cookie of [converter] may connect by this proxy: sources = [...] names the \
         networks of the devices"
            .to_owned()
    });
    Ok((serving, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_file_that_is_none_is_said_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("cookie");
        let said = read(&file).unwrap_err();
        assert!(said.contains("cookie: cannot be read"), "{said}");
        std::fs::write(&file, "short\n").unwrap();
        assert!(read(&file).unwrap_err().contains("16 to 256"));
        std::fs::write(&file, "0123456789abcdef\n").unwrap();
        assert!(read(&file).is_ok());
    }
}
