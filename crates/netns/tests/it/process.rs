//! Starts real processes, in namespaces and out of them, and ends them.

use std::io::Read;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use braid_netns::{Namespace, RUN_VARIABLE, Spawn, Stream};
use nix::sys::signal::Signal;

use braid_netns::world::topology::{can_build, eventually};

fn sh(script: &str) -> Spawn<'static> {
    Spawn::new("a-run", "shell", "/bin/sh").args(["-c", script])
}

/// Whether a process runs; a zombie does not.
fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[test]
fn a_child_runs_in_its_namespace_and_is_logged() {
    if !can_build() {
        return;
    }
    let namespace = Namespace::create("test").unwrap();
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let mut child = sh(&format!(
        "readlink /proc/self/ns/net; echo $K-${RUN_VARIABLE} >&2; exit 7"
    ))
    .env("K", "v")
    .in_namespace(&namespace)
    .log(Arc::new(move |name, stream, line| {
        log.lock()
            .unwrap()
            .push((name.to_string(), stream, line.to_string()))
    }))
    .spawn()
    .unwrap();
    let exit = child.wait().unwrap();
    assert_eq!(exit.status.code(), Some(7));
    let net = format!("net:[{}]", namespace.inode().unwrap());
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 2);
    assert!(
        lines.contains(&("shell".into(), Stream::Out, net)),
        "{lines:?}"
    );
    assert!(
        lines.contains(&("shell".into(), Stream::Err, "v-a-run".into())),
        "{lines:?}"
    );
    assert_eq!(child.tail().len(), 2);
    // Asking again gives the same answer.
    assert_eq!(child.try_wait().unwrap().unwrap().status.code(), Some(7));
}

#[test]
fn only_chosen_descriptors_are_inherited() {
    let (mut read, write) = std::io::pipe().unwrap();
    // Without close-on-exec, as a careless library would.
    let stray = nix::unistd::dup(&read).unwrap();
    let script = format!(
        "echo chosen >/proc/$$/fd/{}; test -e /proc/$$/fd/{} && echo stray is there",
        write.as_raw_fd(),
        stray.as_raw_fd()
    );
    let mut child = sh(&script).inherit(&write).spawn().unwrap();
    child.wait().unwrap();
    drop(write);
    let mut text = String::new();
    read.read_to_string(&mut text).unwrap();
    assert_eq!(text, "chosen\n");
    assert_eq!(child.tail(), Vec::<String>::new());
}

#[test]
fn the_work_of_a_child_is_accounted() {
    let mut child = sh("i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
        .spawn()
        .unwrap();
    let exit = child.wait().unwrap();
    assert!(exit.status.success());
    assert!(exit.cpu_seconds() > 0.01, "{exit:?}");
    assert!(exit.max_resident_bytes > 100_000, "{exit:?}");
}

#[test]
fn dropping_a_child_kills_its_whole_group() {
    let child = sh("sleep 1000 & echo $!; wait").spawn().unwrap();
    eventually("the child started its own", || child.tail().len() == 1);
    let grandchild = child.tail()[0].clone();
    let leader = child.pid().to_string();
    assert!(runs(&leader) && runs(&grandchild));
    drop(child);
    assert!(!Path::new(&format!("/proc/{leader}")).exists());
    eventually("the grandchild is dead", || !runs(&grandchild));
}

#[test]
fn what_an_ended_child_leaves_is_killed() {
    let mut child = sh("sleep 1000 & echo $!").spawn().unwrap();
    assert!(child.wait().unwrap().status.success());
    let grandchild = child.tail()[0].clone();
    eventually("the grandchild is dead", || !runs(&grandchild));
    assert!(child.pidfd().is_none());
}

#[test]
fn a_child_is_asked_before_it_is_killed() {
    use std::os::unix::process::ExitStatusExt;
    let mut polite = sh("trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done")
        .spawn()
        .unwrap();
    let mut stubborn = sh("trap '' TERM; echo ready; while :; do sleep 0.05; done")
        .spawn()
        .unwrap();
    eventually("both are ready", || {
        polite.tail().len() + stubborn.tail().len() == 2
    });
    assert_eq!(
        polite
            .terminate(Duration::from_secs(10))
            .unwrap()
            .status
            .code(),
        Some(5)
    );
    assert!(
        stubborn
            .wait_timeout(Duration::from_millis(50))
            .unwrap()
            .is_none()
    );
    let killed = stubborn.terminate(Duration::from_millis(100)).unwrap();
    assert_eq!(killed.status.signal(), Some(Signal::SIGKILL as i32));
}

#[test]
fn a_program_that_cannot_start_is_named() {
    let error = Spawn::new("a-run", "the server", "/no/such/program")
        .spawn()
        .unwrap_err();
    let text = format!("{error:#}");
    assert!(
        text.contains("start the server (/no/such/program)") && text.contains("No such file"),
        "{text}"
    );
}

#[test]
fn long_and_broken_lines_do_no_harm() {
    let mut child = sh("head -c 200000 /dev/zero | tr '\\0' x; printf '\\377\\n'; printf 'no end'")
        .spawn()
        .unwrap();
    child.wait().unwrap();
    let tail = child.tail();
    assert_eq!(
        tail.iter()
            .map(|l| l.chars().filter(|c| *c == 'x').count())
            .sum::<usize>(),
        200_000
    );
    assert!(tail.iter().all(|l| l.len() <= 70_000));
    assert_eq!(tail.last().map(String::as_str), Some("no end"));
}
