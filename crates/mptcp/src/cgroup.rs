//! The unified hierarchy of control groups (cgroups(7), version 2): where this
//! process stands in it, and groups made for one run.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// Groups made by [`Made::new`] are called this and the process id of who made them.
const PREFIX: &str = "braid-run-";

/// The folder of the group that this process is in.
///
/// # Errors
/// [`Error::Lacking`] where the hierarchy is not mounted.
pub fn own() -> Result<PathBuf> {
    visible().map(|[_, own]| own)
}

/// The folder of the group that holds all that are to be seen here.
///
/// # Errors
/// As [`own`].
pub fn top() -> Result<PathBuf> {
    visible().map(|[top, _]| top)
}

fn visible() -> Result<[PathBuf; 2]> {
    let read = |path: &str| {
        fs::read_to_string(path)
            .map_err(|e| Error::io(format!("read {path}: is /proc mounted?"), e))
    };
    let mounts = read("/proc/self/mountinfo")?;
    let groups = read("/proc/self/cgroup")?;
    folders(&mounts, &groups).ok_or_else(|| Error::Lacking {
        what: "no hierarchy of cgroups of version 2 is mounted".into(),
        remedy: "mount one: mkdir /run/cgroup2; mount -t cgroup2 none /run/cgroup2".into(),
    })
}

/// From `/proc/self/mountinfo` and `/proc/self/cgroup`: [`top`], and what of it is [`own`].
fn folders(mounts: &str, groups: &str) -> Option<[PathBuf; 2]> {
    let group = groups.lines().find_map(|l| l.strip_prefix("0::"))?;
    let all = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        if after.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (unescape(fields.next()?), unescape(fields.next()?));
        // Only what is below the root of the mount can be seen in it.
        let below = Path::new(group).strip_prefix(&root).ok()?;
        let own = Path::new(&point).join(below);
        Some((root.len(), [PathBuf::from(point), own]))
    });
    // Of several the one that shows most.
    all.min_by_key(|(root, _)| *root)
        .map(|(_, folders)| folders)
}

/// Space, tab, newline and backslash stand as octal numbers in mountinfo.
fn unescape(field: &str) -> String {
    let codes = [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ];
    codes
        .iter()
        .fold(field.to_owned(), |f, (code, is)| f.replace(code, is))
}

/// Whether `path` is a group of the unified hierarchy.
///
/// # Errors
/// It is not; the error says what such a path looks like.
pub fn check(path: &Path) -> Result<()> {
    let wrong = |e| {
        let what = format!(
            "use the cgroup {}: the folder of a cgroup of version 2 is wanted, such as \
             /sys/fs/cgroup/system.slice/NAME.service",
            path.display()
        );
        Error::io(what, e)
    };
    let kind = nix::sys::statfs::statfs(path).map_err(|e| wrong(e.into()))?;
    if kind.filesystem_type() == nix::sys::statfs::CGROUP2_SUPER_MAGIC {
        return Ok(());
    }
    Err(wrong(std::io::ErrorKind::InvalidInput.into()))
}

/// A group made for one run, below the one that this process is in, so that what
/// limits this process limits the run. Removed when dropped, if nobody is left in
/// it; what a killed run left is removed by the next one.
#[derive(Debug)]
pub struct Made {
    path: PathBuf,
    parent: PathBuf,
}

impl Made {
    /// Makes one.
    ///
    /// # Errors
    /// No hierarchy is mounted, or this process may not make groups in it.
    pub fn new() -> Result<Self> {
        let parent = own()?;
        sweep(&parent);
        let path = parent.join(format!("{PREFIX}{}", std::process::id()));
        match fs::create_dir(&path) {
            // That of a dead process of our number.
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(Error::io(format!("make the cgroup {}", path.display()), e))
            }
            _ => Ok(Self { path, parent }),
        }
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `start` while this process is in the group: what it starts is in it
    /// from its first instruction on.
    ///
    /// # Errors
    /// This process may not be moved; `start` has not been run then.
    pub fn start<T>(&self, start: impl FnOnce() -> T) -> Result<T> {
        enter(&self.path)?;
        let started = start();
        // Where this fails, the group stays until this process has ended.
        let _ = enter(&self.parent);
        Ok(started)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        // Not empty while something that was started in it lives.
        let _ = fs::remove_dir(&self.path);
    }
}

fn enter(group: &Path) -> Result<()> {
    fs::write(group.join("cgroup.procs"), "0")
        .map_err(|e| Error::io(format!("enter the cgroup {}", group.display()), e))
}

fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        if maker.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const UNIFIED: &str = "24 18 0:22 / /sys rw - sysfs sysfs rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n";
    const HYBRID: &str = "40 30 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_own_group_is_found_in_every_kind_of_mount() {
        let folder = |mounts, groups| folders(mounts, groups).map(|[_, p]| p.display().to_string());
        let top = |mounts, groups| folders(mounts, groups).map(|[p, _]| p);
        let own = "0::/user.slice/session-3.scope\n";
        assert_eq!(
            folder(UNIFIED, own).unwrap(),
            "/sys/fs/cgroup/user.slice/session-3.scope"
        );
        let both = "9:name=systemd:/a\n0::/b\n";
        assert_eq!(folder(HYBRID, both).unwrap(), "/sys/fs/cgroup/unified/b");
        assert_eq!(
            top(HYBRID, both).unwrap(),
            Path::new("/sys/fs/cgroup/unified")
        );
        // A container that sees only its own part.
        let part = "30 24 0:26 /docker/4f /cg\\040roup rw - cgroup2 cgroup rw\n";
        assert_eq!(folder(part, "0::/docker/4f/x\n").unwrap(), "/cg roup/x");
        assert_eq!(folder(part, own), None);
        // A part that is to be seen elsewhere too, and first.
        let twice = format!("{}{UNIFIED}", part.replace("/docker/4f", "/user.slice"));
        assert_eq!(top(&twice, own).unwrap(), Path::new("/sys/fs/cgroup"));
        assert_eq!(folder("", own), None);
        assert_eq!(folder(UNIFIED, "3:cpu:/\n"), None);
    }

    #[test]
    fn what_is_no_group_is_refused() {
        for path in ["/nonexistent", "/proc", "/etc/passwd"] {
            let e = check(Path::new(path)).unwrap_err().to_string();
            assert!(e.contains(path) && e.contains("/sys/fs/cgroup"), "{e}");
        }
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(mounts in "\\PC*", groups in "0::\\PC*") {
            let _ = folders(&mounts, &groups);
            let _ = folders(&format!("1 2 3 {mounts} - cgroup2 x"), &groups);
        }
    }
}
