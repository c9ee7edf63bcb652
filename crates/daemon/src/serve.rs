//! The control API: HTTP/JSON on a Unix socket (types: [`braid_api`]).

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path as UrlPath, Query, Request, State as Shared};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use braid_api::{
    AccessChange, AccessStatus, ApiError, Connections, Counters, Events, Priorities,
    SchedulerChange, Status, Weights,
};
use serde::Deserialize;
use tokio::net::UnixListener;

use super::{DaemonError, metrics};

/// Listens at `path`. What a dead end left there is replaced.
pub(super) fn listen(path: &Path) -> Result<UnixListener, DaemonError> {
    let failed = |e: io::Error| {
        DaemonError::Failed(format!("serve the control socket {}: {e}", path.display()))
    };
    match UnixStream::connect(path) {
        Ok(_) => {
            return Err(DaemonError::Failed(format!(
                "the control socket {} is served by another process: stop it, or choose another",
                path.display()
            )));
        }
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(failed)?;
        }
        // Not there, or not a socket: binding tells.
        Err(_) => {}
    }
    if path == Path::new(braid_api::DEFAULT_SOCKET)
        && let Some(folder) = path.parent()
    {
        // As the units have it made; what keeps it from being there, binding tells.
        let _ = DirBuilder::new().mode(0o700).create(folder);
    }
    UnixListener::bind(path).map_err(|e| match (e.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) => DaemonError::Failed(format!(
            "serve the control socket {}: its folder is not there: mkdir -p {}",
            path.display(),
            folder.display()
        )),
        _ => failed(e),
    })
}

/// Operations of an engine that the API needs.
pub(super) trait Api: Send + Sync + 'static {
    fn status(&self) -> impl Future<Output = Result<Status, DaemonError>> + Send;
    fn connections(&self) -> Result<Connections, DaemonError>;
    fn counters(&self) -> Result<Counters, DaemonError>;
    fn events(&self, after: u64) -> Events;
    fn change(
        &self,
        access: &str,
        change: AccessChange,
    ) -> impl Future<Output = Result<AccessStatus, DaemonError>> + Send;
    fn schedule(
        &self,
        change: &SchedulerChange,
    ) -> impl Future<Output = Result<SchedulerChange, DaemonError>> + Send;
    fn prioritise(
        &self,
        order: &Priorities,
    ) -> impl Future<Output = Result<Priorities, DaemonError>> + Send;
    fn weigh(&self, weights: &Weights)
    -> impl Future<Output = Result<Weights, DaemonError>> + Send;
    /// `None` gives the connection those of all.
    fn weigh_connection(
        &self,
        token: &str,
        weights: Option<&Weights>,
    ) -> impl Future<Output = Result<Weights, DaemonError>> + Send;
}

/// The routes of the API.
pub(super) fn routes<S: Api>(state: Arc<S>) -> Router {
    Router::new()
        .route(
            "/v1/status",
            get(async |Shared(s): Shared<Arc<S>>| answer(s.status().await)),
        )
        .route(
            "/v1/connections",
            get(async |Shared(s): Shared<Arc<S>>| answer(s.connections())),
        )
        .route(
            "/v1/counters",
            get(async |Shared(s): Shared<Arc<S>>| answer(s.counters())),
        )
        .route("/metrics", get(metrics::answer::<S>))
        .route("/v1/events", get(events::<S>))
        .route("/v1/accesses/{name}", put(change::<S>))
        .route("/v1/scheduler", put(schedule::<S>))
        .route("/v1/priorities", put(prioritise::<S>))
        .route("/v1/weights", put(weigh::<S>))
        .route(
            "/v1/connections/{token}/weights",
            put(weigh_one::<S>).delete(reset_one::<S>),
        )
        .fallback(async || refuse(StatusCode::NOT_FOUND, "no such request".into()))
        .layer(from_fn(to_the_end))
        .with_state(state)
}

