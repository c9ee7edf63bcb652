//! Starts the program in its roles, and looks at what they leave.
#![allow(unreachable_pub)]

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use braid_netns::RUN_VARIABLE;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use crate::NOBODY;

/// A role in a process of its own. Dropping it kills that process.
pub struct Role {
    child: Child,
    pub lines: BufReader<std::process::ChildStdout>,
}

/// A run that is held: what its owner printed about it.
#[derive(Debug, Default)]
pub struct Held {
    pub rights: String,
    pub limits: Vec<String>,
    pub run: String,
    pub namespace: u64,
    pub child: String,
    pub grandchild: String,
}

impl Role {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// Waits for a run to be ready.
    pub fn held(&mut self) -> Held {
        let mut held = Held::default();
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            let (key, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match key {
                "rights" => held.rights = value.into(),
                "limit" => held.limits.push(value.into()),
                "run" => held.run = value.into(),
                "namespace" => held.namespace = value.parse().unwrap(),
                "child" => held.child = value.into(),
                "grandchild" => held.grandchild = value.into(),
                "ready" => return held,
                other => panic!("{other}"),
            }
            line.clear();
        }
        panic!("it never was ready: {:?}", self.end());
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for its end; its status, what it still printed, and its errors.
    pub fn end(&mut self) -> (ExitStatus, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.child.wait().unwrap(), out, err)
    }
}

impl Drop for Role {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A place for a registry, and this program, that any user can get at.
pub struct Place {
    dir: tempfile::TempDir,
    user: Option<u32>,
}

impl Place {
    /// For `user`, or for the one that runs the test.
    pub fn new(user: Option<u32>) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("braid-test-")
            .tempdir_in("/tmp")
            .unwrap();
        let mode = |mode| std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path(), mode(0o755)).unwrap();
        std::fs::copy(std::env::current_exe().unwrap(), dir.path().join("program")).unwrap();
        std::fs::set_permissions(dir.path().join("program"), mode(0o755)).unwrap();
        let registry = dir.path().join("registry");
        std::fs::create_dir(&registry).unwrap();
        std::fs::set_permissions(&registry, mode(0o700)).unwrap();
        if user.is_some() {
            std::os::unix::fs::chown(&registry, user, user).unwrap();
        }
        Self { dir, user }
    }

    pub fn registry(&self) -> PathBuf {
        self.dir.path().join("registry")
    }

    pub fn command(&self, role: &str) -> Command {
        let mut command = Command::new(self.dir.path().join("program"));
        command
            .arg(format!("role={role}"))
            .arg(self.registry())
            .current_dir("/")
            .env_remove(RUN_VARIABLE);
        if let Some(user) = self.user {
            command.uid(user).gid(user);
        }
        command
    }

    pub fn hold(&self) -> Role {
        Role::start(&mut self.command("hold"))
    }

    pub fn sweep(&self) -> serde_json::Value {
        let (status, out, err) = Role::start(&mut self.command("sweep")).end();
        assert!(status.success(), "{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// The entries of the registry but its lock, by name.
    pub fn entries(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.registry())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|n| n != "lock").collect();
        names.sort();
        names
    }
}

/// Whether a process runs; a zombie does not.
pub fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Whether this machine lets us play someone without rights.
pub fn can_be_nobody() -> bool {
    if !geteuid().is_root() {
        println!("skipped: only root can become someone else");
        return false;
    }
    let place = Place::new(Some(NOBODY));
    let mut role = place.hold();
    let mut first = String::new();
    role.lines.read_line(&mut first).unwrap();
    if first.is_empty() {
        let (status, _, err) = role.end();
        println!("skipped: {err}");
        assert_eq!(status.code(), Some(3), "{err}");
        return false;
    }
    role.signal(Signal::SIGTERM);
    role.end();
    true
}
