//! What happens to runs whose owner dies, and runs without root. Each test
//! starts this program again in another role, so it has no test harness.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use braid_lab::error::exit_code;
use braid_lab::topology::{
    Interrupt, PortChoice, RUN_VARIABLE, Registry, Rights, Spawn, Topology, TopologySpec, acquire,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

#[path = "topology_common/mod.rs"]
mod common;
use common::{can_build, device, eventually, left_by, send, users_of};

/// A user without any rights, on every Linux.
const NOBODY: u32 = 65_534;

const TESTS: [(&str, fn()); 6] = [
    ("a_killed_run_is_swept_and_a_live_one_is_not", killed_run),
    ("an_interrupted_run_leaves_nothing", interrupted_run),
    (
        "without_root_a_topology_is_built_in_a_user_namespace",
        unprivileged_run,
    ),
    (
        "without_root_a_killed_run_is_swept",
        unprivileged_killed_run,
    ),
    (
        "without_user_namespaces_the_remedy_is_named",
        no_user_namespaces,
    ),
    ("a_mark_alone_gets_nobody_killed", unregistered_mark),
];

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if let Some(role) = args.first().and_then(|a| a.strip_prefix("role=")) {
        std::process::exit(play(role, &args[1..]));
    }
    if args.iter().any(|a| a == "--list") {
        TESTS.iter().for_each(|(name, _)| println!("{name}: test"));
        return;
    }
    let filter: Vec<&String> = args.iter().filter(|a| !a.starts_with('-')).collect();
    for (name, test) in TESTS {
        if filter.is_empty() || filter.iter().any(|f| name.contains(*f)) {
            println!("test {name} ...");
            test();
            println!("test {name} ... ok");
        }
    }
}

// --- The roles.

/// Plays a role; returns the exit status.
fn play(role: &str, args: &[String]) -> i32 {
    let result = match role {
        "hold" => hold(Path::new(&args[0])),
        "sweep" => sweep(Path::new(&args[0])),
        "forbid" => forbid(Path::new(&args[0])),
        other => panic!("no role {other}"),
    };
    result.map_or_else(
        |e| {
            eprintln!("{e:#}");
            i32::from(exit_code(&e))
        },
        |()| 0,
    )
}

/// Owns a run with a topology and processes in it, until it gets a signal.
fn hold(registry: &Path) -> anyhow::Result<()> {
    let registry = {
        // Before this, there must be no second thread.
        let rights = acquire(|| Ok(()))?;
        println!(
            "rights {}",
            if rights == Rights::Direct {
                "direct"
            } else {
                "user-namespace"
            }
        );
        Registry::open_in(registry)?
    };
    let interrupt = Interrupt::install()?;
    let run = registry.register()?;
    let ports = if geteuid().is_root() {
        PortChoice::Auto
    } else {
        PortChoice::Packet
    };
    let spec = TopologySpec {
        ports,
        ..TopologySpec::new(run.id(), device(&["nr", "wifi", "lifi"]))
    };
    let topology = Topology::build(&spec)?;
    let cpe = &topology.devices[0];
    for access in &cpe.accesses {
        left_by(&topology);
        send(&cpe.namespace, Some(access.device.addr), topology.service)?;
        assert_eq!(
            left_by(&topology).into_iter().collect::<Vec<_>>(),
            std::slice::from_ref(&access.name)
        );
    }
    println!("run {}", run.id());
    println!("namespace {}", cpe.namespace.inode()?);
    // The child is killed with its parent. Its own child is not, and this one
    // has left the process group too.
    let script = "setsid sleep 1000 & echo $!; wait";
    let child = Spawn::new(run.id(), "child", "/bin/sh")
        .args(["-c", script])
        .in_namespace(&cpe.namespace)
        .spawn()?;
    eventually("the grandchild runs", || child.tail().len() == 1);
    println!("child {}", child.pid());
    println!("grandchild {}", child.tail()[0]);
    println!("ready");
    interrupt.sleep(Duration::from_secs(120))?;
    Ok(())
}

/// Sweeps, and prints what it did.
fn sweep(registry: &Path) -> anyhow::Result<()> {
    let swept = Registry::open_in(registry)?.sweep()?;
    println!(
        "{}",
        serde_json::json!({"runs": swept.runs, "killed": swept.killed, "notes": swept.notes})
    );
    Ok(())
}

/// Enters a user namespace, forbids any further one in it, and tries, without
/// capabilities, to hold a run there.
fn forbid(registry: &Path) -> anyhow::Result<()> {
    acquire(|| Ok(()))?;
    std::fs::write("/proc/sys/user/max_user_namespaces", "0")?;
    let own = std::env::current_exe()?;
    let error = Command::new("setpriv")
        .args(["--inh-caps=-all", "--bounding-set=-all"])
        .arg(own)
        .args(["role=hold".as_ref(), registry.as_os_str()])
        .env_remove("BRAID_LAB_USERNS")
        .exec();
    Err(error.into())
}

// --- What plays them.

