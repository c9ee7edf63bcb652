//! TLS 1.3 (RFC 9001): who this end is, and whom it trusts. A session in which the
//! proxy proves nothing cannot be made.

mod identity;
mod pin;

use std::sync::Arc;

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, ServerConfig};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::CertificateDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, version::TLS13};

use crate::Lane;

pub use identity::{Identity, certificates};
pub use pin::Pin;

/// ALPN name (RFC 7301) of what both ends speak above QUIC, one for each lane: else a session
/// with another lane could be made, and would carry nothing.
pub const fn alpn(lane: Lane) -> &'static [u8] {
    match lane {
        Lane::Datagram => b"braid/5",
        Lane::Stream => b"braid-stream/2",
    }
}

/// Why there are no keys to begin with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file or a text cannot be used.
    #[error("{attempted}: {what}")]
    Unusable {
        /// Action that was attempted, on what.
        attempted: String,
        /// Error, and what is expected.
        what: String,
    },
    /// Nobody would be trusted, or nothing proves who the other end is.
    #[error("{0}")]
    Nobody(&'static str),
    /// The TLS library refuses.
    #[error("{attempted}: {source}")]
    Library {
        /// Action that was attempted.
        attempted: &'static str,
        /// Why not.
        source: rustls::Error,
    },
}

/// Peers that this end trusts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Peers who have one of these public keys, whatever their certificates say.
    Pins(Vec<Pin>),
    /// Peers with a certificate that one of these authorities has signed, that is valid
    /// now and, of a proxy, for its name (RFC 5280, RFC 9525).
    Authorities(Vec<CertificateDer<'static>>),
}

/// Devices that a proxy serves.
#[derive(Clone, Debug)]
pub enum Devices {
    /// Devices that prove who they are.
    Trusted(Trust),
    /// Any that reaches it: it is open to everybody.
    Anyone,
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn roots(all: &[CertificateDer<'static>]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut store = RootCertStore::empty();
    for der in all {
        store.add(der.clone()).map_err(|source| TlsError::Library {
            attempted: "take the certificate of an authority",
            source,
        })?;
    }
    Ok(Arc::new(store))
}

fn library(attempted: &'static str) -> impl Fn(rustls::Error) -> TlsError {
    move |source| TlsError::Library { attempted, source }
}

/// The device's side. `identity` is shown to a proxy that asks for it.
///
/// # Errors
/// [`TlsError::Nobody`] without a pin or an authority; [`TlsError::Library`].
pub fn client(
    trust: &Trust,
    identity: Option<&Identity>,
    alpn: &[u8],
) -> Result<ClientConfig, TlsError> {
    const NOBODY: TlsError = TlsError::Nobody(
        "a device must know the proxy: give its public key (pin) or the certificate of its \
         authority",
    );
    let attempted = "set up TLS at the device";
    let builder = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(library(attempted))?;
    let builder = match trust {
        Trust::Pins(pins) if pins.is_empty() => return Err(NOBODY),
        Trust::Authorities(all) if all.is_empty() => return Err(NOBODY),
        Trust::Pins(pins) => builder
            .dangerous()
            .with_custom_certificate_verifier(pin::verifier(pins, &provider())),
        Trust::Authorities(all) => {
            let verifier = WebPkiServerVerifier::builder_with_provider(roots(all)?, provider());
            let verifier = verifier.build().map_err(|e| TlsError::Unusable {
                attempted: "trust the authorities".to_owned(),
                what: e.to_string(),
            })?;
            builder.with_webpki_verifier(verifier)
        }
    };
    let mut config = match identity {
        Some(own) => builder
            .with_client_auth_cert(own.chain(), own.key())
            .map_err(library(attempted))?,
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols = vec![alpn.to_vec()];
    // Does nothing unless SSLKEYLOGFILE names a file.
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    let quic = QuicClientConfig::try_from(config).map_err(|e| TlsError::Unusable {
        attempted: attempted.to_owned(),
        what: e.to_string(),
    })?;
    Ok(ClientConfig::new(Arc::new(quic)))
}

/// The proxy's side.
///
/// # Errors
/// [`TlsError::Nobody`] where devices are to be trusted and none is;
/// [`TlsError::Library`].
pub fn server(
    identity: &Identity,
    devices: &Devices,
    alpn: &[u8],
) -> Result<ServerConfig, TlsError> {
    const NOBODY: TlsError = TlsError::Nobody(
        "a proxy must know its devices: give their public keys (pins) or the certificate of \
         their authority, or say that it is open to anyone",
    );
    let attempted = "set up TLS at the proxy";
    let builder = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(library(attempted))?;
    let builder = match devices {
        Devices::Trusted(Trust::Pins(pins)) if pins.is_empty() => return Err(NOBODY),
        Devices::Trusted(Trust::Authorities(all)) if all.is_empty() => return Err(NOBODY),
        Devices::Trusted(Trust::Pins(pins)) => {
            builder.with_client_cert_verifier(pin::verifier(pins, &provider()))
        }
        Devices::Trusted(Trust::Authorities(all)) => {
            let verifier = WebPkiClientVerifier::builder_with_provider(roots(all)?, provider());
            let verifier = verifier.build().map_err(|e| TlsError::Unusable {
                attempted: "trust the authorities".to_owned(),
                what: e.to_string(),
            })?;
            builder.with_client_cert_verifier(verifier)
        }
        Devices::Anyone => builder.with_no_client_auth(),
    };
    let mut config = builder
        .with_single_cert(identity.chain(), identity.key())
        .map_err(library(attempted))?;
    config.alpn_protocols = vec![alpn.to_vec()];
    config.key_log = Arc::new(rustls::KeyLogFile::new());
    let quic = QuicServerConfig::try_from(config).map_err(|e| TlsError::Unusable {
        attempted: attempted.to_owned(),
        what: e.to_string(),
    })?;
    Ok(ServerConfig::with_crypto(Arc::new(quic)))
}
