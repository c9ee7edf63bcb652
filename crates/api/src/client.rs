//! HTTP/JSON over a Unix socket: how the command line and the lab talk to an
//! engine end, as any other user of its control API would (types:
//! [`crate::control`]).

mod error;

use std::path::{Path, PathBuf};
use std::time::Duration;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::ApiError;

pub use error::{Error, Result};

/// `name` as one segment of a path (RFC 3986 2.1, all but its unreserved characters).
pub fn segment(name: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    name.bytes().fold(String::new(), |mut all, b| {
        if plain(b) {
            all.push(char::from(b));
        } else {
            all += &format!("%{b:02X}");
        }
        all
    })
}

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

    /// The control socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// `GET path`.
    ///
    /// # Errors
    /// Nobody serves the socket, no answer within 5 s, a refusal (its text is
    /// passed on), or an answer of another form.
    pub async fn get<T: DeserializeOwned>(&mut self, path: &str) -> Result<T> {
        let body = self.request(Method::GET, path, Bytes::new()).await?;
        self.read("GET", path, &body)
    }

    /// `PUT path` with `value` as JSON; the answer's body is dropped.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn put<T: Serialize>(&mut self, path: &str, value: &T) -> Result<()> {
        self.send(path, value).await.map(drop)
    }

    /// `PUT path` with `value` as JSON, and the answer.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn put_for<T: Serialize, A: DeserializeOwned>(
        &mut self,
        path: &str,
        value: &T,
    ) -> Result<A> {
        let body = self.send(path, value).await?;
        self.read("PUT", path, &body)
    }

    /// `DELETE path`, and the answer.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub async fn delete_for<A: DeserializeOwned>(&mut self, path: &str) -> Result<A> {
        let body = self.request(Method::DELETE, path, Bytes::new()).await?;
        self.read("DELETE", path, &body)
    }

    async fn send<T: Serialize>(&mut self, path: &str, value: &T) -> Result<Bytes> {
        let body = serde_json::to_vec(value).map_err(|e| Error::Form {
            what: self.what("write PUT", path),
            source: e,
        })?;
        self.request(Method::PUT, path, body.into()).await
    }

    fn read<T: DeserializeOwned>(&self, method: &str, path: &str, body: &[u8]) -> Result<T> {
        serde_json::from_slice(body).map_err(|e| Error::Form {
            what: self.what(&format!("understand the answer to {method}"), path),
            source: e,
        })
    }

    fn what(&self, verb: &str, path: &str) -> String {
        format!("{verb} {path} on {}", self.socket.display())
    }

    async fn request(&mut self, method: Method, path: &str, body: Bytes) -> Result<Bytes> {
        let what = self.what(method.as_str(), path);
        let reply = tokio::time::timeout(PATIENCE, self.exchange(method, path, body, &what)).await;
        let Ok(reply) = reply else {
            return Err(Error::Silent {
                what,
                seconds: PATIENCE.as_secs(),
            });
        };
        let (status, body) = reply?;
        if status.is_success() {
            return Ok(body);
        }
        let text = match serde_json::from_slice::<ApiError>(&body) {
            Ok(refusal) => refusal.error,
            Err(_) => String::from_utf8_lossy(&body).into_owned(),
        };
        Err(Error::Refused {
            what,
            status: status.as_u16(),
            text,
        })
    }

    async fn exchange(
        &mut self,
        method: Method,
        path: &str,
        body: Bytes,
        what: &str,
    ) -> Result<(StatusCode, Bytes)> {
        let broken = |source| Error::Broken {
            what: what.to_owned(),
            source,
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body))
            .map_err(|e| Error::Path {
                what: what.to_owned(),
                reason: e.to_string(),
            })?;
        // Put back only when all went well.
        let mut sender = match self.sender.take() {
            Some(open) if !open.is_closed() => open,
            _ => self.connect(what).await?,
        };
        sender.ready().await.map_err(broken)?;
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = response.into_body().collect().await.map_err(broken)?;
        self.sender = Some(sender);
        Ok((status, body.to_bytes()))
    }

    async fn connect(&self, what: &str) -> Result<SendRequest<Full<Bytes>>> {
        let stream =
            UnixStream::connect(&self.socket)
                .await
                .map_err(|source| Error::Unreachable {
                    socket: self.socket.clone(),
                    source,
                })?;
        let shaken = handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|source| Error::Broken {
            what: what.to_owned(),
            source,
        })?;
        // Ends by itself when either side closes; an error then shows in the next request.
        tokio::spawn(connection);
        Ok(sender)
    }
}

#[cfg(test)]
mod tests;
