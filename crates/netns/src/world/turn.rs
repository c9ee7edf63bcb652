//! Order of the test files of one program.
//!
//! Tests of one file may run beside each other, tests of two files never do: some measure
//! rates and times, some load both processors, and some set what all namespaces share (names
//! of eBPF programs, congestion controls). The harness runs tests in the order of their names,
//! so a file waits only for the end of the one before it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// File whose tests run, and the number of turns that they hold.
#[derive(Default)]
struct Current {
    file: String,
    turns: usize,
}

static CURRENT: Mutex<Current> = Mutex::new(Current {
    file: String::new(),
    turns: 0,
});
static OVER: Condvar = Condvar::new();

fn current() -> MutexGuard<'static, Current> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Right of the calling test's file to run, held until it is dropped.
#[derive(Debug)]
pub struct Turn {
    /// Whether it counts: only tests of a file do.
    held: bool,
}

impl Turn {
    /// Waits until no test of another file holds a turn. The harness names the thread of
    /// a test after it (`file::test`); a thread of another name needs no turn.
    pub fn take() -> Self {
        match std::thread::current().name() {
            Some(name) => Self::of(name),
            None => Self { held: false },
        }
    }

    fn of(test: &str) -> Self {
        let Some((file, _)) = test.split_once("::") else {
            return Self { held: false };
        };
        let taken = |c: &mut Current| c.turns > 0 && c.file != file;
        let mut now = OVER
            .wait_while(current(), taken)
            .unwrap_or_else(PoisonError::into_inner);
        if now.turns == 0 {
            now.file = file.to_owned();
        }
        now.turns += 1;
        Self { held: true }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.held {
            current().turns -= 1;
            OVER.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_waits_for_all_tests_of_the_one_before() {
        let (first, beside) = (Turn::of("a::one"), Turn::of("a::two"));
        let (tell, told) = channel();
        let waits = std::thread::spawn(move || {
            let turn = Turn::of("b::one");
            tell.send(()).unwrap();
            drop(turn);
        });
        drop(first);
        let early = told.recv_timeout(Duration::from_millis(50));
        assert!(early.is_err(), "a test of `a` still runs");
        drop(beside);
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        waits.join().unwrap();
    }
}
