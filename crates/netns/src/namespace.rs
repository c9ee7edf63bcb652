//! Network namespaces that nobody but their users holds.
//!
//! A namespace has no name in `/run/netns`: it lives as long as a descriptor
//! or a process does, so the kernel removes it, whatever happens to the lab.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;

use anyhow::{Context, Result};
use nix::sched::{CloneFlags, setns, unshare};

use super::rights;

/// A network namespace, held by a descriptor.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    fd: OwnedFd,
}

impl Namespace {
    /// Makes a new network namespace. `name` is for messages only.
    ///
    /// # Errors
    /// [`crate::error::LabError::Missing`] inside where the process may not.
    pub fn create(name: &str) -> Result<Self> {
        let fd = on_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            open_own()
        })?
        .map_err(rights::explain_namespace_error)
        .with_context(|| format!("create the network namespace of {name}"))?;
        Ok(Self {
            name: name.into(),
            fd,
        })
    }

    /// Returns the name of the namespace in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The kernel's number of the namespace, as in `net:[4026531840]`.
    ///
    /// # Errors
    /// Those of `fstat`.
    pub fn inode(&self) -> io::Result<u64> {
        Ok(nix::sys::stat::fstat(&self.fd)?.st_ino)
    }

    /// Runs `f` in the namespace, on a thread of its own that ends with it.
    ///
    /// # Errors
    /// When the thread cannot be started or cannot enter the namespace.
    ///
    /// # Panics
    /// When `f` does.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T> {
        on_thread(|| {
            setns(&self.fd, CloneFlags::CLONE_NEWNET)
                .with_context(|| format!("enter the network namespace of {}", self.name))?;
            Ok(f())
        })?
    }

    /// Runs `f` in the namespace with a route netlink connection of it.
    ///
    /// # Errors
    /// Those of [`Self::run`], of opening the connection, and of `f`.
    pub fn netlink<T, F>(&self, f: F) -> Result<T>
    where
        T: Send,
        F: AsyncFnOnce(rtnetlink::Handle) -> Result<T> + Send,
    {
        self.run(|| on_runtime(f))?
    }
}

/// Runs `f` with a route netlink connection of the namespace that the calling
/// thread is in. (Entering the host's would take rights in it.)
pub(super) fn netlink_here<T, F>(f: F) -> Result<T>
where
    T: Send,
    F: AsyncFnOnce(rtnetlink::Handle) -> Result<T> + Send,
{
    // On a thread of its own, as the caller may be inside of a runtime.
    on_thread(|| on_runtime(f))?
}

fn on_runtime<T>(f: impl AsyncFnOnce(rtnetlink::Handle) -> Result<T>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let (connection, handle, _messages) =
            rtnetlink::new_connection().context("open a route netlink socket")?;
        let connection = tokio::spawn(connection);
        let result = f(handle).await;
        connection.abort();
        result
    })
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsRawFd for Namespace {
    fn as_raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
}

/// `/proc/self` would be the namespace of the process's first thread.
fn open_own() -> io::Result<OwnedFd> {
    Ok(File::open("/proc/thread-self/ns/net")?.into())
}

/// A namespace belongs to a thread: what changes it gets one of its own.
fn on_thread<T: Send>(f: impl FnOnce() -> T + Send) -> Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("netns".into())
            .spawn_scoped(scope, f)
            .context("start a thread")?;
        Ok(thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
