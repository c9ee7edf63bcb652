//! CPU time of the whole machine, and of a process.

use std::fs;

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

/// Time that the processors were busy since the machine's start, all together, s.
pub fn busy_seconds() -> Option<f64> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let ticks = parse(&fs::read_to_string("/proc/stat").ok()?)?;
    Some(ticks as f64 / per_second as f64)
}

/// proc(5): user, nice, system, idle, iowait, irq, softirq, steal and the guests',
/// which user and nice contain. What the hypervisor took away was not used.
fn parse(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let fields: Option<Vec<u64>> = all.split_whitespace().map(|f| f.parse().ok()).collect();
    let fields = fields?;
    let busy: Option<Vec<u64>> = [0, 1, 2, 5, 6]
        .iter()
        .map(|i| fields.get(*i).copied())
        .collect();
    Some(busy?.iter().sum())
}

/// Time that the process `pid` has used, all threads and the kernel's work on their
/// behalf, s.
///
/// # Errors
/// There is no such process.
pub fn process_seconds(pid: i32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = fs::read_to_string(&path).with_context(|| format!("read {path}"))?;
    let ticks = used(&stat).with_context(|| format!("understand {path}"))?;
    let per_second = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100);
    Ok(ticks as f64 / per_second as f64)
}

/// proc(5): behind the name, which may hold anything, state is field 3, utime 14, stime 15.
fn used(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(field(14)? + field(15)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_stolen_time_is_not_used() {
        let stat = "cpu  10 20 30 4000 500 6 7 800 9 9\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(parse(stat), Some(10 + 20 + 30 + 6 + 7));
        assert_eq!(parse("cpu  1 2 3\n"), None);
        assert_eq!(parse("intr 5\n"), None);
        assert!(busy_seconds() <= busy_seconds());
    }

    #[test]
    fn time_of_a_process_is_user_and_system_time() {
        let stat = "7 (a) b) S 4 5 6 7 8 9 10 11 12 13 140 15 0 0";
        assert_eq!(used(stat), Some(155));
        assert_eq!(used("7 (a) S 4"), None);
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(process_seconds(me).unwrap() >= 0.0);
        assert!(process_seconds(-1).is_err());
    }
}
