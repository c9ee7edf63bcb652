//! Tests of runs whose owner dies, and of runs without root. Each test
//! starts this program again in another role, so it has no test harness.

use std::io::{BufRead, Write};
use std::path::Path;
use std::process::Command;

use braid_netns::RUN_VARIABLE;
use nix::sys::signal::Signal;

mod roles;
mod stage;

use braid_netns::world::topology::{can_build, eventually, users_of};
use roles::{PORTS, play};
use stage::{Place, Role, can_be_nobody, runs};

/// A user without any rights, on every Linux.
const NOBODY: u32 = 65_534;

const TESTS: [(&str, fn()); 9] = [
    (
        "an_emulator_that_inherits_the_ports_joins_the_ends",
        emulated_run,
    ),
    ("without_tun_veth_pairs_are_used", no_tun),
    ("a_second_signal_ends_a_run_at_once", impatient_user),
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

fn emulated_run() {
    if !can_build() {
        return;
    }
    let users = if can_be_nobody() {
        vec![None, Some(NOBODY)]
    } else {
        vec![None]
    };
    for user in users {
        for (ports, _) in PORTS {
            let place = Place::new(user);
            let (status, out, err) = Role::start(place.command("transfer").arg(ports)).end();
            if ports == "tun" && status.code() == Some(3) {
                println!("skipped over TUN: {err}");
                continue;
            }
            assert!(status.success(), "{out}{err}");
            println!(
                "  {ports} as {}: {}",
                user.map_or("ourselves".into(), |u| u.to_string()),
                out.trim()
            );
            assert_eq!(place.entries(), Vec::<String>::new());
        }
    }
}

fn no_tun() {
    if !can_build() || !Path::new("/dev/net").is_dir() {
        return;
    }
    let users = if can_be_nobody() {
        vec![None, Some(NOBODY)]
    } else {
        vec![None]
    };
    for user in users {
        let (status, _, err) = Role::start(&mut Place::new(user).command("no-tun")).end();
        assert_eq!(status.code(), Some(3), "{err}");
        assert!(
            err.contains("open /dev/net/tun: No such file") && err.contains("sudo modprobe tun"),
            "{err}"
        );
    }
}

fn impatient_user() {
    let place = Place::new(None);
    let mut role = Role::start(&mut place.command("stubborn"));
    let held = role.held();
    role.signal(Signal::SIGINT);
    let mut line = String::new();
    role.lines.read_line(&mut line).unwrap();
    assert_eq!(line, "interrupted\n");
    assert!(runs(&held.child));
    role.signal(Signal::SIGTERM);
    assert_eq!(role.end().0.code(), Some(130));
    eventually("the kernel killed the child", || !runs(&held.child));
}

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
    let limited = |what: &str| held.limits.iter().any(|l| l.contains(what));
    assert!(limited("socket buffers"), "{:?}", held.limits);
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
