//! Trust in a public key, without certificates that expire.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, SignatureScheme,
};
use sha2::{Digest, Sha256};

use super::TlsError;

/// SHA-256 of a public key (the SubjectPublicKeyInfo of RFC 5280 4.1). As text:
/// `sha256/` and its base64, as in RFC 7469.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pin([u8; 32]);

const PREFIX: &str = "sha256/";

impl Pin {
    /// Returns the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Computes the pin of a certificate's key.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Result<Self, Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        Ok(Self(
            Sha256::digest(parsed.subject_public_key_info()).into(),
        ))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl FromStr for Pin {
    type Err = TlsError;

    fn from_str(text: &str) -> Result<Self, TlsError> {
        let bytes = text
            .strip_prefix(PREFIX)
            .and_then(|b| STANDARD.decode(b).ok());
        let bytes = bytes.and_then(|b| b.try_into().ok());
        bytes.map(Self).ok_or_else(|| TlsError::Unusable {
            attempted: format!("read the pin \"{text}\""),
            what: format!("a pin is {PREFIX} and 44 characters of base64"),
        })
    }
}

/// Somebody else's key.
#[derive(thiserror::Error)]
#[error("the key {0} is none of the pins that are trusted")]
struct Stranger(Pin);

/// The TLS library shows it so.
impl fmt::Debug for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Trusts whoever has one of the keys.
#[derive(Debug)]
pub(super) struct Pinned {
    pins: Vec<Pin>,
    algorithms: WebPkiSupportedAlgorithms,
}

pub(super) fn verifier(pins: &[Pin], provider: &CryptoProvider) -> Arc<Pinned> {
    Arc::new(Pinned {
        pins: pins.to_vec(),
        algorithms: provider.signature_verification_algorithms,
    })
}

impl Pinned {
    fn check(&self, certificate: &CertificateDer<'_>) -> Result<(), Error> {
        let pin = Pin::of(certificate)?;
        if self.pins.contains(&pin) {
            return Ok(());
        }
        Err(CertificateError::Other(OtherError(Arc::new(Stranger(pin)))).into())
    }

    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
}

/// QUIC has no other version (RFC 9001 4.2).
const ONLY_TLS13: Error = Error::PeerIncompatible(PeerIncompatible::Tls12NotOffered);

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(ONLY_TLS13)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(ONLY_TLS13)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
