//! Pins whose network namespace is gone: nobody can go on with them, and what they hold (a
//! registered congestion control) stays until somebody takes them away.
//!
//! Those of a namespace that lives must stay, whoever was killed there: its connections are
//! weighed by them. So it has to be certain that it is gone, and user space cannot tell.
//! Nothing is looked up by a cookie, and lists of namespaces have gaps: one may live by a
//! process of another PID namespace, by a mount of another mount namespace, or by a socket
//! alone. A lock or a note tells of the daemon, not of the namespace. Nor does it help that
//! the kernel counts who uses a congestion control: a namespace that lives may have no
//! connections and another default. The kernel's own list of namespaces is complete, and a
//! program reads it (`bpf/namespaces.bpf.c`). Where that may not be loaded, all pins stay.

use std::fs;
use std::path::{Path, PathBuf};

use libbpf_rs::{Object, ProgramInput};

use super::group::program;
use super::pins::{OWN, SYSTEM, is_bpffs, remove};
use super::{Aligned, prepared, refused};
use crate::error::{Error, Result};
use crate::support::namespace_cookie;

/// Kernels put these into every bpffs (`CONFIG_BPF_PRELOAD`).
const THE_KERNELS: [&str; 2] = ["maps.debug", "progs.debug"];

/// Directory of pins of a killed end, in a network namespace that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan(PathBuf);

impl Orphan {
    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.0
    }

    /// The line that takes it away, as root.
    pub fn remedy(&self) -> String {
        let at = self.0.display();
        match (self.0.starts_with(OWN), is_bpffs(&self.0)) {
            (true, true) => format!("umount {at} && rmdir {at}"),
            (true, false) => format!("rmdir {at}"),
            (false, _) => format!("rm -r {at}"),
        }
    }

    /// Takes it away.
    ///
    /// # Errors
    /// It is still there, with the line that takes it away.
    pub fn remove(&self) -> Result<()> {
        remove(&self.0);
        match self.0.exists() {
            true => Err(Error::left(
                format!("take away {}", self.0.display()),
                format!(
                    "its network namespace is gone, and it stays all the same: as root: {}",
                    self.remedy()
                ),
            )),
            false => Ok(()),
        }
    }
}

/// Returns the orphans that this mount namespace shows, of all roles.
///
/// # Errors
/// There are pins of other network namespaces, and it cannot be told whether these live.
pub fn orphans() -> Result<Vec<Orphan>> {
    let all = pinned(Path::new(SYSTEM), "braid-");
    of(all.into_iter().chain(pinned(Path::new(OWN), "")).collect())
}

/// Returns the orphans among directories, given with the cookies of their network namespaces.
fn of(mut all: Vec<(PathBuf, u64)>) -> Result<Vec<Orphan>> {
    let own = namespace_cookie()?;
    all.retain(|(_, cookie)| *cookie != own);
    if all.is_empty() {
        return Ok(vec![]);
    }
    let unknown = |e: Error| {
        let names: Vec<_> = all.iter().map(|(p, _)| p.display().to_string()).collect();
        Error::left(
            format!(
                "tell whether the network namespace of {} is gone",
                names.join(", ")
            ),
            format!("{e}; what is pinned there stays"),
        )
    };
    let ring = Ring::open().map_err(unknown)?;
    let mut gone = Vec::new();
    for (directory, cookie) in &all {
        if !ring.has(*cookie).map_err(unknown)? {
            gone.push(Orphan(directory.clone()));
        }
    }
    Ok(gone)
}

/// The directories below `path` that are named and filled as those of an end are, with the
/// cookies of their network namespaces.
fn pinned(path: &Path, prefix: &str) -> Vec<(PathBuf, u64)> {
    let entries = |path: &Path| -> Option<Vec<fs::DirEntry>> {
        let all = fs::read_dir(path).ok()?;
        all.collect::<std::io::Result<_>>().ok()
    };
    // Links are not followed.
    let is_directory = |e: &fs::DirEntry| e.file_type().is_ok_and(|t| t.is_dir());
    let is_version = |e: &fs::DirEntry| {
        let name = e.file_name();
        let hex = name.as_encoded_bytes();
        is_directory(e) && hex.len() == 16 && hex.iter().all(u8::is_ascii_hexdigit)
    };
    let fits = |e: &fs::DirEntry| is_version(e) || THE_KERNELS.iter().any(|k| e.file_name() == *k);
    let ours = |e: fs::DirEntry| {
        let cookie = cookie_in(e.file_name().to_str()?.strip_prefix(prefix)?)?;
        let filled = is_directory(&e) && entries(&e.path())?.iter().all(fits);
        filled.then_some((e.path(), cookie))
    };
    let all = entries(path).into_iter().flatten();
    all.filter_map(ours).collect()
}

