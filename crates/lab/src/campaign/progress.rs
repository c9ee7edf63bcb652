//! How a campaign shows that it goes on: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressStyle};

use super::job::{Done, Job};

/// Shared by all workers.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    quiet: bool,
    total: usize,
    done: AtomicUsize,
    /// Jobs of `done` that had run before: they say nothing of the time that is left.
    before: AtomicUsize,
    began: Instant,
}

impl Progress {
    pub(super) fn new(name: &str, total: usize, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            let style = ProgressStyle::with_template(
                "{prefix} {wide_bar} {pos}/{len} jobs, {elapsed} gone, {msg}",
            );
            ProgressBar::new(total as u64)
                .with_prefix(name.to_owned())
                .with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        if !quiet && bar.is_none() {
            braid_api::note!("{name}: {total} jobs");
        }
        Self {
            bar,
            quiet,
            total,
            done: AtomicUsize::new(0),
            before: AtomicUsize::new(0),
            began: Instant::now(),
        }
    }

    pub(super) fn done(&self, job: &Job, done: Done) {
        if done == Done::Before {
            self.before.fetch_add(1, Ordering::Relaxed);
        }
        self.line(
            job,
            match done {
                Done::Ran => "done",
                Done::Before => "was done before",
                Done::Failed => "a case of it failed",
            },
        );
    }

    pub(super) fn died(&self, job: &Job, why: &anyhow::Error) {
        self.line(job, &format!("did not end: {why:#}"));
    }

    fn line(&self, job: &Job, what: &str) {
        let n = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        let left = self.left(n);
        match &self.bar {
            Some(bar) => {
                bar.set_position(n as u64);
                bar.set_message(left);
                if what.starts_with("did not") || what.starts_with("a case") {
                    bar.println(format!("{}, repeat {}: {what}", job.label(), job.repeat));
                }
            }
            None if self.quiet => {}
            None => braid_api::note!(
                "[{n}/{}] {}, repeat {}: {what} ({left})",
                self.total,
                job.label(),
                job.repeat
            ),
        }
    }

    /// Time left, from how long the jobs took that ran.
    fn left(&self, n: usize) -> String {
        let ran = n.saturating_sub(self.before.load(Ordering::Relaxed));
        if ran == 0 || n >= self.total {
            return "".to_owned()
                + if n >= self.total {
                    "all done"
                } else {
                    "time left unknown"
                };
        }
        let each = self.began.elapsed().as_secs_f64() / ran as f64;
        let left = Duration::from_secs_f64(each * (self.total - n) as f64);
        format!("about {} left", HumanDuration(left))
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
