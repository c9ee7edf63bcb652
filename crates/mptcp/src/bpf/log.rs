//! Messages of libbpf, saved for errors instead of printed.

use std::cell::RefCell;
use std::sync::Once;

use libbpf_rs::{PrintLevel, set_print};

thread_local! {
    /// Messages to the thread that loads: others may load at the same time.
    static LAST: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}
/// Lines that tell why.
const LINES: usize = 12;

/// Whether this is not one of the verifier's thousands of instructions, source
/// lines and register states.
fn tells(line: &str) -> bool {
    let instruction = line.starts_with(|c: char| c.is_ascii_digit());
    let state = line.starts_with('R') && line.contains('=');
    !(line.is_empty() || instruction || state || line.starts_with(';'))
}

fn keep(_: PrintLevel, text: String) {
    let lines = text.lines().map(str::trim).filter(|l| tells(l));
    LAST.with_borrow_mut(|last| {
        last.extend(lines.map(str::to_owned));
        let over = last.len().saturating_sub(LINES);
        last.drain(..over);
    });
}

/// Starts to save libbpf's messages for errors; forgets older ones.
pub(super) fn capture() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        set_print(Some((PrintLevel::Warn, keep)));
    });
    LAST.with_borrow_mut(Vec::clear);
}

/// `error` and what libbpf said before it.
pub(super) fn with_last_words(error: &libbpf_rs::Error) -> String {
    LAST.with_borrow(|last| match last.is_empty() {
        true => format!("{error:#}"),
        false => format!("{error:#}; libbpf says: {}", last.join(" | ")),
    })
}

/// Whether the verifier looked at a program: then a refusal is about that, and
/// not about rights.
pub(super) fn verifier_spoke() -> bool {
    // "processed 1234 insns (limit 1000000) ..."
    let processed = |l: &String| l.starts_with("processed ") && !l.starts_with("processed 0 ");
    LAST.with_borrow(|last| last.iter().any(processed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_told_from_states() {
        for noise in [
            "168: (61) r1 = *(u32 *)(r8 +0)",
            "; measure(tp, p, rs, now); @ wrr.bpf.c:425",
            "R1=0 R6=trusted_ptr_rate_sample()",
            "",
        ] {
            assert!(!tells(noise), "{noise}");
        }
        for reason in [
            "R2 invalid mem access 'inv'",
            "dereference of modified trusted_ptr_tcp_sock ptr R1 off=1296 disallowed",
            "processed 425 insns (limit 1000000)",
        ] {
            assert!(tells(reason), "{reason}");
        }
    }

    #[test]
    fn messages_are_of_the_thread_that_loads() {
        keep(PrintLevel::Warn, "invalid mem access".into());
        let none = || LAST.with_borrow(Vec::is_empty);
        assert!(!none());
        assert!(std::thread::spawn(none).join().unwrap());
    }
}
