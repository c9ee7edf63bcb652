//! CPU time of the whole machine, and of a process.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{SysconfVar, sysconf};

/// Time that the processors were busy, all together, s: only differences tell.
///
/// Of all the time there was, what was not idle. Kernels whose ticks count (most of the
/// distributions') see little of a program that timers wake: it runs between two ticks. How
/// long a processor slept they know exactly.
pub fn busy_seconds() -> Option<f64> {
    let per_second = sysconf(SysconfVar::CLK_TCK).ok()??;
    let (processors, unused) = parse(&fs::read_to_string("/proc/stat").ok()?)?;
    let now = Duration::from(clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?);
    Some(processors as f64 * now.as_secs_f64() - unused as f64 / per_second as f64)
}

/// How many processors there are, and the ticks that they were not used for. proc(5): user,
/// nice, system, idle, iowait, irq, softirq, steal; what the hypervisor took away was not used.
fn parse(stat: &str) -> Option<(usize, u64)> {
    let all = stat.lines().find_map(|l| l.strip_prefix("cpu "))?;
    let fields: Option<Vec<u64>> = all.split_whitespace().map(|f| f.parse().ok()).collect();
    let fields = fields?;
    let unused: Option<Vec<u64>> = [3, 4, 7].iter().map(|i| fields.get(*i).copied()).collect();
    let processors = stat.lines().filter(|l| {
        let number = l.strip_prefix("cpu");
        number.is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
    });
    Some((processors.count(), unused?.iter().sum()))
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
        let cpu = " 10 20 30 4000 500 6 7 800 9 9\n";
        let stat = format!("cpu {cpu}cpu0{cpu}cpu11{cpu}cpufreq 7\n");
        assert_eq!(parse(&stat), Some((2, 4000 + 500 + 800)));
        assert_eq!(parse("cpu  1 2 3\n"), None);
        assert_eq!(parse("intr 5\n"), None);
        // A tick at most is counted late.
        let (first, then) = (busy_seconds().unwrap(), busy_seconds().unwrap());
        assert!(first <= then + 0.1, "{first}, {then}");
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
