//! How a run shows that it goes on: a bar on a terminal, lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::scenario::Case;
use crate::summary::CaseResult;

/// Is told how a run gets on.
pub trait Progress {
    /// The run begins: its scenario, how many cases, and their whole length.
    fn start(&mut self, scenario: &str, cases: usize, length: Duration);
    /// A case begins.
    fn case(&mut self, case: &Case, repeat: u32);
    /// Time since the start of the case's traffic.
    fn elapsed(&mut self, t: Duration);
    /// Simulated time of all cases together, where they run side by side.
    fn advanced(&mut self, t: Duration);
    /// The case has ended.
    fn done(&mut self, result: &CaseResult);
    /// The run has ended.
    fn finish(&mut self);
}

/// Progress on standard error, in the form that suits it.
pub fn for_terminal() -> Box<dyn Progress> {
    if std::io::stderr().is_terminal() {
        Box::new(Bar {
            bar: ProgressBar::hidden(),
            before: Duration::ZERO,
            case: Duration::ZERO,
        })
    } else {
        Box::new(Plain { cases: 0, done: 0 })
    }
}

/// No progress.
pub fn silent() -> Box<dyn Progress> {
    Box::new(Silent)
}

struct Silent;

impl Progress for Silent {
    fn start(&mut self, _: &str, _: usize, _: Duration) {}
    fn case(&mut self, _: &Case, _: u32) {}
    fn elapsed(&mut self, _: Duration) {}
    fn advanced(&mut self, _: Duration) {}
    fn done(&mut self, _: &CaseResult) {}
    fn finish(&mut self) {}
}

struct Plain {
    cases: usize,
    done: usize,
}

impl Progress for Plain {
    fn start(&mut self, scenario: &str, cases: usize, length: Duration) {
        self.cases = cases;
        braid_api::note!("{}", begin(scenario, cases, length));
    }
    fn case(&mut self, _: &Case, _: u32) {}
    fn elapsed(&mut self, _: Duration) {}
    fn advanced(&mut self, _: Duration) {}
    fn done(&mut self, r: &CaseResult) {
        self.done += 1;
        braid_api::note!("[{}/{}] {}", self.done, self.cases, outcome(r));
    }
    fn finish(&mut self) {}
}

struct Bar {
    bar: ProgressBar,
    /// Length of the cases that are done.
    before: Duration,
    /// Length of the one that runs.
    case: Duration,
}

impl Progress for Bar {
    fn start(&mut self, scenario: &str, _: usize, length: Duration) {
        let ms = u64::try_from(length.as_millis()).unwrap_or(u64::MAX);
        self.bar = ProgressBar::new(ms);
        let style = ProgressStyle::with_template(
            "{prefix} {bar:30} {percent:>3} %  {eta} left  {wide_msg}",
        );
        self.bar
            .set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_prefix(scenario.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(250));
    }
    fn case(&mut self, case: &Case, repeat: u32) {
        self.case = case.duration;
        let repeat = if repeat > 1 {
            format!(" ({repeat})")
        } else {
            String::new()
        };
        self.bar.set_message(format!("{}{repeat}", case.name));
    }
    fn elapsed(&mut self, t: Duration) {
        let at = self.before + t.min(self.case);
        self.bar
            .set_position(u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
    }
    fn advanced(&mut self, t: Duration) {
        (self.before, self.case) = (t, Duration::ZERO);
        self.elapsed(t);
    }
    fn done(&mut self, r: &CaseResult) {
        self.before += self.case;
        self.elapsed(Duration::ZERO);
        self.bar.println(outcome(r));
    }
    fn finish(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn begin(scenario: &str, cases: usize, length: Duration) -> String {
    let s = if cases == 1 { "" } else { "s" };
    format!("{scenario}: {cases} case{s}, about {} s", length.as_secs())
}

fn outcome(r: &CaseResult) -> String {
    if let Some(why) = &r.failed {
        return format!("{}: FAILED: {why}", r.name);
    }
    match (&r.latency_ms, r.completion_s) {
        (Some(l), _) => format!("{}: {:.2} ms one way", r.name, l.mean),
        (None, Some(s)) => format!("{}: {s:.1} s, {:.1} Mbit/s", r.name, r.goodput_mbps),
        (None, None) => format!("{}: {:.1} Mbit/s", r.name, r.goodput_mbps),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_case_is_no_cases() {
        let begin = |n| begin("x", n, Duration::from_secs(20));
        assert_eq!(begin(1), "x: 1 case, about 20 s");
        assert_eq!(begin(2), "x: 2 cases, about 20 s");
    }
}
