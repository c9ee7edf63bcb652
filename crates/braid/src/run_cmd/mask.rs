//! Signals that a program starts with as blocked: a mask is inherited, and only
//! the new process itself can change it.
#![allow(unsafe_code)]

use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

/// Makes the program start with the signals of `mask` blocked, and no others.
pub(super) fn at_start(command: &mut Command, mask: SigSet) {
    // SAFETY: between fork and exec only what is safe in a signal handler may be
    // called: `thread_set_mask` is pthread_sigmask(3), which is, and allocates
    // nothing; its error is a number.
    unsafe {
        command.pre_exec(move || mask.thread_set_mask().map_err(Into::into));
    }
}
