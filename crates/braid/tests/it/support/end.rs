//! An engine end in this process.

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use braid_api::{AccessStatus, ApiError, Event, Events, Role};
use braid_daemon::{DaemonError, run_until};
use serde::de::DeserializeOwned;

use super::request;
use braid_netns::world::{Ns, eventually};

pub(crate) const ACCESSES: [&str; 2] = ["nr", "wifi"];

pub(crate) fn config(directory: &Path, role: Role, engine: &str, more: &str) -> PathBuf {
    let mut text = format!("engine = \"{engine}\"\nproxy = \"10.77.0.1\"\n{more}");
    text += "[manager]\nrecover = false\n";
    for (k, name) in (1..).zip(ACCESSES) {
        text += &format!("[access.{name}]\naddress = \"10.77.{k}.2\"\n");
        if role == Role::Device {
            text += &format!("interface = \"d{k}\"\n");
        }
    }
    let path = directory.join(format!("{role:?}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

/// A running end; dropping it stops it.
pub(crate) struct End {
    pub(crate) control: PathBuf,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<Result<(), DaemonError>>>,
}

impl End {
    pub(crate) fn start(
        ns: &Ns,
        directory: &Path,
        role: Role,
        engine: &str,
    ) -> Result<Self, DaemonError> {
        Self::start_with(ns, directory, role, engine, "")
    }

    pub(crate) fn start_with(
        ns: &Ns,
        directory: &Path,
        role: Role,
        engine: &str,
        more: &str,
    ) -> Result<Self, DaemonError> {
        let config = config(directory, role, engine, more);
        let control = directory.join(format!("{role:?}.sock"));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let (ready, is_ready) = mpsc::channel();
        let at = control.clone();
        let thread = ns.spawn(move || {
            run_until(role, &config, &at, async move {
                let _ = ready.send(());
                let _ = stopped.await;
            })
        });
        // The sender is dropped when the end fails to start.
        if is_ready.recv().is_err() {
            return Err(thread.join().unwrap().unwrap_err());
        }
        Ok(End {
            control,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Status and body of a request.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (head, body) = request::request(&self.control, method, path, body);
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body)
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let (code, body) = self.request("GET", path, "");
        assert_eq!(code, 200, "{path}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    pub(crate) fn put(&self, access: &str, body: &str) -> Result<AccessStatus, (u16, String)> {
        let (code, answer) = self.request("PUT", &format!("/v1/accesses/{access}"), body);
        if code == 200 {
            return Ok(serde_json::from_str(&answer).unwrap());
        }
        Err((
            code,
            serde_json::from_str::<ApiError>(&answer).unwrap().error,
        ))
    }

    /// Waits for an event that `f` takes.
    pub(crate) fn event(&self, what: &str, f: impl Fn(&Event) -> bool) -> Event {
        eventually(what, || {
            self.get::<Events>("/v1/events").events.into_iter().find(&f)
        })
    }

    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap().unwrap();
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}
