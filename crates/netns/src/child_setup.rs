//! System calls around the life of a child process that have no safe form.
#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use nix::unistd::Pid;

/// Steps of a child between `fork` and `exec`. Everything is a plain system
/// call: other threads of the parent may have held locks when it forked.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    /// Network namespace to enter.
    pub(super) namespace: Option<RawFd>,
    /// Descriptors to keep over `exec`, under the numbers they have.
    pub(super) inherit: Vec<RawFd>,
    /// The process that forks: with the end of its forking thread, the child
    /// is killed.
    pub(super) parent: Pid,
    /// Whether the kernel is not to place its memory at random.
    pub(super) fixed_addresses: bool,
}

/// Makes `command` run `setup` in the child.
pub(super) fn prepare(command: &mut Command, setup: Setup) {
    let run = move || {
        if let Some(fd) = setup.namespace {
            // SAFETY: takes no pointers.
            check(unsafe { libc::setns(fd, libc::CLONE_NEWNET) })?;
        }
        // SAFETY: takes no pointers.
        check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
        // A parent that died before the line above sends no signal.
        // SAFETY: takes no pointers.
        if unsafe { libc::getppid() } != setup.parent.as_raw() {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        // Kernels before 5.11 lack the flag; then there is only the good habit
        // of every library here of opening with O_CLOEXEC.
        // SAFETY: takes no pointers.
        unsafe {
            libc::syscall(
                libc::SYS_close_range,
                3,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        if setup.fixed_addresses {
            // SAFETY: takes no pointers; this value only asks.
            let persona = unsafe { libc::personality(0xffff_ffff) };
            let fixed = (persona | libc::ADDR_NO_RANDOMIZE) as libc::c_ulong;
            // SAFETY: takes no pointers.
            check(unsafe { libc::personality(fixed) })?;
        }
        for &fd in &setup.inherit {
            // SAFETY: takes no pointers.
            check(unsafe { libc::fcntl(fd, libc::F_SETFD, 0) })?;
        }
        Ok(())
    };
    // SAFETY: `run` makes only async-signal-safe system calls and does not
    // allocate.
    unsafe { command.pre_exec(run) };
}

/// How a process ended, and what it and the children it waited for used.
#[derive(Clone, Copy, Debug)]
pub struct Exit {
    /// Exit status or signal.
    pub status: ExitStatus,
    /// CPU time in user space.
    pub user: Duration,
    /// CPU time in the kernel.
    pub system: Duration,
    /// Most memory resident at a time, bytes.
    pub max_resident_bytes: u64,
}

impl Exit {
    /// CPU time in user space and in the kernel, s.
    pub fn cpu_seconds(&self) -> f64 {
        (self.user + self.system).as_secs_f64()
    }
}

/// Waits for a child and reaps it.
pub(super) fn reap(pid: Pid) -> io::Result<Exit> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to values of the right type that outlive
        // the call.
        let result = unsafe { libc::wait4(pid.as_raw(), &mut status, 0, usage.as_mut_ptr()) };
        match check(result) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    }
    // SAFETY: made of integers, and zeroed even if wait4 had not filled it in.
    let usage = unsafe { usage.assume_init() };
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.unsigned_abs())
            + Duration::from_micros(t.tv_usec.unsigned_abs())
    };
    Ok(Exit {
        status: ExitStatus::from_raw(status),
        user: time(usage.ru_utime),
        system: time(usage.ru_stime),
        // The kernel counts kibibytes.
        max_resident_bytes: usage.ru_maxrss.unsigned_abs() * 1024,
    })
}

/// A descriptor of a process: readable once it has ended, and never another
/// process's.
pub(super) fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: takes no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    let fd = RawFd::try_from(fd).map_err(io::Error::other)?;
    // SAFETY: the kernel just made it, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sends a signal to the process of a descriptor.
pub(super) fn pidfd_kill(
    pidfd: BorrowedFd<'_>,
    signal: nix::sys::signal::Signal,
) -> io::Result<()> {
    let info = std::ptr::null::<libc::siginfo_t>();
    // SAFETY: a null siginfo is allowed: the kernel fills in its own.
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal as libc::c_int,
            info,
            0,
        )
    };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
