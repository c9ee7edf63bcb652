//! Taking over descriptors that the parent process left open for us.
#![allow(unsafe_code)]

use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use anyhow::{Context, Result};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};

/// Owns the inherited descriptor `fd`, non-blocking and closed on exec.
///
/// The caller passes each number once and uses it nowhere else.
///
/// # Errors
/// `fd` is not open.
pub(crate) fn adopt(fd: RawFd) -> Result<OwnedFd> {
    let owned = {
        // SAFETY: only asks whether the number is open; -1 and a closed one are errors.
        let flags = unsafe { libc::fcntl(fd, libc::F_GETFD) };
        nix::errno::Errno::result(flags)
            .with_context(|| format!("descriptor {fd} was not passed to the emulator"))?;
        // SAFETY: it is open, and by the caller's promise nothing else owns it.
        unsafe { OwnedFd::from_raw_fd(fd) }
    };
    fcntl(&owned, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))
        .with_context(|| format!("cannot set up descriptor {fd}"))?;
    let flags = fcntl(&owned, FcntlArg::F_GETFL)
        .with_context(|| format!("cannot set up descriptor {fd}"))?;
    let flags = OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK;
    fcntl(&owned, FcntlArg::F_SETFL(flags))
        .with_context(|| format!("cannot set up descriptor {fd}"))?;
    Ok(owned)
}
