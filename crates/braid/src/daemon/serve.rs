//! The control API: HTTP/JSON on a Unix socket (types: [`braid_core::api`]).

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use axum::extract::rejection::JsonRejection;
use axum::extract::{Path as UrlPath, Query, State as Shared};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use braid_core::api::{
    AccessChange, AccessStatus, ApiError, Connections, Counters, Events, Priorities,
    SchedulerChange, Status, Weights,
};
use serde::Deserialize;
use tokio::net::UnixListener;

use super::DaemonError;

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
    UnixListener::bind(path).map_err(|e| match (e.kind(), path.parent()) {
        (io::ErrorKind::NotFound, Some(folder)) => DaemonError::Failed(format!(
            "serve the control socket {}: its folder is not there: mkdir -p {}",
            path.display(),
            folder.display()
        )),
        _ => failed(e),
    })
}

/// What the API asks of an engine.
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
        .with_state(state)
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

/// What a request brings.
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
