//! Runs of the lab by tests.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use braid_lab::report::RunFiles;
use braid_lab::summary::TimelineRow;

use super::parts;

/// `braid lab run` of a scenario, a name or a file of `dir`, into `dir/out`.
pub(crate) fn command(dir: &Path, scenario: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
    command
        .args(["lab", "run", scenario, "--out", "out"])
        .current_dir(dir)
        .stdin(Stdio::null());
    command
}

/// A scenario's text as a file of `dir`, to be run.
pub(crate) fn of_text(dir: &Path, text: &str) -> Command {
    std::fs::write(dir.join("s.toml"), text).unwrap();
    command(dir, "s.toml")
}

/// Runs it on the real clock; `None` where the machine cannot, with the reason
/// printed. Else what it printed.
pub(crate) fn real(command: &mut Command) -> Option<String> {
    let out = command.output().unwrap();
    if out.status.code() == Some(3) {
        println!("skipped: {}", String::from_utf8_lossy(&out.stderr));
        return None;
    }
    Some(done(&out))
}

/// Runs it on the virtual clock; `None` without that clock's kernel.
pub(crate) fn on_the_virtual_clock(dir: &Path, command: &mut Command) -> Option<()> {
    let parts = parts()?;
    command.args(["--clock", "virtual"]).envs(parts);
    done(&command.env("XDG_RUNTIME_DIR", dir).output().unwrap());
    Some(())
}

/// Output of a run that came to its end.
fn done(out: &Output) -> String {
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{err}");
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// The timeline of the run in `out`.
pub(crate) fn timeline(out: &Path) -> Vec<TimelineRow> {
    RunFiles::read(out).unwrap().timeline
}
