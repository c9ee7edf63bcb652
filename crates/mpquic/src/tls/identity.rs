//! Identity of an end: a private key, and the certificate for it.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use braid_api::bounded;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};

use super::{Pin, TlsError};

/// A key pair with its certificate (and those that lead to its authority).
pub struct Identity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    pin: Pin,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("pin", &self.pin)
            .finish_non_exhaustive()
    }
}

fn unusable(attempted: String) -> impl Fn(String) -> TlsError {
    move |what| TlsError::Unusable {
        attempted: attempted.clone(),
        what,
    }
}

impl Identity {
    /// A new key pair (ECDSA on P-256) with a certificate that it has signed itself,
    /// for `name`: the other end pins the key ([`Identity::pin`]).
    ///
    /// # Errors
    /// [`TlsError::Unusable`] where `name` is none that a certificate can have.
    pub fn generate(name: &str) -> Result<Self, TlsError> {
        let (certificate, key) = certify(name)?;
        let der = PrivateKeyDer::try_from(key.serialize_der());
        let der = der.map_err(|e| unusable("make a key".to_owned())(e.to_owned()))?;
        Self::new(vec![certificate.der().clone()], der, "a new certificate")
    }

    /// Makes the two files, if neither is there: the key for its owner's eyes alone.
    ///
    /// # Errors
    /// [`TlsError::Unusable`]: one is there, or cannot be written.
    pub fn create(name: &str, certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let (made, pair) = certify(name)?;
        let files = [
            (key, pair.serialize_pem(), 0o600),
            (certificate, made.pem(), 0o644),
        ];
        for (n, (path, text, mode)) in files.iter().enumerate() {
            if let Err(e) = write_new(path, text, *mode) {
                // One without the other is of no use, and keeps a new pair from being made.
                files[..n]
                    .iter()
                    .for_each(|(p, ..)| drop(fs::remove_file(p)));
                return Err(unusable(format!("write {}", path.display()))(e.to_string()));
            }
        }
        Self::load(certificate, key)
    }

    /// Reads PEM files: the certificates, the end's own first, and its private key
    /// (PKCS#8, PKCS#1 or SEC1).
    ///
    /// # Errors
    /// [`TlsError::Unusable`].
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let chain = certificates(certificate)?;
        let wrong = unusable(format!("read the private key {}", key.display()));
        let text = bounded::read_text(key).map_err(|e| wrong(e.to_string()))?;
        let key =
            PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|e| wrong(e.to_string()))?;
        Self::new(chain, key, &certificate.display().to_string())
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        what: &str,
    ) -> Result<Self, TlsError> {
        let wrong = unusable(format!("read the certificate {what}"));
        let first = chain.first().ok_or_else(|| wrong("there is none".into()))?;
        let pin = Pin::of(first).map_err(|e| wrong(e.to_string()))?;
        Ok(Self { chain, key, pin })
    }

    /// Pin by which the other end trusts this identity.
    pub fn pin(&self) -> Pin {
        self.pin
    }

    /// Key that [`Options::reset_key`](crate::Options::reset_key) may be: known to this end
    /// alone, and the same after each start.
    pub fn reset_key(&self) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"braid stateless reset");
        hash.update(self.key.secret_der());
        hash.finalize().into()
    }

    pub(super) fn chain(&self) -> Vec<CertificateDer<'static>> {
        self.chain.clone()
    }

    pub(super) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

/// Writes a file that is not there yet, whole or not at all.
fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    let written = file
        .write_all(text.as_bytes())
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| drop(fs::remove_file(path)))
}

fn certify(name: &str) -> Result<(rcgen::Certificate, KeyPair), TlsError> {
    let wrong = unusable(format!("make a certificate for \"{name}\""));
    let key = KeyPair::generate().map_err(|e| wrong(e.to_string()))?;
    let params = CertificateParams::new([name.to_owned()]).map_err(|e| wrong(e.to_string()))?;
    let certificate = params.self_signed(&key).map_err(|e| wrong(e.to_string()))?;
    Ok((certificate, key))
}

/// Reads the certificates of a PEM file.
///
/// # Errors
/// [`TlsError::Unusable`]: it cannot be read, or holds none.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = unusable(format!("read the certificates {}", path.display()));
    let text = bounded::read_text(path).map_err(|e| wrong(e.to_string()))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let all = all.map_err(|e| wrong(e.to_string()))?;
    match all.is_empty() {
        true => Err(wrong("there is none in it".to_owned())),
        false => Ok(all),
    }
}
