//! Facts about processes, from `/proc`.

use std::fs;
use std::io;

use nix::unistd::Pid;

/// When a process started, clock ticks since boot; with its id, this names a
/// process for as long as the machine runs. `None`: there is no such process,
/// or only its remains (a zombie).
pub(super) fn start_ticks(pid: i32) -> Option<u64> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// proc(5): the name, in parentheses, may hold anything; field 3 behind it is
/// the state, field 22 the start.
fn parse_stat(stat: &str) -> Option<u64> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X" | "x") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// The value of a variable in the environment that a process was started
/// with.
///
/// # Errors
/// Those of reading it: the process is gone, or is none of ours.
pub(super) fn environment(pid: Pid, variable: &str) -> io::Result<Option<String>> {
    let all = fs::read(format!("/proc/{pid}/environ"))?;
    Ok(find_variable(&all, variable))
}

fn find_variable(environ: &[u8], variable: &str) -> Option<String> {
    let value = |entry: &[u8]| {
        Some(
            entry
                .strip_prefix(variable.as_bytes())?
                .strip_prefix(b"=")?
                .to_vec(),
        )
    };
    environ
        .split(|b| *b == 0)
        .find_map(value)
        .and_then(|v| String::from_utf8(v).ok())
}

/// Every process that is to be seen.
pub(super) fn processes() -> io::Result<Vec<Pid>> {
    let number = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
    Ok(fs::read_dir("/proc")?
        .filter_map(number)
        .map(Pid::from_raw)
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_found_behind_any_name() {
        let rest = "1 2 3 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 4711 0 0";
        for name in ["sh", "a b", ") S 1 (", "x) R 9"] {
            assert_eq!(
                parse_stat(&format!("77 ({name}) S {rest}")),
                Some(4711),
                "{name}"
            );
            assert_eq!(parse_stat(&format!("77 ({name}) Z {rest}")), None);
        }
        assert_eq!(parse_stat("77 (sh"), None);
        assert_eq!(parse_stat("77 (sh) S 1 2"), None);
        let own = i32::try_from(std::process::id()).unwrap();
        assert!(start_ticks(own).is_some_and(|t| Some(t) == start_ticks(own)));
    }

    #[test]
    fn a_variable_is_found_by_its_whole_name() {
        let environ = b"XRUN=no\0RUN2=no\0RUN=a=b\0RUN=later\0";
        assert_eq!(find_variable(environ, "RUN").as_deref(), Some("a=b"));
        assert_eq!(find_variable(environ, "RU"), None);
        assert_eq!(find_variable(b"", "RUN"), None);
    }
}
