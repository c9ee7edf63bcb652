//! Making an unchanged program use MPTCP: a small library, put into it with
//! `LD_PRELOAD`, that turns every TCP socket it opens into an MPTCP socket.
//!
//! Not covered: statically linked programs, Go programs (they do not call libc;
//! Go has MPTCP of its own: `GODEBUG=multipathtcp=1`), and programs that run with
//! other rights than their caller (set-user-id). Where MPTCP cannot be had, the
//! program gets the TCP socket that it asked for.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// The library; built from `shim.rs` by the build script.
static SHIM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libbraid_mptcp.so"));

const VARIABLE: &str = "LD_PRELOAD";

/// Sets up `cmd` so that the program and what it starts use MPTCP. What is
/// preloaded already stays.
///
/// # Errors
/// The library cannot be written to the directory for temporary files.
pub fn command(cmd: &mut Command) -> Result<()> {
    let path = install(&std::env::temp_dir())?;
    let set = cmd
        .get_envs()
        .find(|(name, _)| *name == VARIABLE)
        .map(|(_, value)| value.map(OsString::from))
        .unwrap_or_else(|| std::env::var_os(VARIABLE));
    let mut value = set
        .filter(|v| !v.is_empty())
        .map_or_else(OsString::new, |mut v| {
            v.push(":");
            v
        });
    value.push(path);
    cmd.env(VARIABLE, value);
    Ok(())
}

/// Lets the MPTCP sockets of the program of [`command`], and of what it starts,
/// have this congestion control; a socket that may not have it keeps its own.
pub fn congestion_control(cmd: &mut Command, name: &str) {
    cmd.env("BRAID_CONGESTION", name);
}

/// Writes the library below `temporary` unless it is there, and says where. It
/// stays: programs that were started with it may start others later. The
/// directory is this user's, and nobody else may write to it.
fn install(temporary: &Path) -> Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    SHIM.hash(&mut hasher);
    let uid = nix::unistd::geteuid();
    let directory = temporary.join(format!("braid-{uid}"));
    let path = directory.join(format!("libbraid_mptcp-{:016x}.so", hasher.finish()));
    let failed = |e| Error::io(format!("write the MPTCP library {}", path.display()), e);

    match DirBuilder::new().mode(0o755).create(&directory) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(e)),
        _ => {}
    }
    let found = fs::symlink_metadata(&directory).map_err(failed)?;
    if !found.is_dir() || found.uid() != uid.as_raw() || found.mode() & 0o022 != 0 {
        return Err(Error::Lacking {
            what: format!(
                "{} is not a directory that only you can write to",
                directory.display()
            ),
            remedy: format!(
                "remove it, or name another place: export TMPDIR={}/tmp",
                home()
            ),
        });
    }
    if fs::read(&path).is_ok_and(|there| there == SHIM) {
        return Ok(path);
    }
    let mut file = tempfile::NamedTempFile::new_in(&directory).map_err(failed)?;
    std::io::Write::write_all(&mut file, SHIM).map_err(failed)?;
    file.as_file()
        .set_permissions(fs::Permissions::from_mode(0o755))
        .map_err(failed)?;
    // Renamed whole: a program that starts meanwhile sees all of it or none.
    file.persist(&path).map_err(|e| failed(e.error))?;
    Ok(path)
}

fn home() -> String {
    std::env::var("HOME").unwrap_or_else(|_| "~".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_once_and_keeps_what_was_preloaded() {
        let t = tempfile::tempdir().unwrap();
        let first = install(t.path()).unwrap();
        let inode = fs::metadata(&first).unwrap().ino();
        assert_eq!(install(t.path()).unwrap(), first);
        assert_eq!(fs::metadata(&first).unwrap().ino(), inode, "written twice");
        assert_eq!(fs::read(&first).unwrap(), SHIM);
        // A damaged one is replaced.
        fs::write(&first, b"not a library").unwrap();
        install(t.path()).unwrap();
        assert_eq!(fs::read(&first).unwrap(), SHIM);

        let mut cmd = Command::new("true");
        cmd.env(VARIABLE, "/lib/other.so");
        command(&mut cmd).unwrap();
        let value = cmd
            .get_envs()
            .find(|(n, _)| *n == VARIABLE)
            .unwrap()
            .1
            .unwrap();
        let value = value.to_str().unwrap();
        assert!(
            value.starts_with("/lib/other.so:") && value.contains("libbraid_mptcp"),
            "{value}"
        );
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused() {
        let t = tempfile::tempdir().unwrap();
        let path = install(t.path()).unwrap();
        let directory = path.parent().unwrap();
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).unwrap();
        let e = install(t.path()).unwrap_err();
        assert!(e.is_lacking() && e.to_string().contains("TMPDIR"), "{e}");
    }
}
