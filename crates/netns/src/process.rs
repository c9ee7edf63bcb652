//! The processes of a run: started in a namespace, logged, and never left
//! behind.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpid};

pub use super::child_setup::Exit;
use super::child_setup::{self, Setup};
use super::namespace::Namespace;

/// The environment variable that marks every process of a run.
pub const RUN_VARIABLE: &str = "BRAID_LAB_RUN";

/// Last lines of a child's output that are kept for messages.
const TAIL_LINES: usize = 20;
/// A line longer than this is cut, bytes.
const LONGEST_LINE: u64 = 64 * 1024;

/// Output of a child that a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Takes each line that a child writes: its name, the stream, the line. Called
/// from a thread of its own per stream.
pub type LineSink = Arc<dyn Fn(&str, Stream, &str) + Send + Sync>;

/// A process to start.
///
/// It gets an own process group, is killed when this process dies, carries
/// [`RUN_VARIABLE`], reads from `/dev/null`, and inherits only the descriptors
/// it is given.
pub struct Spawn<'a> {
    name: String,
    command: Command,
    namespace: Option<&'a Namespace>,
    inherit: Vec<BorrowedFd<'a>>,
    fixed_addresses: bool,
    sink: Option<LineSink>,
}

impl fmt::Debug for Spawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn")
            .field("name", &self.name)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl<'a> Spawn<'a> {
    /// Prepares to start `program`, called `name` in messages and in the log,
    /// for the run `run_id`.
    pub fn new(run_id: &str, name: impl Into<String>, program: impl Into<PathBuf>) -> Self {
        let mut command = Command::new(program.into());
        command
            .env(RUN_VARIABLE, run_id)
            .stdin(Stdio::null())
            .process_group(0);
        Self {
            name: name.into(),
            command,
            namespace: None,
            inherit: Vec::new(),
            fixed_addresses: false,
            sink: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<I: IntoIterator<Item: Into<OsString>>>(mut self, args: I) -> Self {
        self.command.args(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.command.env(key, value);
        self
    }

    /// Gives it no environment but the mark of the run.
    pub fn no_env(mut self) -> Self {
        let mark = self.command.get_envs().find(|(k, _)| *k == RUN_VARIABLE);
        let mark = mark.and_then(|(_, v)| v).map(OsStr::to_owned);
        self.command.env_clear();
        if let Some(mark) = mark {
            self.command.env(RUN_VARIABLE, mark);
        }
        self
    }

    /// Starts it in this directory.
    pub fn current_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Keeps the kernel from placing its memory at random.
    pub fn fixed_addresses(mut self) -> Self {
        self.fixed_addresses = true;
        self
    }

    /// Runs it in a namespace.
    pub fn in_namespace(mut self, namespace: &'a Namespace) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// Lets it inherit a descriptor, under the number that it has here:
    /// `fd.as_raw_fd()` is what to tell the child.
    pub fn inherit(mut self, fd: &'a impl AsFd) -> Self {
        self.inherit.push(fd.as_fd());
        self
    }

    /// Sends each line of its output to `sink`.
    pub fn log(mut self, sink: LineSink) -> Self {
        self.sink = Some(sink);
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the program cannot be run or the namespace not be entered.
    pub fn spawn(self) -> Result<Child> {
        let Self {
            name,
            mut command,
            namespace,
            inherit,
            fixed_addresses,
            sink,
        } = self;
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let program = command.get_program().to_string_lossy().into_owned();
        let setup = Setup {
            namespace: namespace.map(AsRawFd::as_raw_fd),
            inherit: inherit.iter().map(AsRawFd::as_raw_fd).collect(),
            parent: getpid(),
            fixed_addresses,
        };
        child_setup::prepare(&mut command, setup);
        let place = namespace.map_or(String::new(), |n| {
            format!(" in the namespace of {}", n.name())
        });
        let child = on_forker(move || command.spawn())?
            .with_context(|| format!("start {name} ({program}){place}"))?;
        let pid = Pid::from_raw(i32::try_from(child.id()).context("a process id is positive")?);
        // From here on the child is killed on every path.
        let mut new = Child {
            name,
            pid,
            pidfd: None,
            exit: None,
            output: Arc::default(),
            done: mpsc::channel().1,
        };
        new.pidfd =
            Some(child_setup::pidfd_open(pid).with_context(|| format!("watch {}", new.name))?);
        let (done, readers_done) = mpsc::channel();
        new.done = readers_done;
        if let Some(stdout) = child.stdout {
            new.read(Stream::Out, stdout, sink.clone(), done.clone())?;
        }
        if let Some(stderr) = child.stderr {
            new.read(Stream::Err, stderr, sink, done)?;
        }
        Ok(new)
    }
}

/// A running child. Dropping it kills its whole process group.
#[derive(Debug)]
pub struct Child {
    name: String,
    pid: Pid,
    pidfd: Option<OwnedFd>,
    exit: Option<Exit>,
    output: Arc<Mutex<VecDeque<String>>>,
    /// Disconnects when the last reader of its output has ended.
    done: mpsc::Receiver<()>,
}

impl Child {
    /// Returns the name of the child in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its process id, which is also that of its group.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw()
    }

    /// A descriptor that is readable once the child has ended, to wait for it
    /// with other things; `None` once it was waited for.
    pub fn pidfd(&self) -> Option<BorrowedFd<'_>> {
        self.pidfd.as_ref().map(AsFd::as_fd)
    }

    /// The last lines it wrote, both streams together.
    pub fn tail(&self) -> Vec<String> {
        self.output
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// Those of `poll` and `wait4`.
    pub fn try_wait(&mut self) -> Result<Option<Exit>> {
        self.wait_timeout(Duration::ZERO)
    }

    /// Waits until it has ended.
    ///
    /// # Errors
    /// Those of `poll` and `wait4`.
    pub fn wait(&mut self) -> Result<Exit> {
        loop {
            if let Some(exit) = self.wait_timeout(Duration::from_secs(3600))? {
                return Ok(exit);
            }
        }
    }

    /// Waits at most `timeout` for it to end. When it has, what is left of its
    /// process group is killed.
    ///
    /// # Errors
    /// Those of `poll` and `wait4`.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Exit>> {
        let Some(pidfd) = &self.pidfd else {
            return Ok(self.exit);
        };
        let deadline = Instant::now() + timeout;
        loop {
            // Rounded up, or the last fraction of a millisecond would spin.
            let left = deadline
                .saturating_duration_since(Instant::now())
                .as_micros()
                .div_ceil(1000);
            let left = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
            match poll(&mut fds, left) {
                Ok(0) if Instant::now() >= deadline => return Ok(None),
                Ok(0) | Err(nix::errno::Errno::EINTR) => {}
                Ok(_) => break,
                Err(e) => return Err(e).with_context(|| format!("wait for {}", self.name)),
            }
        }
        self.reap().map(Some)
    }

    /// Sends a signal to its whole process group.
    ///
    /// # Errors
    /// Those of `killpg`; none if it has ended.
    pub fn signal(&self, signal: Signal) -> Result<()> {
        // Once it was reaped, the group's number may be another's.
        if self.pidfd.is_none() {
            return Ok(());
        }
        match killpg(self.pid, signal) {
            Ok(()) | Err(nix::errno::Errno::ESRCH) => Ok(()),
            Err(e) => Err(e).with_context(|| format!("send {signal} to {}", self.name)),
        }
    }

    /// Asks it to end with SIGTERM, and kills it if it has not after `grace`.
    ///
    /// # Errors
    /// Those of [`Self::wait_timeout`].
    pub fn terminate(&mut self, grace: Duration) -> Result<Exit> {
        self.signal(Signal::SIGTERM)?;
        match self.wait_timeout(grace)? {
            Some(exit) => Ok(exit),
            None => self.kill(),
        }
    }

    /// Kills it and its process group.
    ///
    /// # Errors
    /// Those of `wait4`.
    pub fn kill(&mut self) -> Result<Exit> {
        self.signal(Signal::SIGKILL)?;
        self.wait()
    }

    /// Reaps the child, which has ended or is about to.
    fn reap(&mut self) -> Result<Exit> {
        // As long as the leader is not reaped, the group's number is its own.
        self.signal(Signal::SIGKILL)?;
        let exit =
            child_setup::reap(self.pid).with_context(|| format!("wait for {}", self.name))?;
        self.pidfd = None;
        self.exit = Some(exit);
        // What the group wrote is complete when its pipes are closed; a process
        // that left the group may hold them longer.
        let _ = self.done.recv_timeout(Duration::from_millis(500));
        Ok(exit)
    }

    fn read(
        &self,
        stream: Stream,
        pipe: impl Read + Send + 'static,
        sink: Option<LineSink>,
        done: Sender<()>,
    ) -> Result<()> {
        let (name, output) = (self.name.clone(), Arc::clone(&self.output));
        let run = move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while matches!(
                pipe.by_ref()
                    .take(LONGEST_LINE)
                    .read_until(b'\n', &mut line),
                Ok(1..)
            ) {
                let text = String::from_utf8_lossy(&line);
                let text = text.trim_end_matches(['\n', '\r']);
                if let Some(sink) = &sink {
                    sink(&name, stream, text);
                }
                let mut tail = output.lock().unwrap_or_else(PoisonError::into_inner);
                if tail.len() == TAIL_LINES {
                    tail.pop_front();
                }
                tail.push_back(text.to_string());
                line.clear();
            }
            drop(done);
        };
        thread::Builder::new()
            .name(format!("log {}", self.name))
            .spawn(run)
            .context("start a thread")?;
        Ok(())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if self.exit.is_none() {
            // Nothing can be done about a failure here; the kernel still kills
            // the child when this process ends.
            let _ = self.signal(Signal::SIGKILL);
            let _ = self.reap();
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// Runs `f` on the thread that forks every child and never ends: the kernel
/// sends the parent-death signal when the *thread* that forked ends.
fn on_forker<T: Send + 'static>(
    f: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<io::Result<T>> {
    static FORKER: OnceLock<Option<Sender<Job>>> = OnceLock::new();
    let forker = FORKER.get_or_init(|| {
        let (jobs, todo) = mpsc::channel::<Job>();
        let run = move || todo.into_iter().for_each(|job| job());
        thread::Builder::new()
            .name("forker".into())
            .spawn(run)
            .ok()
            .map(|_| jobs)
    });
    let (answer, answered) = mpsc::channel();
    let job: Job = Box::new(move || {
        // The caller waits below.
        let _ = answer.send(f());
    });
    let forker = forker
        .as_ref()
        .context("start the thread that starts processes")?;
    forker
        .send(job)
        .ok()
        .context("reach the thread that starts processes")?;
    answered
        .recv()
        .context("hear from the thread that starts processes")
}
