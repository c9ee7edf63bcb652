//! Words for whoever has started a command, on its standard streams, that never end it: a full
//! disk or a reader that has gone is no reason to lose what was measured.

use std::fmt::Arguments;
use std::io::{self, Write};
use std::sync::OnceLock;

static FAILED: OnceLock<String> = OnceLock::new();

/// Writes to standard output; what fails is kept for [`failed`]. A reader that wants no more, as
/// `head`, is no failure.
pub fn say(what: Arguments<'_>) {
    let mut out = io::stdout().lock();
    match out.write_fmt(what).and_then(|()| out.flush()) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
            let _ = FAILED.set(e.to_string());
        }
        _ => {}
    }
}

/// Writes to standard error, if that can be written.
pub fn note(what: Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(what);
}

/// Returns why standard output could not be written, if that happened: the command has failed.
pub fn failed() -> Option<&'static str> {
    FAILED.get().map(String::as_str)
}

/// Writes a line to standard output, as `println!`, by [`output::say`](crate::output::say()).
#[macro_export]
macro_rules! say {
    ($($what:tt)*) => { $crate::output::say(format_args!("{}\n", format_args!($($what)*))) };
}

/// Writes a line to standard error, as `eprintln!`, by [`output::note`](crate::output::note()).
#[macro_export]
macro_rules! note {
    ($($what:tt)*) => { $crate::output::note(format_args!("{}\n", format_args!($($what)*))) };
}
