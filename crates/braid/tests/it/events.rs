//! Changes of an access are lines in the log and in `braid events`, with their reason and
//! the wall clock's time.

use std::fs::File;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::daemon::Daemon;
use crate::support::traffic::DEVICE;
use braid_api::{AccessState, Event, EventKind};
use braid_netns::world::{World, eventually};

#[test]
fn a_lost_link_is_told_with_its_reason() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let log = t.path().join("log");
    let mut program = Command::new(env!("CARGO_BIN_EXE_braid"));
    program
        .env_remove("JOURNAL_STREAM")
        .stderr(File::create(&log).unwrap());
    let _device = Daemon::start_by(program, &w.device, t.path(), "up", DEVICE);
    w.set_link(1, false);
    let told = || {
        let mut events = Command::new(env!("CARGO_BIN_EXE_braid"));
        events.args(["events", "--json", "--control"]);
        let out = events.arg(t.path().join("up.sock")).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success() && said.is_empty(), "{said}");
        let text = String::from_utf8(out.stdout).unwrap();
        let all = text
            .lines()
            .map(|l| serde_json::from_str::<Event>(l).unwrap());
        all.into_iter().find_map(|e| match e.what {
            EventKind::AccessState {
                state: AccessState::Down,
                why,
            } => Some((e.access?, why, e.unix_ms)),
            _ => None,
        })
    };
    let (access, why, unix_ms) = eventually("an event of the access", told);
    assert_eq!(access, "nr");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let age = u64::try_from(now.as_millis()).unwrap().abs_diff(unix_ms);
    assert!(age < 60_000, "told {age} ms ago");
    let logged = std::fs::read_to_string(&log).unwrap();
    let line = format!("INFO nr: down: {why}");
    let line = logged.lines().find(|l| l.contains(&line));
    assert!(line.is_some_and(|l| l.starts_with("20")), "{logged}");
}
