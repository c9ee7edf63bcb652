//! A client of the control socket.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use super::api::{Capacity, CapacityQuery, Carrier, Epoch, EpochSet, Failure, Mark, Stats};
use crate::model::LinkChange;

/// Talks to an emulator. Each call is a connection of its own.
#[derive(Clone, Debug)]
pub struct Client {
    socket: PathBuf,
}

/// All calls fail if the emulator is gone or refuses; the error says what was
/// attempted.
impl Client {
    /// A client of the emulator at the control socket `socket`.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
        }
    }

    /// The control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Counters of links and media, and how the loop does.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn stats(&self) -> Result<Stats> {
        self.call(Method::GET, "/v1/stats", None::<&()>).await
    }

    /// Changes the link `name`, such as `wifi.down`: at once, or at `at_ns`
    /// nanoseconds after the epoch.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn change(&self, name: &str, change: &LinkChange, at_ns: Option<u64>) -> Result<()> {
        let when = at_ns.map_or(String::new(), |t| format!("?at_ns={t}"));
        self.call(
            Method::PUT,
            &format!("/v1/links/{name}{when}"),
            Some(change),
        )
        .await
    }

    /// Asks for the time at which `bytes` more were handed to the link `name` to be noted.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn mark(&self, name: &str, bytes: u64) -> Result<()> {
        let path = format!("/v1/links/{name}/mark");
        self.call(Method::PUT, &path, Some(&Mark { bytes })).await
    }

    /// Gives or takes the carrier of the path `name`.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn carrier(&self, name: &str, carrier: Carrier) -> Result<()> {
        self.call(
            Method::PUT,
            &format!("/v1/paths/{name}/carrier"),
            Some(&carrier),
        )
        .await
    }

    /// Starts scenario time at `epoch_ns` (`CLOCK_MONOTONIC`), or now; returns
    /// where it starts.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn set_epoch(&self, epoch_ns: Option<u64>) -> Result<u64> {
        let set: EpochSet = self
            .call(Method::PUT, "/v1/epoch", Some(&Epoch { epoch_ns }))
            .await?;
        Ok(set.epoch_ns)
    }

    /// IP-layer bits the link could carry in a span of scenario time; `None`:
    /// no limit.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn capacity(&self, q: &CapacityQuery) -> Result<Option<f64>> {
        let path = format!(
            "/v1/capacity?link={}&from_ns={}&to_ns={}",
            q.link, q.from_ns, q.to_ns
        );
        let c: Capacity = self.call(Method::GET, &path, None::<&()>).await?;
        Ok(c.bits)
    }

    /// Ends the emulator.
    ///
    /// # Errors
    /// See [`Client`].
    pub async fn stop(&self) -> Result<()> {
        self.call(Method::POST, "/v1/stop", None::<&()>).await
    }

    async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T> {
        let attempt = format!("{method} {path} at the emulator {}", self.socket.display());
        self.exchange(method, path, body).await.context(attempt)
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Option<&impl Serialize>,
    ) -> Result<T> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .context("it does not listen")?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let body = match body {
            Some(b) => serde_json::to_vec(b)?,
            None => Vec::new(),
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "emulator")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        // Ends by itself when `sender` is dropped.
        tokio::spawn(connection);
        let response = sender.send_request(request).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        if status.is_success() {
            return serde_json::from_slice(&bytes).context("its answer is not understood");
        }
        match serde_json::from_slice::<Failure>(&bytes) {
            Ok(f) => bail!("{}", f.error),
            Err(_) => bail!("{status}: {}", String::from_utf8_lossy(&bytes)),
        }
    }
}
