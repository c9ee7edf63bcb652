//! The output of children: into the run log, and line by line to who waits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::sync::mpsc;

use super::Context;
use braid_netns::error::LabError;
use braid_netns::{Child, LineSink, Stream};
use braid_traffic::clock::now;

/// How long a child may take to say that it serves.
pub(super) const READY: Duration = Duration::from_secs(10);

/// Lines that a child writes to its standard output.
pub(super) struct Lines {
    tell: mpsc::UnboundedSender<String>,
    told: tokio::sync::Mutex<mpsc::UnboundedReceiver<String>>,
}

impl Lines {
    pub(super) fn new() -> Arc<Self> {
        let (tell, told) = mpsc::unbounded_channel();
        Arc::new(Self {
            tell,
            told: tokio::sync::Mutex::new(told),
        })
    }

    pub(super) async fn next(&self) -> String {
        // The sender lives in `self`, so the channel is never closed.
        self.told.lock().await.recv().await.unwrap_or_default()
    }
}

/// Writes a child's output to the run log, and passes what it prints on
/// standard output to `lines`.
pub(super) fn log_sink(context: &Context<'_>, lines: Option<&Arc<Lines>>) -> LineSink {
    let log = Arc::clone(&context.log);
    let lines = lines.cloned();
    Arc::new(move |name, stream, text| {
        let sample = text.starts_with("{\"event\":\"sample\"");
        if !sample {
            let _ = log.line(&format!("{name}: {text}"));
        }
        if stream == Stream::Out
            && !sample
            && let Some(l) = &lines
        {
            let _ = l.tell.send(text.to_owned());
        }
    })
}

/// Waits for the line `ready`.
pub(super) async fn wait_ready(child: &mut Child, lines: &Lines) -> Result<()> {
    let until = now() + READY;
    loop {
        let line = tokio::time::timeout(Duration::from_millis(20), lines.next()).await;
        if line.is_ok_and(|l| l == "ready") {
            return Ok(());
        }
        if let Some(exit) = child.try_wait()? {
            if exit.status.code() == Some(3) {
                let what = format!("start the {}: {}", child.name(), child.tail().join("\n  "));
                let fix = "see what it says, or leave the case out with --only";
                return Err(LabError::missing(what, fix).into());
            }
            bail!(
                "{} did not start ({}):\n  {}",
                child.name(),
                exit.status,
                child.tail().join("\n  ")
            );
        }
        if now() > until {
            bail!(
                "{} was not ready within {} s:\n  {}",
                child.name(),
                READY.as_secs(),
                child.tail().join("\n  ")
            );
        }
    }
}

/// Why a child that is needed until the end of a case has ended, if it has.
pub(super) fn epitaph(child: &mut Child) -> Option<anyhow::Error> {
    let exit = match child.try_wait() {
        Ok(exit) => exit?,
        Err(e) => return Some(e),
    };
    let tail = child.tail().join(" / ");
    Some(anyhow!(
        "the {} ended during the run ({}); its last words: {tail}",
        child.name(),
        exit.status
    ))
}

/// Writes a child's configuration.
pub(super) fn write_json(path: &Path, value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_vec(value).context("write a child's configuration")?;
    std::fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
