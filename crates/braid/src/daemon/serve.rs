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
use braid_core::api::{AccessChange, ApiError, Priorities, SchedulerChange, Weights};
use serde::Deserialize;
use tokio::net::UnixListener;

use super::DaemonError;
use super::state::State;

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

/// The routes of the API.
pub(super) fn routes(state: Arc<State>) -> Router {
    Router::new()
        .route(
            "/v1/status",
            get(async |Shared(s): Shared<Arc<State>>| answer(s.status().await)),
        )
        .route(
            "/v1/connections",
            get(async |Shared(s): Shared<Arc<State>>| answer(s.connections())),
        )
        .route(
            "/v1/counters",
            get(async |Shared(s): Shared<Arc<State>>| answer(s.counters())),
        )
        .route("/v1/events", get(events))
        .route("/v1/accesses/{name}", put(change))
        .route("/v1/scheduler", put(schedule))
        .route("/v1/priorities", put(prioritise))
        .route("/v1/weights", put(weigh))
        .route(
            "/v1/connections/{token}/weights",
            put(weigh_one).delete(reset_one),
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

async fn events(
    Shared(state): Shared<Arc<State>>,
    query: Result<Query<After>, axum::extract::rejection::QueryRejection>,
) -> Response {
    match query {
        Ok(Query(After { after })) => Json(state.events(after)).into_response(),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn change(
    Shared(state): Shared<Arc<State>>,
    UrlPath(name): UrlPath<String>,
    body: Result<Json<AccessChange>, JsonRejection>,
) -> Response {
    match body {
        Ok(Json(change)) => answer(state.change(&name, change).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn schedule(
    Shared(state): Shared<Arc<State>>,
    body: Result<Json<SchedulerChange>, JsonRejection>,
) -> Response {
    match body {
        Ok(Json(change)) => answer(state.schedule(&change).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn prioritise(
    Shared(state): Shared<Arc<State>>,
    body: Result<Json<Priorities>, JsonRejection>,
) -> Response {
    match body {
        Ok(Json(order)) => answer(state.prioritise(&order).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn weigh(
    Shared(state): Shared<Arc<State>>,
    body: Result<Json<Weights>, JsonRejection>,
) -> Response {
    match body {
        Ok(Json(weights)) => answer(state.weigh(&weights).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn weigh_one(
    Shared(state): Shared<Arc<State>>,
    UrlPath(token): UrlPath<String>,
    body: Result<Json<Weights>, JsonRejection>,
) -> Response {
    match body {
        Ok(Json(weights)) => answer(state.weigh_connection(&token, Some(&weights)).await),
        Err(e) => refuse(StatusCode::BAD_REQUEST, e.body_text()),
    }
}

async fn reset_one(Shared(state): Shared<Arc<State>>, UrlPath(token): UrlPath<String>) -> Response {
    answer(state.weigh_connection(&token, None).await)
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