/// A role in a process of its own. Dropping it kills that process.
struct Role {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

/// A run that is held: what its owner printed about it.
#[derive(Debug, Default)]
struct Held {
    rights: String,
    run: String,
    namespace: u64,
    child: String,
    grandchild: String,
}

impl Role {
    fn start(command: &mut Command) -> Self {
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
    fn held(&mut self) -> Held {
        let mut held = Held::default();
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            let (key, value) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
            match key {
                "rights" => held.rights = value.into(),
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

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }

    /// Waits for its end; its status, what it still printed, and its errors.
    fn end(&mut self) -> (ExitStatus, String, String) {
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
struct Place {
    dir: tempfile::TempDir,
    user: Option<u32>,
}

impl Place {
    /// For `user`, or for the one that runs the test.
    fn new(user: Option<u32>) -> Self {
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

    fn registry(&self) -> PathBuf {
        self.dir.path().join("registry")
    }

    fn command(&self, role: &str) -> Command {
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

    fn hold(&self) -> Role {
        Role::start(&mut self.command("hold"))
    }

    fn sweep(&self) -> serde_json::Value {
        let (status, out, err) = Role::start(&mut self.command("sweep")).end();
        assert!(status.success(), "{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// The entries of the registry but its lock, by name.
    fn entries(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.registry())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|n| n != "lock").collect();
        names.sort();
        names
    }
}

/// Whether a process runs; a zombie does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Whether this machine lets us play someone without rights.
fn can_be_nobody() -> bool {
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

// --- The tests.

/// Kills an owner, and sees what of its run and of another one is left.
fn check_killed_run(place: &Place) {
    let (mut dead, mut live) = (place.hold(), place.hold());
    let (of_dead, of_live) = (dead.held(), live.held());
    assert!(runs(&of_dead.child) && runs(&of_dead.grandchild));
    // With its owner alive, a run is left alone.
    assert_eq!(
        place.sweep(),
        serde_json::json!({"runs": [], "killed": [], "notes": []})
    );

    dead.signal(Signal::SIGKILL);
    dead.end();
    eventually("the child is dead", || !runs(&of_dead.child));
    assert!(
        runs(&of_dead.grandchild),
        "the test needs something to sweep"
    );
    assert_eq!(place.entries().len(), 4, "a file and a directory per run");

    let killed: i32 = of_dead.grandchild.parse().unwrap();
    let expected = serde_json::json!({"runs": [of_dead.run], "killed": [killed], "notes": []});
    assert_eq!(place.sweep(), expected);
    assert!(!runs(&of_dead.grandchild));
    eventually("its namespace is gone", || {
        users_of(of_dead.namespace).is_empty()
    });
    assert!(runs(&of_live.child) && runs(&of_live.grandchild));
    assert!(!users_of(of_live.namespace).is_empty());
    assert_eq!(
        place.entries(),
        [of_live.run.clone(), format!("{}.json", of_live.run)]
    );

    live.signal(Signal::SIGINT);
    assert_eq!(live.end().0.code(), Some(130));
    eventually("the live run ended too", || {
        !runs(&of_live.child) && !runs(&of_live.grandchild)
    });
    assert_eq!(place.entries(), Vec::<String>::new());
}

fn killed_run() {
    if can_build() {
        check_killed_run(&Place::new(None));
    }
}

fn unprivileged_killed_run() {
    if can_be_nobody() {
        check_killed_run(&Place::new(Some(NOBODY)));
    }
}

fn interrupted_run() {
    if !can_build() {
        return;
    }
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new(None);
        let mut role = place.hold();
        let held = role.held();
        role.signal(signal);
        let (status, _, err) = role.end();
        assert_eq!((status.code(), err.as_str()), (Some(130), "interrupted\n"));
        assert!(!runs(&held.child) && !runs(&held.grandchild), "{signal}");
        eventually("its namespace is gone", || {
            users_of(held.namespace).is_empty()
        });
        assert_eq!(place.entries(), Vec::<String>::new());
    }
}

fn unprivileged_run() {
    if !can_be_nobody() {
        return;
    }
    let place = Place::new(Some(NOBODY));
    let mut role = place.hold();
    let held = role.held();
    assert_eq!(held.rights, "user-namespace");
    role.signal(Signal::SIGTERM);
    assert_eq!(role.end().0.code(), Some(130));
    assert!(!runs(&held.child) && !runs(&held.grandchild));
    assert_eq!(place.entries(), Vec::<String>::new());
}

fn no_user_namespaces() {
    if !can_be_nobody() {
        return;
    }
    if Command::new("setpriv").arg("--version").output().is_err() {
        println!("skipped: there is no setpriv to drop capabilities with");
        return;
    }
    let place = Place::new(Some(NOBODY));
    let (status, _, err) = Role::start(&mut place.command("forbid")).end();
    assert_eq!(status.code(), Some(3), "{err}");
    assert!(
        err.contains("a user namespace is needed, and this system allows none"),
        "{err}"
    );
    assert!(
        err.contains("sudo sysctl -w user.max_user_namespaces=15000"),
        "{err}"
    );
}

fn unregistered_mark() {
    let place = Place::new(None);
    let mut sleep = Command::new("sleep");
    let mut other = sleep.arg("100").env(RUN_VARIABLE, "0-0-0").spawn().unwrap();
    assert_eq!(
        place.sweep(),
        serde_json::json!({"runs": [], "killed": [], "notes": []})
    );
    // A file that is not whole says nothing about its run.
    let mut file = std::fs::File::create(place.registry().join("0-0-0.json")).unwrap();
    file.write_all(b"{\"run\": \"0-0").unwrap();
    let swept = place.sweep();
    assert_eq!(
        (&swept["runs"], &swept["killed"]),
        (&serde_json::json!([]), &serde_json::json!([]))
    );
    assert!(
        swept["notes"][0]
            .as_str()
            .unwrap()
            .starts_with("could not read "),
        "{swept}"
    );
    assert!(other.try_wait().unwrap().is_none());
    other.kill().unwrap();
    other.wait().unwrap();
}
