//! The control API: HTTP/JSON on a Unix socket (types: [`braid_api`]).

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path as UrlPath, Query, Request, State as Shared};
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use axum::{Json, Router};
use braid_api::{AccessChange, ApiError, Priorities, SchedulerChange, Weights};
use serde::Deserialize;
use tokio::net::UnixListener;

use super::control_socket::{self, Changers, Peer};
use super::metrics;
use crate::DaemonError;
use crate::config::Config;
use crate::daemon::Daemon;

/// Listens at `path`. What a dead end left there is replaced.
pub(crate) fn listen(path: &Path) -> Result<UnixListener, DaemonError> {
    let failed = |e: io::Error| {
        DaemonError::Failed(format!("serve the control socket {}: {e}", path.display()))
    };
    // Refused, too, is whoever asks a file.
    if std::fs::metadata(path).is_ok_and(|m| !m.file_type().is_socket()) {
        return Err(DaemonError::Config(format!(
            "the control socket {}: something else is there, which is left alone: choose another \
             place (--control)",
            path.display()
        )));
    }
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
        // Not there, or not to be asked: binding tells.
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

/// Lets the group that `config` names read. Works without: root can.
pub(crate) fn open_to(path: &Path, config: &Config) {
    if let Err(e) = control_socket::open_to(path, config.group.as_deref()) {
        tracing::warn!("[control_socket] group: only root can ask this daemon: {e}");
    }
}

/// Serves the API until it fails.
pub(crate) async fn serve(listener: UnixListener, state: Arc<Daemon>) -> io::Result<()> {
    serve_to(listener, state, Changers::own()).await
}

async fn serve_to(
    listener: UnixListener,
    state: Arc<Daemon>,
    changers: Changers,
) -> io::Result<()> {
    let guard = from_fn_with_state(Arc::new(changers), control_socket::guard);
    let app = routes(state).layer(guard);
    axum::serve(listener, app.into_make_service_with_connect_info::<Peer>()).await
}

/// The routes of the API.
fn routes(state: Arc<Daemon>) -> Router {
    Router::new()
        .route("/v1/status", get(status))
        .route(
            "/v1/connections",
            get(async |Shared(s): Shared<Arc<Daemon>>| answer(s.connections())),
        )
        .route(
            "/v1/counters",
            get(async |Shared(s): Shared<Arc<Daemon>>| answer(s.counters())),
        )
        .route("/metrics", get(metrics::answer))
        .route("/v1/events", get(events))
        .route(
            "/v1/control",
            get(async |Shared(s): Shared<Arc<Daemon>>| Json(s.decisions())),
        )
        .route(
            "/v1/rules",
            get(async |Shared(s): Shared<Arc<Daemon>>| answer(s.rules().await)),
        )
        .route("/v1/accesses/{name}", put(change))
        .route("/v1/scheduler", put(schedule))
        .route("/v1/priorities", put(prioritise))
        .route("/v1/weights", put(weigh))
        .route("/v1/weights/down", put(weigh_downlinks))
        .route(
            "/v1/connections/{token}/weights",
            put(weigh_one).delete(reset_one),
        )
        .fallback(async || refuse(StatusCode::NOT_FOUND, "no such request".into()))
        .method_not_allowed_fallback(async |method: Method| {
            let why = format!("no such request: {method} is not for this path (see Allow)");
            refuse(StatusCode::METHOD_NOT_ALLOWED, why)
        })
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
struct With {
    #[serde(default)]
    connections: bool,
}

async fn status(
    Shared(state): Shared<Arc<Daemon>>,
    query: Result<Query<With>, QueryRejection>,
) -> Result<Response, Malformed> {
    let Query(with) = query?;
    Ok(match with.connections {
        true => answer(state.status_with_connections().await),
        false => answer(state.status().await),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct After {
    #[serde(default)]
    after: u64,
}

async fn events(
    Shared(state): Shared<Arc<Daemon>>,
    query: Result<Query<After>, QueryRejection>,
) -> Result<Response, Malformed> {
    let Query(After { after }) = query?;
    Ok(Json(state.events(after)).into_response())
}

/// Body of a request, JSON.
type Body<T> = Result<Json<T>, JsonRejection>;
/// Name or number in the path of a request.
type Named = Result<UrlPath<String>, PathRejection>;

async fn change(
    Shared(s): Shared<Arc<Daemon>>,
    name: Named,
    body: Body<AccessChange>,
) -> Result<Response, Malformed> {
    let (UrlPath(name), Json(change)) = (name?, body?);
    Ok(answer(s.change(&name, change).await))
}

async fn schedule(
    Shared(s): Shared<Arc<Daemon>>,
    body: Body<SchedulerChange>,
) -> Result<Response, Malformed> {
    Ok(answer(s.set_scheduler(&body?.0).await))
}

async fn prioritise(
    Shared(s): Shared<Arc<Daemon>>,
    body: Body<Priorities>,
) -> Result<Response, Malformed> {
    Ok(answer(s.set_priorities(&body?.0).await))
}

async fn weigh(Shared(s): Shared<Arc<Daemon>>, body: Body<Weights>) -> Result<Response, Malformed> {
    Ok(answer(s.set_weights(&body?.0).await))
}

async fn weigh_downlinks(
    Shared(s): Shared<Arc<Daemon>>,
    body: Body<Weights>,
) -> Result<Response, Malformed> {
    Ok(answer(s.set_down_weights(&body?.0).await))
}

async fn weigh_one(
    Shared(s): Shared<Arc<Daemon>>,
    token: Named,
    body: Body<Weights>,
) -> Result<Response, Malformed> {
    let (UrlPath(token), Json(weights)) = (token?, body?);
    Ok(answer(
        s.set_connection_weights(&token, Some(&weights)).await,
    ))
}

async fn reset_one(Shared(s): Shared<Arc<Daemon>>, token: Named) -> Result<Response, Malformed> {
    Ok(answer(s.set_connection_weights(&token?.0, None).await))
}

/// Reason why a request cannot be read.
struct Malformed(String);

impl IntoResponse for Malformed {
    fn into_response(self) -> Response {
        refuse(StatusCode::BAD_REQUEST, self.0)
    }
}

impl From<JsonRejection> for Malformed {
    fn from(e: JsonRejection) -> Self {
        Self(e.body_text())
    }
}

impl From<PathRejection> for Malformed {
    fn from(e: PathRejection) -> Self {
        Self(e.body_text())
    }
}

impl From<QueryRejection> for Malformed {
    fn from(e: QueryRejection) -> Self {
        Self(e.body_text())
    }
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

pub(super) fn refuse(status: StatusCode, error: String) -> Response {
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

    use braid_api::Engine;

    use super::*;
    use crate::engine::testing::Fake;

    /// A daemon whose engine takes its time for changes, of which it tells.
    fn slow(folder: &Path, tell: mpsc::UnboundedSender<&'static str>) -> Arc<Daemon> {
        let mut engine = Fake::new(Engine::Mptcp);
        engine.slow = Some(tell);
        let text = "[access.nr]\ninterface = \"d1\"\n[access.wifi]\ninterface = \"d2\"\n";
        let engines: Vec<Arc<dyn crate::engine::Engine>> = vec![Arc::new(engine)];
        Arc::new(Daemon::of_engines(folder, text, engines))
    }

    #[tokio::test]
    async fn what_is_no_socket_is_left_alone_in_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.sock");
        // A dead end's.
        drop(UnixListener::bind(&path).unwrap());
        drop(listen(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "precious").unwrap();
        let refused = listen(&path).unwrap_err();
        assert!(refused.to_string().contains("something else is there"));
        assert_eq!(refused.exit_code(), 2);
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
        assert!(listen(folder.path()).is_err() && folder.path().is_dir());
    }

    #[tokio::test]
    async fn a_change_is_finished_though_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (tell, mut told) = mpsc::unbounded_channel();
        let path = folder.path().join("c.sock");
        tokio::spawn(serve(listen(&path).unwrap(), slow(folder.path(), tell)));
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
        let answer = answered(socket, method, target).await;
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Asks, and returns the answer, whole.
    async fn answered(socket: &Path, method: &str, target: &str) -> String {
        let mut client = UnixStream::connect(socket).await.unwrap();
        let request = format!(
            "{method} {target} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
             content-length: 2\r\ncontent-type: application/json\r\n\r\n{{}}"
        );
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn whatever_is_refused_says_why_in_json() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c.sock");
        let (tell, _told) = mpsc::unbounded_channel();
        tokio::spawn(serve(listen(&socket).unwrap(), slow(folder.path(), tell)));
        for (method, target, status, said) in [
            ("GET", "/v1/nothing", 404, "no such request"),
            ("GET", "/v1/weights", 405, "GET is not for this path"),
            ("POST", "/v1/connections/1/weights", 405, "POST"),
            ("PUT", "/v1/accesses/%FF", 400, "UTF-8"),
            ("PUT", "/v1/connections/%FF/weights", 400, "UTF-8"),
            ("DELETE", "/v1/connections/%FF/weights", 400, "UTF-8"),
            ("GET", "/v1/status?connections=maybe", 400, "connections"),
        ] {
            let answer = answered(&socket, method, target).await;
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            let what = format!("{method} {target}: {answer}");
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{what}");
            let error: ApiError = serde_json::from_str(body).expect(&what);
            assert!(error.error.contains(said), "{what}");
            let allows = head.to_lowercase().contains("\r\nallow: ");
            assert_eq!(allows, status == 405, "{what}");
        }
    }

    #[tokio::test]
    async fn who_may_only_read_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c.sock");
        let (tell, mut told) = mpsc::unbounded_channel();
        let state = slow(folder.path(), tell);
        let listener = listen(&socket).unwrap();
        tokio::spawn(serve_to(listener, state, Changers::nobody()));
        assert_eq!(asked(&socket, "GET", "/v1/events").await, 200);
        for method in ["PUT", "POST", "DELETE"] {
            assert_eq!(asked(&socket, method, "/v1/weights").await, 403, "{method}");
        }
        assert!(told.try_recv().is_err(), "the change was begun");
    }

    #[tokio::test]
    async fn the_openapi_document_has_every_request_that_is_served() {
        let document = include_str!("../../../../docs/openapi.json");
        let document: Value = serde_json::from_str(document).unwrap();
        let paths = document["paths"].as_object().unwrap();
        // A router does not tell its routes.
        let (source, _) = include_str!("api.rs").split_once("mod tests").unwrap();
        let served: BTreeSet<&str> = source
            .split('"')
            .filter(|s| s.starts_with("/v1/"))
            .collect();
        assert_eq!(served, paths.keys().map(String::as_str).collect());

        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("c.sock");
        let (tell, _told) = mpsc::unbounded_channel();
        tokio::spawn(serve(listen(&socket).unwrap(), slow(folder.path(), tell)));
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
