//! A daemon as a process of its own, and how to talk to it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use braid_api::{AccessState, Event, EventKind, Events, Status};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::de::DeserializeOwned;

use super::request::request;
use braid_netns::world::{Ns, eventually};

pub(crate) struct Daemon {
    pub(crate) config: PathBuf,
    pub(crate) control: PathBuf,
    child: Child,
}

impl Daemon {
    /// Starts `braid COMMAND` in a namespace and waits until it serves.
    pub(crate) fn start(ns: &Ns, directory: &Path, command: &str, config: &str) -> Self {
        let program = Command::new(env!("CARGO_BIN_EXE_braid"));
        Self::start_by(program, ns, directory, command, config)
    }

    /// Starts `braid COMMAND` in a namespace without the right to load eBPF, as in a container.
    pub(crate) fn start_without_bpf(
        ns: &Ns,
        directory: &Path,
        command: &str,
        config: &str,
    ) -> Self {
        let mut program = Command::new("setpriv");
        program
            .arg("--bounding-set=-bpf,-perfmon,-sys_admin")
            .arg(env!("CARGO_BIN_EXE_braid"));
        Self::start_by(program, ns, directory, command, config)
    }

    /// Starts a daemon by `program`, which gets the rest as arguments.
    pub(crate) fn start_by(
        mut program: Command,
        ns: &Ns,
        directory: &Path,
        command: &str,
        config: &str,
    ) -> Self {
        let file = directory.join(format!("{command}.toml"));
        std::fs::write(&file, config).unwrap();
        let control = directory.join(format!("{command}.sock"));
        let mut child = ns.run(|| {
            program
                .arg(command)
                .arg("--config")
                .arg(&file)
                .arg("--control")
                .arg(&control)
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        });
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "the daemon did not start");
        Self {
            config: file,
            control,
            child,
        }
    }

    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> T {
        let (head, body) = self.request("GET", path, "");
        assert!(head.contains(" 200 "), "{path}: {head} {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// First line and body of a request's answer.
    pub(crate) fn request(&self, method: &str, path: &str, body: &str) -> (String, String) {
        request(&self.control, method, path, body)
    }

    /// State and reason of an access.
    pub(crate) fn state(&self, access: &str) -> (AccessState, String) {
        let s: Status = self.get("/v1/status");
        let a = s.accesses.into_iter().find(|a| a.name == access).unwrap();
        (a.state, a.why)
    }

    /// Waits until the access is in this state; returns the reason.
    pub(crate) fn becomes(&self, access: &str, wanted: AccessState) -> String {
        eventually(&format!("{access} becomes {wanted}"), || {
            let (state, why) = self.state(access);
            (state == wanted).then_some(why)
        })
    }

    /// Waits until the access is used, whether or not anything has come back on it.
    pub(crate) fn uses(&self, access: &str) {
        eventually(&format!("{access} is used"), || {
            let (state, _) = self.state(access);
            matches!(state, AccessState::Active | AccessState::Init).then_some(())
        });
    }

    /// No access has been in this state since it began.
    pub(crate) fn was_never(&self, state: AccessState) {
        let is =
            |e: &Event| matches!(&e.what, EventKind::AccessState { state: s, .. } if *s == state);
        let all: Events = self.get("/v1/events");
        assert!(!all.events.iter().any(is), "{:?}", all.events);
    }

    /// Waits for an event that `f` takes.
    pub(crate) fn event(&self, what: &str, f: impl Fn(&Event) -> bool) -> Event {
        eventually(what, || {
            self.get::<Events>("/v1/events").events.into_iter().find(&f)
        })
    }

    /// Makes it read `config`; returns what it says.
    pub(crate) fn reload(&self, config: &str) -> Option<String> {
        let read = || {
            let all: Events = self.get("/v1/events");
            let read = all.events.into_iter().filter_map(|e| match e.what {
                EventKind::Configured { error } => Some(error),
                _ => None,
            });
            read.collect::<Vec<_>>()
        };
        let before = read().len();
        self.configure(config);
        eventually("the file is read", || read().into_iter().nth(before))
    }

    /// Makes it read `config`, whole: it may be reading already.
    pub(crate) fn configure(&self, config: &str) {
        let new = self.config.with_extension("new");
        std::fs::write(&new, config).unwrap();
        std::fs::rename(&new, &self.config).unwrap();
        self.signal(Signal::SIGHUP);
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Ends it and says its exit status; `None` if the signal killed it.
    pub(crate) fn end(&mut self, signal: Signal) -> Option<i32> {
        self.signal(signal);
        self.child.wait().unwrap().code()
    }
}

/// In order, also when a test fails: what a killed one has pinned waits for the next.
impl Drop for Daemon {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.signal(Signal::SIGTERM);
        }
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
