//! HTTP/JSON over a Unix socket: how the lab talks to the emulator and to
//! engine ends, as any other user of their control API would.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

/// No answer within this means that the process hangs or is gone.
const PATIENCE: Duration = Duration::from_secs(5);

/// A client of one control socket; keeps its connection open.
pub struct Client {
    socket: PathBuf,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Client {
    /// A client of the control socket at `socket`; connects when first used.
    pub fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            sender: None,
        }
    }

    /// `GET path`.
    ///
    /// # Errors
    /// No answer within 5 s, a refusal (its text is passed on), or an answer
    /// of another form.
    pub async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let body = self.request(Method::GET, path, Bytes::new()).await?;
        serde_json::from_slice(&body)
            .with_context(|| self.what("understand the answer to GET", path))
    }

    /// `PUT path` with `value` as JSON; the answer's body is dropped.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn put<T: Serialize>(&mut self, path: &str, value: &T) -> Result<()> {
        let body = serde_json::to_vec(value)?;
        self.request(Method::PUT, path, body.into()).await?;
        Ok(())
    }

    fn what(&self, verb: &str, path: &str) -> String {
        format!("{verb} {path} on {}", self.socket.display())
    }

    async fn request(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes> {
        let what = self.what(method.as_str(), path);
        let reply = tokio::time::timeout(PATIENCE, self.exchange(method, path, body)).await;
        let (status, body) = match reply {
            Ok(r) => r.with_context(|| what.clone())?,
            Err(_) => {
                self.sender = None;
                bail!("{what}: no answer within {} s", PATIENCE.as_secs());
            }
        };
        if !status.is_success() {
            bail!("{what}: {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<(hyper::StatusCode, Bytes)> {
        if self.sender.as_ref().is_none_or(SendRequest::is_closed) {
            let stream = UnixStream::connect(&self.socket)
                .await
                .context("cannot connect")?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            // Ends by itself when either side closes; an error then shows in the next request.
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        let Some(sender) = self.sender.as_mut() else {
            bail!("not connected");
        };
        sender.ready().await?;
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body))?;
        let response = sender.send_request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await?.to_bytes()))
    }
}
