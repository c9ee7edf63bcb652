//! One run of the lab after the other, each a program of its own, until a signal comes.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, anyhow};
use braid_netns::error::LabError;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Starts runs. Signals that come between two of them are not lost.
pub(crate) struct Starter {
    runtime: Runtime,
    interrupt: Signal,
    terminate: Signal,
}

impl Starter {
    pub(crate) fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("start the runtime")?;
        let inside = runtime.enter();
        let interrupt = signal(SignalKind::interrupt()).context("listen for signals")?;
        let terminate = signal(SignalKind::terminate()).context("listen for signals")?;
        drop(inside);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// `braid lab run FILE --out DIR FLAGS`. A case that failed is a result too.
    pub(crate) fn run(
        &mut self,
        braid: &Path,
        file: &Path,
        out: &Path,
        flags: &[String],
    ) -> Result<()> {
        let Self {
            runtime,
            interrupt,
            terminate,
        } = self;
        runtime.block_on(async {
            let child = Command::new(braid)
                .args(["lab", "run"])
                .arg(file)
                .arg("--out")
                .arg(out)
                .args(flags)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .with_context(|| format!("start {}", braid.display()))?;
            let pid = child.id();
            let ended = collect(child);
            tokio::pin!(ended);
            let mut cut = false;
            loop {
                tokio::select! {
                    biased;
                    _ = interrupt.recv() => cut = true,
                    _ = terminate.recv() => cut = true,
                    done = &mut ended => {
                        let (code, said) = done?;
                        return match cut {
                            true => Err(LabError::Interrupted.into()),
                            false => verdict(code, &said),
                        };
                    }
                }
                // It takes back what it set up, and ends.
                if let Some(pid) = pid.and_then(|p| i32::try_from(p).ok()) {
                    let _ = kill(Pid::from_raw(pid), nix::sys::signal::SIGTERM);
                }
            }
        })
    }
}

async fn collect(child: Child) -> Result<(Option<i32>, String)> {
    let out = child.wait_with_output().await.context("wait for the lab")?;
    Ok((
        out.status.code(),
        String::from_utf8_lossy(&out.stderr).into_owned(),
    ))
}

/// Converts the exit status of the lab to a result.
fn verdict(code: Option<i32>, said: &str) -> Result<()> {
    let said = said.trim();
    Err(match code {
        Some(0 | 1) => return Ok(()),
        Some(3) => {
            let (what, fix) = said
                .split_once("\n  to enable it: ")
                .unwrap_or((said, "braid doctor"));
            LabError::missing(what, fix).into()
        }
        Some(130) => LabError::Interrupted.into(),
        Some(2) => LabError::BadInput(said.to_owned()).into(),
        code => anyhow!("the lab ended with status {code:?}: {said}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use braid_netns::error::exit_code;

    #[test]
    fn a_signal_between_runs_ends_the_next() {
        let mut starter = Starter::new().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let mut run = |program: &str| {
            let (file, out) = (dir.path().join("s.toml"), dir.path().join("out"));
            starter.run(Path::new(program), &file, &out, &[])
        };
        run("true").unwrap();
        nix::sys::signal::raise(nix::sys::signal::SIGTERM).unwrap();
        let e = run("true").unwrap_err();
        assert_eq!(exit_code(&e), 130, "{e}");
        run("true").unwrap();
    }

    #[test]
    fn the_labs_exit_status_is_passed_on() {
        assert!(verdict(Some(0), "").is_ok());
        assert!(verdict(Some(1), "a case failed").is_ok());
        let missing = "braid: no MPTCP\n  to enable it: modprobe mptcp";
        for (code, text, status) in [
            (Some(3), missing, 3),
            (Some(2), "bad scenario", 2),
            (Some(130), "interrupted", 130),
            (Some(77), "?", 1),
            (None, "killed", 1),
        ] {
            let e = verdict(code, text).unwrap_err();
            assert_eq!(exit_code(&e), status, "{e}");
        }
        let e = verdict(Some(3), missing).unwrap_err().to_string();
        assert!(e.ends_with("to enable it: modprobe mptcp"), "{e}");
    }
}