/// Finishes what was begun, even if the client has gone meanwhile.
async fn to_the_end(request: Request, next: Next) -> Response {
    let done = tokio::spawn(next.run(request)).await;
    done.unwrap_or_else(|e| {
        let why = format!("the request failed ({e}): this is a bug");
        refuse(StatusCode::INTERNAL_SERVER_ERROR, why)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn events<S: Api>(
    Shared(state): Shared<Arc<S>>,
    query: Result<Query<After>, axum::extract::rejection::QueryRejection>,
) -> Response {
    match query {
        Ok(Query(After { after })) => Json(state.events(after)).into_response(),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

/// Body of a request, JSON.
type Body<T> = Result<Json<T>, JsonRejection>;

async fn change<S: Api>(
    Shared(s): Shared<Arc<S>>,
    UrlPath(name): UrlPath<String>,
    body: Body<AccessChange>,
) -> Response {
    match body {
        Ok(Json(change)) => answer(s.change(&name, change).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}
async fn schedule<S: Api>(Shared(s): Shared<Arc<S>>, body: Body<SchedulerChange>) -> Response {
    match body {
        Ok(Json(v)) => answer(s.schedule(&v).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn prioritise<S: Api>(Shared(s): Shared<Arc<S>>, body: Body<Priorities>) -> Response {
    match body {
        Ok(Json(v)) => answer(s.prioritise(&v).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn weigh<S: Api>(Shared(s): Shared<Arc<S>>, body: Body<Weights>) -> Response {
    match body {
        Ok(Json(v)) => answer(s.weigh(&v).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn weigh_one<S: Api>(
    Shared(s): Shared<Arc<S>>,
    UrlPath(token): UrlPath<String>,
    body: Body<Weights>,
) -> Response {
    match body {
        Ok(Json(v)) => answer(s.weigh_connection(&token, Some(&v)).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn reset_one<S: Api>(Shared(s): Shared<Arc<S>>, UrlPath(token): UrlPath<String>) -> Response {
    answer(s.weigh_connection(&token, None).await)
}

fn answer<T: serde::Serialize>(result: Result<T, DaemonError>) -> Response {
    match result {
        Ok(value) => Json(value).into_response(),
        Err(e) => {
            let status = match &e {
                DaemonError::Unknown(_) => StatusCode::NOT_FOUND,
                DaemonError::Refused(_) => StatusCode::CONFLICT,
                DaemonError::Lacking(_) => StatusCode::NOT_IMPLEMENTED,
                DaemonError::Config(_) => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            refuse(status, e.to_string())
        }
    }
}

fn refuse(status: StatusCode, error: String) -> Response {
    (status, Json(ApiError { error })).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::Value;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::UnixStream;
    use tokio::sync::mpsc;

    use super::*;

    /// Takes its time for a change of weights, of which it tells, and refuses all else.
    struct Slow(mpsc::UnboundedSender<&'static str>);

    fn refused<T>() -> Result<T, DaemonError> {
        Err(DaemonError::Refused("not now".into()))
    }

    impl Api for Slow {
        async fn weigh(&self, weights: &Weights) -> Result<Weights, DaemonError> {
            self.0.send("begun").unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.0.send("finished").unwrap();
            Ok(weights.clone())
        }

        async fn status(&self) -> Result<Status, DaemonError> {
            refused()
        }
        fn connections(&self) -> Result<Connections, DaemonError> {
            refused()
        }
        fn counters(&self) -> Result<Counters, DaemonError> {
            refused()
        }
        fn events(&self, _: u64) -> Events {
            Events::default()
        }
        async fn change(&self, _: &str, _: AccessChange) -> Result<AccessStatus, DaemonError> {
            refused()
        }
        async fn schedule(&self, _: &SchedulerChange) -> Result<SchedulerChange, DaemonError> {
            refused()
        }
        async fn prioritise(&self, _: &Priorities) -> Result<Priorities, DaemonError> {
            refused()
        }
        async fn weigh_connection(
            &self,
            _: &str,
            _: Option<&Weights>,
        ) -> Result<Weights, DaemonError> {
            refused()
        }
    }

    #[tokio::test]
    async fn a_change_is_finished_though_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, mut told) = mpsc::unbounded_channel();
        let path = folder.path().join("c.sock");
        let app = routes(Arc::new(Slow(tell)));
        tokio::spawn(axum::serve(listen(&path).unwrap(), app).into_future());
        let mut client = UnixStream::connect(&path).await.unwrap();
        let request = b"PUT /v1/weights HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\
                        content-type: application/json\r\n\r\n{}";
        client.write_all(request).await.unwrap();
        assert_eq!(told.recv().await, Some("begun"));
        drop(client);
        let soon = tokio::time::timeout(Duration::from_secs(10), told.recv());
        assert_eq!(soon.await, Ok(Some("finished")));
    }

    /// Asks, and returns the status of the answer.
    async fn asked(socket: &Path, method: &str, target: &str) -> u16 {
        let mut client = UnixStream::connect(socket).await.unwrap();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-length: 2\r\ncontent-type: application/json\r\n\r\n{{}}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    #[tokio::test]
    async fn the_openapi_document_has_every_request_that_is_served() {
        let document = include_str!("../../../docs/openapi.json");
        let document: Value = serde_json::from_str(document).unwrap();
        let paths = document["paths"].as_object().unwrap();
        // A router does not tell its routes.
        let (source, _) = include_str!("serve.rs").split_once("mod tests").unwrap();
        let served: BTreeSet<&str> = source
            .split('"')
            .filter(|s| s.starts_with("/v1/"))
            .collect();
        assert_eq!(served, paths.keys().map(String::as_str).collect());

        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c.sock");
        let (tell, _told) = mpsc::unbounded_channel();
        let app = routes(Arc::new(Slow(tell)));
        tokio::spawn(axum::serve(listen(&socket).unwrap(), app).into_future());
        for (path, methods) in paths {
            let target = path.replace("{name}", "wifi").replace("{token}", "1");
            for method in ["get", "put", "post", "patch", "delete"] {
                let status = asked(&socket, &method.to_uppercase(), &target).await;
                match methods.get(method) {
                    Some(_) => assert!([200, 409].contains(&status), "{method} {path}: {status}"),
                    None => assert_eq!(status, 405, "{method} {path}"),
                }
            }
        }
    }
}
