//! Where an end keeps what is to outlive it: a directory of its own in a bpffs.
//!
//! It belongs to a role in a network namespace, told by the namespace's cookie,
//! which the kernel gives to no other before the next boot. Beneath it stands one
//! directory for each version of the programs. Where nobody has mounted a bpffs at
//! `/sys/fs/bpf`, an end mounts one that is its alone.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statfs::{BPF_FS_MAGIC, statfs};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::support::namespace_cookie;

/// Where distributions mount a bpffs.
pub(super) const SYSTEM: &str = "/sys/fs/bpf";
/// Below this we mount those that we need.
pub(super) const OWN: &str = "/run/braid-bpf";

/// The pins of one end. They go when this is dropped, and stay when the process is
/// killed.
#[derive(Debug)]
pub struct Pins {
    directory: PathBuf,
    /// Held while the end lives: the kernel gives it up with the process.
    _claim: UnixListener,
}

impl Pins {
    /// Returns the pins of an earlier end of this role, a word, in the calling thread's network
    /// namespace; `None` if there are none.
    ///
    /// # Errors
    /// A living process has it; or what the kernel said.
    pub fn left(role: &str) -> Result<Option<Self>> {
        let owner = owner(role)?;
        let there = places(&owner).into_iter().find(|p| p.is_dir());
        there.map(|p| Self::claim(role, p)).transpose()
    }

    /// A place for an end of this role, a word, in the calling thread's network
    /// namespace. What was left there is gone.
    ///
    /// # Errors
    /// A living process has it; there is no bpffs and none can be mounted; or what
    /// the kernel said.
    pub fn make(role: &str) -> Result<Self> {
        drop(Self::left(role)?);
        let [system, own] = places(&owner(role)?);
        if is_bpffs(Path::new(SYSTEM)) {
            let pins = Self::claim(role, system)?;
            make_directory(&pins.directory)?;
            return Ok(pins);
        }
        let pins = Self::claim(role, own)?;
        make_directory(&pins.directory)?;
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(
            Some("bpf"),
            &pins.directory,
            Some("bpf"),
            flags,
            Some("mode=0700"),
        )
        .map_err(|e| failed("mount a bpffs at", &pins.directory, e.into()))?;
        Ok(pins)
    }

    fn claim(role: &str, directory: PathBuf) -> Result<Self> {
        // An abstract name belongs to the network namespace, as the pins do.
        let name = format!("braid-pins-{role}");
        let claim = SocketAddr::from_abstract_name(&name)
            .and_then(|a| UnixListener::bind_addr(&a))
            .map_err(|e| match e.kind() {
                io::ErrorKind::AddrInUse => Error::left(
                    format!("pin to {}", directory.display()),
                    format!(
                        "another braid of this network namespace has it (it holds the Unix \
                         socket @{name}): stop that one"
                    ),
                ),
                _ => failed("take the claim to", &directory, e),
            })?;
        Ok(Self {
            directory,
            _claim: claim,
        })
    }

    /// Where an end of this role keeps them: in the system's bpffs, or in one of our
    /// own.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn places(role: &str) -> Result<[PathBuf; 2]> {
        owner(role).map(|o| places(&o))
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where those of the version that `object` is are to be, or are.
    pub(super) fn of(&self, object: &[u8]) -> PathBuf {
        let hash = Sha256::digest(object);
        let name: String = hash.iter().take(8).map(|b| format!("{b:02x}")).collect();
        self.directory.join(name)
    }

    /// The directories of all versions.
    pub(super) fn versions(&self) -> Vec<PathBuf> {
        versions(&self.directory)
    }
}

fn versions(directory: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(directory).into_iter().flatten();
    let paths = all.filter_map(|e| Some(e.ok()?.path()));
    paths.filter(|p| p.is_dir()).collect()
}

/// Takes everything away that is pinned there, and the directory.
pub(super) fn remove(directory: &Path) {
    for version in versions(directory) {
        let _ = fs::remove_dir_all(version);
    }
    if directory.starts_with(OWN) {
        // Those that mounted twice, too: one was killed before it had pinned.
        while is_bpffs(directory) && umount2(directory, MntFlags::empty()).is_ok() {}
    }
    let _ = fs::remove_dir(directory);
    let _ = fs::remove_dir(OWN);
}

impl Drop for Pins {
    fn drop(&mut self) {
        remove(&self.directory);
    }
}

pub(super) fn make_directory(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| failed("make the directory", path, e))
}

fn failed(what: &str, path: &Path, e: io::Error) -> Error {
    Error::io(format!("{what} {}", path.display()), e)
}

pub(super) fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|s| s.filesystem_type() == BPF_FS_MAGIC)
}

/// In the system's bpffs, and in one of our own.
fn places(owner: &str) -> [PathBuf; 2] {
    [
        Path::new(SYSTEM).join(format!("braid-{owner}")),
        Path::new(OWN).join(owner),
    ]
}

fn owner(role: &str) -> Result<String> {
    Ok(format!("{role}-{:x}", namespace_cookie()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_belongs_to_a_role_of_a_namespace() {
        let (up, proxy) = (owner("up").unwrap(), owner("proxy").unwrap());
        assert_ne!(up, proxy);
        assert_eq!(up, owner("up").unwrap());
        let elsewhere = std::thread::spawn(|| {
            nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).ok()?;
            owner("up").ok()
        });
        match elsewhere.join().unwrap() {
            Some(other) => assert_ne!(up, other),
            None => println!("skipped: no network namespace can be made"),
        }
        assert_eq!(
            places("up-1").map(|p| p.display().to_string()),
            ["/sys/fs/bpf/braid-up-1", "/run/braid-bpf/up-1"]
        );
    }
}