/// From `ROLE-COOKIE`.
fn cookie_in(name: &str) -> Option<u64> {
    let (role, hex) = name.split_once('-')?;
    let cookie = u64::from_str_radix(hex, 16).ok()?;
    let word = !role.is_empty() && role.bytes().all(|b| b.is_ascii_lowercase());
    (word && hex == format!("{cookie:x}")).then_some(cookie)
}

/// The kernel's network namespaces.
struct Ring(Object);

impl Ring {
    const ATTEMPTED: &str = "look for a network namespace";

    fn open() -> Result<Self> {
        let object = prepared(object!("namespaces"), Self::ATTEMPTED)?;
        let loaded = object.load().map_err(|e| refused(Self::ATTEMPTED, &e))?;
        Ok(Self(loaded))
    }

    /// Whether the one with this cookie lives.
    fn has(&self, cookie: u64) -> Result<bool> {
        let mut arguments = cookie.to_ne_bytes();
        let input = ProgramInput {
            context_in: Some(&mut arguments),
            ..ProgramInput::default()
        };
        let answer = program(&self.0, Self::ATTEMPTED)?
            .test_run(input)
            .map_err(|e| refused(Self::ATTEMPTED, &e))?;
        match answer.return_value {
            1 => Ok(true),
            2 => Ok(false),
            _ => Err(Error::bpf(
                Self::ATTEMPTED,
                "the kernel's list of them has no end",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;

    /// The cookie of a new network namespace, and a socket that it lives by, alone.
    fn namespace() -> Option<(u64, UdpSocket)> {
        let made = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            Some((namespace_cookie().ok()?, UdpSocket::bind("0.0.0.0:0").ok()?))
        });
        made.join().unwrap()
    }

    #[test]
    fn a_namespace_is_gone_when_nothing_refers_to_it() {
        let ring = match Ring::open() {
            Ok(ring) => ring,
            Err(e) => return println!("skipped: {e}"),
        };
        assert!(
            ring.has(namespace_cookie().unwrap()).unwrap(),
            "our own lives"
        );
        assert!(!ring.has(u64::MAX).unwrap(), "one that never was");
        let Some((cookie, socket)) = namespace() else {
            return println!("skipped: no network namespace can be made");
        };
        std::thread::sleep(Duration::from_millis(300));
        assert!(ring.has(cookie).unwrap(), "it lives by a socket");
        let t = tempfile::tempdir().unwrap();
        let path = t.path().join("up-1");
        fs::create_dir_all(path.join("0123456789abcdef")).unwrap();
        assert_eq!(of(vec![(path.clone(), cookie)]).unwrap(), []);
        drop(socket);
        let since = Instant::now();
        while ring.has(cookie).unwrap() {
            assert!(since.elapsed() < Duration::from_secs(10), "it does not go");
            std::thread::sleep(Duration::from_millis(20));
        }
        let all = of(vec![(path.clone(), cookie)]).unwrap();
        assert_eq!(all, [Orphan(path.clone())]);
        assert_eq!(all[0].remedy(), format!("rm -r {}", path.display()));
        all[0].remove().unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn only_what_looks_like_ours_is_looked_at() {
        let t = tempfile::tempdir().unwrap();
        for name in [
            "braid-up-1f/0123456789abcdef",
            "braid-proxy-a",
            "braid-up-0f",
            "braid-up-+f",
            "braid-up-",
            "braid-UP-1",
            "braid-up-1-2",
            "other-up-1",
            "braid-up-2/something",
            "elsewhere",
        ] {
            fs::create_dir_all(t.path().join(name)).unwrap();
        }
        fs::write(t.path().join("braid-up-3"), "").unwrap();
        std::os::unix::fs::symlink(t.path().join("elsewhere"), t.path().join("braid-up-4"))
            .unwrap();
        fs::write(t.path().join("braid-up-1f/maps.debug"), "").unwrap();
        fs::create_dir(t.path().join("braid-up-5")).unwrap();
        fs::write(t.path().join("braid-up-5/0123456789abcdef"), "").unwrap();
        let mut all = pinned(t.path(), "braid-");
        all.sort();
        let wanted = [("braid-proxy-a", 0xa), ("braid-up-1f", 0x1f)];
        assert_eq!(
            all,
            wanted.map(|(name, cookie)| (t.path().join(name), cookie))
        );
        assert_eq!(pinned(&t.path().join("not there"), ""), []);
    }

    proptest! {
        #[test]
        fn a_cookie_is_read_as_it_is_written(role in "[a-z]{1,8}", cookie: u64, garbage in "\\PC*") {
            prop_assert_eq!(cookie_in(&format!("{role}-{cookie:x}")), Some(cookie));
            let _ = cookie_in(&garbage);
        }
    }
}
