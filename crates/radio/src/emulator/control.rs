//! The control socket: HTTP and JSON, on a thread of its own.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use anyhow::{Context, Result};
use axum::extract::{Path as UrlPath, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use braid_core::Time;
use nix::sys::eventfd::EventFd;
use serde::Serialize;
use tokio::net::UnixListener;
use tokio::sync::oneshot;

use super::api::{Capacity, CapacityQuery, Carrier, Epoch, EpochSet, Failure, Mark, Stats, When};
use super::commands::Command;
use crate::model::LinkChange;

/// Hands commands to the loop.
#[derive(Clone)]
pub(crate) struct Controls {
    pub(crate) commands: Sender<Command>,
    pub(crate) bell: Arc<EventFd>,
}

/// Serves the control API on the Unix socket at `path` from a new thread, with
/// owner's access only. A file that is in the way is an error.
pub(crate) fn serve(path: &Path, controls: Controls) -> Result<()> {
    let attempt = || format!("cannot serve the control socket {}", path.display());
    let listener = std::os::unix::net::UnixListener::bind(path).with_context(attempt)?;
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .with_context(attempt)?;
    listener.set_nonblocking(true).with_context(attempt)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .with_context(attempt)?;
    let shown = path.display().to_string();
    std::thread::Builder::new()
        .name("control".to_owned())
        .spawn(move || {
            let served = runtime.block_on(async {
                axum::serve(UnixListener::from_std(listener)?, router(controls)).await
            });
            if let Err(e) = served {
                eprintln!("emulator: the control socket {shown} is closed: {e}");
            }
        })
        .with_context(attempt)?;
    Ok(())
}

fn router(controls: Controls) -> Router {
    Router::new()
        .route("/v1/stats", get(stats))
        .route("/v1/links/{name}", put(change))
        .route("/v1/links/{name}/mark", put(mark))
        .route("/v1/paths/{name}/carrier", put(carrier))
        .route("/v1/epoch", put(epoch))
        .route("/v1/capacity", get(capacity))
        .route("/v1/stop", post(stop))
        .with_state(controls)
}

/// An answer that is not a success.
struct Refused(StatusCode, String);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.0, Json(Failure { error: self.1 })).into_response()
    }
}

type Answer<T> = Result<Json<T>, Refused>;

impl Controls {
    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, Refused> {
        let gone = || {
            Refused(
                StatusCode::SERVICE_UNAVAILABLE,
                "the emulator is stopping".to_owned(),
            )
        };
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(reply)).map_err(|_| gone())?;
        self.bell.write(1).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())
    }
}

fn found<T: Serialize>(result: Result<T>) -> Answer<T> {
    result
        .map(Json)
        .map_err(|e| Refused(StatusCode::NOT_FOUND, format!("{e:#}")))
}

async fn stats(State(c): State<Controls>) -> Answer<Stats> {
    let mut s = c.ask(Command::Stats).await?;
    s.process.rss_bytes = resident_bytes().unwrap_or(0);
    Ok(Json(s))
}

async fn change(
    State(c): State<Controls>,
    UrlPath(link): UrlPath<String>,
    Query(when): Query<When>,
    Json(change): Json<LinkChange>,
) -> Answer<()> {
    let at = when.at_ns.map(Time::from_nanos);
    found(
        c.ask(|reply| Command::Change {
            link,
            change,
            at,
            reply,
        })
        .await?,
    )
}

async fn mark(
    State(c): State<Controls>,
    UrlPath(link): UrlPath<String>,
    Json(mark): Json<Mark>,
) -> Answer<()> {
    found(c.ask(|reply| Command::Mark { link, mark, reply }).await?)
}

async fn carrier(
    State(c): State<Controls>,
    UrlPath(path): UrlPath<String>,
    Json(carrier): Json<Carrier>,
) -> Answer<()> {
    found(
        c.ask(|reply| Command::Carrier {
            path,
            carrier,
            reply,
        })
        .await?,
    )
}

async fn epoch(State(c): State<Controls>, Json(e): Json<Epoch>) -> Answer<EpochSet> {
    let epoch = e.epoch_ns;
    let epoch_ns = c.ask(|reply| Command::Epoch { epoch, reply }).await?;
    Ok(Json(EpochSet { epoch_ns }))
}

async fn capacity(
    State(c): State<Controls>,
    Query(query): Query<CapacityQuery>,
) -> Answer<Capacity> {
    found(c.ask(|reply| Command::Capacity { query, reply }).await?)
}

async fn stop(State(c): State<Controls>) -> Answer<()> {
    Ok(Json(c.ask(Command::Stop).await?))
}

/// Resident memory of this process.
fn resident_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok()??;
    Some(pages * u64::try_from(page).ok()?)
}
