//! The machine that is measured on.

use std::fs::read_to_string;

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
    fn knows_this_machine() {
        assert!(describe().contains("Linux"), "{}", describe());
    }
}
