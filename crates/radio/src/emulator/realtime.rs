//! Settings that make the loop punctual, as far as the machine allows it.
#![allow(unsafe_code)]

use std::io;

use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl;

/// Above ordinary real-time tasks' default of 1, below the kernel's own threads' 99.
const PRIORITY: libc::c_int = 50;

/// Settings that the machine granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Granted {
    /// The thread runs before ordinary ones (`SCHED_FIFO`).
    pub(crate) fifo: bool,
    /// Memory is never paged out.
    pub(crate) locked: bool,
}

/// Makes the calling thread as punctual as it may be; what is not allowed is
/// logged and done without.
pub(crate) fn become_punctual() -> Granted {
    // Without the kernel's default slack of 50 us; affects only this thread.
    if let Err(e) = prctl::set_timerslack(1) {
        eprintln!("emulator: timers stay 50 us coarse: {e}");
    }
    let locked = match mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE) {
        Ok(()) => true,
        Err(e) => {
            eprintln!(
                "emulator: memory is not locked ({e}; CAP_IPC_LOCK or a higher memlock limit allows it)"
            );
            false
        }
    };
    let fifo = match fifo() {
        Ok(()) => true,
        Err(e) => {
            eprintln!(
                "emulator: ordinary scheduling, delays are less exact ({e}; CAP_SYS_NICE or an rtprio limit of {PRIORITY} allows better)"
            );
            false
        }
    };
    Granted { fifo, locked }
}

/// Runs the calling thread before ordinary ones, in simulated time: real-time
/// threads are woken at their very time, others up to a thousandth of the wait
/// later.
pub(crate) fn become_first() -> Granted {
    let fifo = fifo().is_ok();
    if !fifo {
        eprintln!("emulator: ordinary scheduling, delays are up to 0.1 % longer");
    }
    Granted {
        fifo,
        locked: false,
    }
}

/// Puts the calling thread before all ordinary ones (`SCHED_FIFO`); its threads
/// and children start as ordinary ones.
///
/// # Errors
/// The machine does not allow it: it takes `CAP_SYS_NICE` or an rtprio limit of 50.
pub fn fifo() -> io::Result<()> {
    let p = libc::sched_param {
        sched_priority: PRIORITY,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the pointer is to a live sched_param; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const p) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
