//! Starting the program, waiting for it, and passing signals on.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitCode, ExitStatus};

use anyhow::{Context, Result};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;

use super::mask;

/// The kernel sent the signal itself (`SI_KERNEL`), as for Ctrl-C on a terminal:
/// to every process of the group, so that the program has got it already.
const BY_KERNEL: i32 = 0x80;

/// Signals that stop or notify a program, passed on to it.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

/// Starts `command` by `spawn` and waits until it ends; meanwhile signals go to it.
///
/// # Errors
/// `spawn`'s own, or the kernel's refusal to hand over signals. That the program
/// cannot be started is told as an exit status.
pub(super) fn run(
    command: &mut Command,
    spawn: impl FnOnce(&mut Command) -> Result<io::Result<Child>>,
) -> Result<ExitCode> {
    let mut set: SigSet = PASSED_ON.into_iter().collect();
    set.add(Signal::SIGCHLD);
    // Blocked before the child is there, so that none is missed.
    let before = set
        .thread_swap_mask(SigmaskHow::SIG_BLOCK)
        .context("block signals")?;
    mask::at_start(command, before);
    let signals = SignalFd::new(&set).context("receive signals")?;
    let mut child = match spawn(command)? {
        Ok(child) => child,
        Err(e) => return Ok(not_started(command, &e)),
    };
    let pid = i32::try_from(child.id())
        .map(Pid::from_raw)
        .context("read the process id")?;
    loop {
        let Some(info) = signals.read_signal().context("wait for the program")? else {
            continue;
        };
        let number = i32::try_from(info.ssi_signo).unwrap_or_default();
        match Signal::try_from(number) {
            Ok(Signal::SIGCHLD) => {
                if let Some(status) = child.try_wait().context("wait for the program")? {
                    return Ok(ExitCode::from(code(status)));
                }
            }
            // It may have ended meanwhile.
            Ok(signal) if info.ssi_code != BY_KERNEL => drop(kill(pid, signal)),
            _ => {}
        }
    }
}

/// Becomes the program: nothing of Braid is left but what was prepared. Returns
/// only where it cannot be started.
pub(super) fn become_it(command: &mut Command) -> ExitCode {
    let e = command.exec();
    not_started(command, &e)
}

/// As shells do: 127 where there is no such program, 126 where it cannot be run.
fn not_started(command: &Command, e: &io::Error) -> ExitCode {
    let name = command.get_program().display();
    match e.kind() {
        io::ErrorKind::NotFound => {
            // The kernel says the same of a script whose interpreter is missing.
            match which::which(command.get_program()) {
                Ok(path) => braid_api::note!(
                    "braid: run {name}: {} is there, but the interpreter that it names is not",
                    path.display()
                ),
                Err(_) => {
                    braid_api::note!("braid: run {name}: there is no such program; is it in PATH?")
                }
            }
            ExitCode::from(127)
        }
        io::ErrorKind::PermissionDenied => {
            braid_api::note!(
                "braid: run {name}: it may not be executed: chmod +x, or name a program"
            );
            ExitCode::from(126)
        }
        _ => {
            braid_api::note!("braid: run {name}: {e}");
            ExitCode::from(126)
        }
    }
}

/// The status of the program, or 128 + the signal that killed it.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|s| 128 + s));
    code.and_then(|c| u8::try_from(c).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_of_a_shell() {
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(255 << 8)), 255);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
        // With a core dump.
        assert_eq!(code(ExitStatus::from_raw(0x80 | 11)), 139);
    }
}
