//! CPU time of the whole machine.

use std::fs;

use nix::unistd::{SysconfVar, sysconf};

/// Time that the processors were busy since the machine's start, all together, s.
pub(super) fn busy_seconds() -> Option<f64> {
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
}
