//! Console of a guest: how far it is, and what killed it.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::run::guest::{MARK, PROGRESS};

/// Lines that a message shows.
const TAIL: usize = 12;

/// Fed line by line from the threads that read the guest's output.
#[derive(Debug)]
pub(super) struct Console(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Simulated time of the case.
    at: Duration,
    /// When that last moved on.
    moved: Instant,
    tail: VecDeque<String>,
    panic: Option<String>,
    memory: bool,
}

impl Console {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            at: Duration::ZERO,
            moved: Instant::now(),
            tail: VecDeque::new(),
            panic: None,
            memory: false,
        }))
    }

    pub(super) fn line(&self, text: &str) {
        let mut s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let said = text.split_once(MARK).map(|(_, s)| s);
        let ms = said
            .and_then(|s| s.strip_prefix(PROGRESS))
            .and_then(|s| s.trim().parse().ok());
        if let Some(ms) = ms {
            let at = Duration::from_millis(ms);
            if at > s.at {
                s.at = at;
                s.moved = Instant::now();
            }
            return;
        }
        if let Some((_, why)) = text.split_once("Kernel panic - not syncing:") {
            s.panic.get_or_insert_with(|| why.trim().to_owned());
        }
        s.memory |= ["Out of memory", "out of memory", "Out of Memory"]
            .iter()
            .any(|w| text.contains(w));
        if text.trim().is_empty() {
            return;
        }
        if s.tail.len() == TAIL {
            s.tail.pop_front();
        }
        let plain = text.chars().filter(|c| !c.is_control());
        s.tail.push_back(plain.collect());
    }

    /// Simulated time of the case, and for how long of the host's it has stood.
    pub(super) fn progress(&self) -> (Duration, Duration) {
        let s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (s.at, s.moved.elapsed())
    }

    /// Returns what ended the guest, if its console says so.
    pub(super) fn cause(&self, memory_mib: u32) -> Option<String> {
        let s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if s.memory {
            return Some(format!(
                "the guest ran out of memory ({memory_mib} MB): give it more with --guest-memory"
            ));
        }
        s.panic
            .as_ref()
            .map(|why| format!("the guest's kernel panicked: {why}"))
    }

    /// The last lines, for the end of a message.
    pub(super) fn tail(&self) -> String {
        let s = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if s.tail.is_empty() {
            return "; its console is empty".into();
        }
        let lines: Vec<&str> = s.tail.iter().map(String::as_str).collect();
        format!("; its console ends with: {}", lines.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_progress_from_panics() {
        let c = Console::new();
        c.line("[    1.2] braid: progress 1200");
        assert_eq!(c.progress().0, Duration::from_millis(1200));
        assert_eq!(c.cause(768), None);
        c.line("something");
        c.line("Kernel panic - not syncing: Attempted to kill init!");
        c.line("Kernel panic - not syncing: again");
        assert_eq!(
            c.cause(768).unwrap(),
            "the guest's kernel panicked: Attempted to kill init!"
        );
        assert!(c.tail().contains(": something | Kernel"), "{}", c.tail());
        c.line("Kernel panic - not syncing: Out of memory: compulsory panic_on_oom");
        assert!(c.cause(64).unwrap().contains("out of memory (64 MB)"));
        for i in 0..100 {
            c.line(&format!("line {i}"));
        }
        assert_eq!(c.tail().split(" | ").count(), TAIL);
    }
}
