//! What libbpf says: kept for errors instead of printed.

use std::sync::{Mutex, Once, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

static LAST: Mutex<Vec<String>> = Mutex::new(Vec::new());
/// Lines of the verifier that tell why.
const LINES: usize = 12;

fn keep(_: PrintLevel, line: String) {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    last.extend(line.lines().map(|l| l.trim().to_owned()));
    let over = last.len().saturating_sub(LINES);
    last.drain(..over);
}

/// Has libbpf's words kept, from now on; forgets older ones.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    LAST.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// `error` and what libbpf said before it.
pub(super) fn with_last_words(error: &libbpf_rs::Error) -> String {
    let last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    match last.is_empty() {
        true => format!("{error:#}"),
        false => format!("{error:#}; libbpf says: {}", last.join(" | ")),
    }
}
