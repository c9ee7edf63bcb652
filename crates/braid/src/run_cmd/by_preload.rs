//! MPTCP by a library that is loaded into the program, and by what Go programs
//! listen to.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use anyhow::Result;
use braid_mptcp::preload;

use super::machine;
use super::program::{self, Program};

/// Variable that Go's library reads (since Go 1.21), a list of settings.
const GO: &str = "GODEBUG";

/// Sets the program up, and warns of what this does not reach.
pub(super) fn prepare(command: &mut Command, cc: Option<&str>) -> Result<()> {
    // One that is not there is told when it is started.
    let found = which::which(command.get_program()).ok();
    let program = found.map_or(Program::Ordinary, |path| program::look(&path));
    if let Some(warning) = program.warning(cc.is_some()) {
        let name = command.get_program().display();
        braid_api::note!("braid: warning: {name} {warning}");
    }
    if program != Program::OtherLibc {
        preload::command(command).map_err(machine)?;
    }
    if let Some(cc) = cc {
        preload::congestion_control(command, cc);
    }
    // Not only for Go programs: those may be started by others.
    command.env(GO, go_settings(std::env::var_os(GO)));
    Ok(())
}

/// `before` with MPTCP switched on, unless it says something of that already.
fn go_settings(before: Option<OsString>) -> OsString {
    const SETTING: &str = "multipathtcp=";
    let mut settings = before.unwrap_or_default();
    let all = settings.to_string_lossy();
    if all.split(',').any(|s| s.trim().starts_with(SETTING)) {
        return settings;
    }
    if !settings.is_empty() {
        settings.push(",");
    }
    settings.push(OsStr::new("multipathtcp=1"));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_go_keep_what_was_there() {
        for (before, after) in [
            (None, "multipathtcp=1"),
            (Some(""), "multipathtcp=1"),
            (Some("gctrace=1"), "gctrace=1,multipathtcp=1"),
            (Some("multipathtcp=0"), "multipathtcp=0"),
            (Some("a=1,multipathtcp=2"), "a=1,multipathtcp=2"),
        ] {
            assert_eq!(go_settings(before.map(OsString::from)), after, "{before:?}");
        }
    }
}
