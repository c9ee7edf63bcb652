//! The machine that is measured on, and what its processes use.

use std::fs::read_to_string;

use anyhow::{Context, Result};
use nix::unistd::{SysconfVar, sysconf};

/// `Intel(R) Xeon(R) ..., 2 cores, Linux 6.18.44`.
pub(crate) fn describe() -> String {
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|l| l.strip_prefix("model name")?.split_once(':'))
        .map_or("unknown processor", |(_, m)| m.trim());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let virtual_machine = if cpuinfo.contains(" hypervisor") {
        ", virtual machine"
    } else {
        ""
    };
    format!(
        "{model}, {cores} cores{virtual_machine}, Linux {}",
        kernel.trim()
    )
}

/// Processor time that the process `pid` has used, all threads and the kernel's
/// work on their behalf, seconds.
pub(crate) fn cpu_seconds(pid: i32) -> Result<f64> {
    let path = format!("/proc/{pid}/stat");
    let stat = read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    // Behind the name, which may hold anything: state is field 3, utime 14, stime 15.
    let fields: Vec<&str> = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.split_whitespace().collect())
        .unwrap_or_default();
    let field = |n: usize| fields.get(n - 3).and_then(|f| f.parse::<f64>().ok());
    let ticks = field(14).zip(field(15)).map(|(u, s)| u + s);
    let per_second = sysconf(SysconfVar::CLK_TCK)?.unwrap_or(100);
    Ok(ticks.with_context(|| format!("cannot understand {path}"))? / per_second as f64)
}

/// Other processes' load: mean number of running tasks over the last minute.
pub(crate) fn load() -> f64 {
    read_to_string("/proc/loadavg")
        .ok()
        .and_then(|l| l.split_whitespace().next()?.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_this_process_and_machine() {
        let pid = std::process::id() as i32;
        let before = cpu_seconds(pid).unwrap();
        assert!(cpu_seconds(pid).unwrap() >= before);
        assert!(cpu_seconds(-1).is_err());
        assert!(describe().contains("Linux"), "{}", describe());
    }
}
