//! The first process of a guest: sets the system up, runs the one case, leaves
//! the answer, and switches the machine off.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use nix::libc::MCL_ONFAULT;
use nix::mount::{MsFlags, mount};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::stat::{Mode, umask};
use nix::unistd::{dup2_stderr, dup2_stdout, getpid, sync};

use super::{ANSWER, Answer, FOLDER, JOB, Job, MARK, Outcome, PROGRESS};
use crate::report::RunLog;
use crate::run::case::{self, Measured};
use crate::run::preflight::preflight;
use crate::run::{Context, Progress, RunOptions, interrupts, kernel_release};
use crate::scenario::Case;
use crate::summary::CaseResult;
use braid_netns::error::LabError;
use braid_netns::{PortChoice, Registry};

const LOG: &str = "/run/run.log";

/// `braid __guest`. Returns only where it is not the first process.
pub fn main() -> Result<()> {
    anyhow::ensure!(
        getpid().as_raw() == 1,
        "this is the first process of a virtual-clock guest, which the lab starts"
    );
    let outcome = match set_up().and_then(|()| read_job()) {
        Ok(job) => supervise(job),
        Err(e) => Outcome::Failed(format!("set up the guest: {e:#}")),
    };
    let answer = Answer {
        kernel: kernel_release(),
        log: fs::read_to_string(LOG).unwrap_or_default(),
        outcome,
    };
    if let Err(e) = leave(&answer) {
        say(3, &format!("cannot write the answer: {e:#}"));
    }
    sync();
    reboot(RebootMode::RB_POWER_OFF)
        .map(|never| match never {})
        .context("switch the guest off")
}

fn set_up() -> Result<()> {
    umask(Mode::empty());
    let none = None::<&str>;
    for (kind, at, options) in [
        ("proc", "/proc", none),
        ("sysfs", "/sys", none),
        ("devtmpfs", "/dev", none),
        ("tmpfs", "/run", Some("mode=755")),
        ("tmpfs", "/tmp", Some("mode=1777")),
        ("hostfs", FOLDER, Some("io")),
    ] {
        match mount(Some(kind), at, Some(kind), MsFlags::empty(), options) {
            // The kernel may have mounted /dev by itself.
            Ok(()) | Err(nix::errno::Errno::EBUSY) => {}
            Err(e) => return Err(e).with_context(|| format!("mount {kind} at {at}")),
        }
    }
    // What the kernel says of us, panics too, goes to the host's console.
    let log = fs::OpenOptions::new().write(true).open("/dev/kmsg")?;
    dup2_stdout(log.as_fd())?;
    dup2_stderr(log.as_fd())?;
    // Too little memory is the end, and is to be said, instead of a lost process
    // or, by a limit that follows from the guest's size, a slow connection.
    let none = "1000000000 1000000000 1000000000";
    fs::write("/proc/sys/net/ipv4/tcp_mem", none).context("set net.ipv4.tcp_mem")?;
    fs::write("/proc/sys/vm/panic_on_oom", "1").context("set vm.panic_on_oom")?;
    // Pages of the program that were needed once stay: read from the host again and again, they
    // would keep a guest without memory busy for ever instead of ending it.
    let once_needed = MlockAllFlags::from_bits_retain(MCL_ONFAULT);
    let all = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | once_needed;
    mlockall(all).context("lock the program's pages")
}

fn read_job() -> Result<Job> {
    let path = Path::new(FOLDER).join(JOB);
    let text = fs::read(&path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_slice(&text).context("understand the job")
}

fn leave(answer: &Answer) -> Result<()> {
    let path = Path::new(FOLDER).join(ANSWER);
    let mut file = fs::File::create(&path)?;
    file.write_all(&serde_json::to_vec(answer)?)?;
    Ok(())
}

/// Runs the case on a thread of its own, which may hang without harm.
fn supervise(job: Job) -> Outcome {
    let limit = Duration::try_from_secs_f64(job.limit_s).unwrap_or(Duration::MAX);
    let (tell, told) = mpsc::channel();
    let started = std::thread::Builder::new()
        .name("case".into())
        .spawn(move || {
            let measured = std::panic::catch_unwind(|| run(&job));
            let outcome = match measured {
                Ok(Ok(m)) => Outcome::Measured(Box::new(m)),
                Ok(Err(e)) => e.into(),
                Err(_) => Outcome::Failed("the lab panicked in the guest; see run.log".into()),
            };
            // The receiver is gone once the limit has passed.
            let _ = tell.send(outcome);
        });
    if let Err(e) = started {
        return Outcome::Failed(format!("start a thread in the guest: {e}"));
    }
    told.recv_timeout(limit).unwrap_or_else(|_| {
        Outcome::Failed(format!(
            "virtual-time limit: the case had not ended after {} simulated seconds; the guest's log is in run.log",
            limit.as_secs()
        ))
    })
}

fn set_parameters(parameters: &BTreeMap<String, i64>) -> Result<(), LabError> {
    for (name, value) in parameters {
        let (module, parameter) = name.split_once('.').unwrap_or((name, ""));
        let file = format!("/sys/module/{module}/parameters/{parameter}");
        fs::write(&file, value.to_string()).map_err(|e| {
            LabError::BadInput(format!(
                "`module_parameters`: the virtual clock's kernel does not take {name} = {value}: {e}"
            ))
        })?;
    }
    Ok(())
}

fn run(job: &Job) -> Result<Measured, LabError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let scenario = &job.scenario;
    let case = scenario
        .cases
        .first()
        .ok_or_else(|| anyhow!("the job holds no case"))?;
    let options = RunOptions {
        repeat: 1,
        out: None,
        braid: std::env::current_exe().context("find the braid program")?,
        command: String::new(),
        ports: PortChoice::Tun,
    };
    let log = RunLog::open(Path::new(LOG)).map_err(anyhow::Error::from)?;
    runtime.block_on(async {
        let interrupt = interrupts()?;
        set_parameters(&scenario.network.module_parameters)?;
        let controls = preflight(scenario).map_err(of_guest)?;
        let run = Registry::open()?.register()?;
        let context = Context {
            scenario,
            options: &options,
            run: &run,
            controls: &controls,
            log: Arc::new(log),
            interrupt,
            simulated: true,
        };
        case::run(&context, case, job.repeat, &mut Told).await
    })
}

/// Replaces the remedy of a missing part: what a machine could install or load, a guest cannot.
fn of_guest(e: LabError) -> LabError {
    match e {
        LabError::Missing(m) => LabError::missing(
            format!("on the virtual clock: {}", m.what),
            "choose one that it has, or bring the kernel up to date: make kernel guest",
        ),
        other => other,
    }
}

/// Writes one line to the kernel log, which is the guest's console.
fn say(level: u8, text: &str) {
    // One call, or it would become several lines.
    let line = format!("<{level}>{MARK}{text}\n");
    if let Ok(mut log) = fs::OpenOptions::new().write(true).open("/dev/kmsg") {
        // Nobody would hear of a failure.
        let _ = log.write_all(line.as_bytes());
    }
}

/// Tells the host how the case gets on.
struct Told;

impl Progress for Told {
    fn start(&mut self, _: &str, _: usize, _: Duration) {}
    fn case(&mut self, _: &Case, _: u32) {}
    fn elapsed(&mut self, t: Duration) {
        say(3, &format!("{PROGRESS}{}", t.as_millis()));
    }
    fn advanced(&mut self, _: Duration) {}
    fn done(&mut self, _: &CaseResult) {}
    fn finish(&mut self) {}
}
