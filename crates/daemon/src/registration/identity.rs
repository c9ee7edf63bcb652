//! Name and number by which a proxy knows a device.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use braid_api::registration::{MAX_NAME, is_name};

/// Returns the name of the device: as configured, or that of its host.
pub(super) fn name(configured: Option<&str>) -> String {
    if let Some(name) = configured {
        return name.to_owned();
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    fitting(host.trim())
}

/// Returns a host's name without what a name here cannot have.
fn fitting(host: &str) -> String {
    let mut name = String::new();
    for c in host.chars() {
        let mut longer = name.clone();
        longer.push(c);
        if is_name(&longer) && longer.len() <= MAX_NAME {
            name = longer;
        }
    }
    match name.is_empty() {
        true => "device".to_owned(),
        false => name,
    }
}

/// Returns the number of the daemon that serves this control socket: the same after another
/// start, and where the machine has no identifier until it boots again. The identifier itself
/// leaves no machine (machine-id(5)).
pub(super) fn number(control: &Path) -> u64 {
    let read = |path| std::fs::read_to_string(path).ok();
    let machine = read("/etc/machine-id").filter(|id| !id.trim().is_empty());
    let machine = machine.or_else(|| read("/proc/sys/kernel/random/boot_id"));
    let mut hasher = DefaultHasher::new();
    ("braid registration", machine, control).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_has_a_name_that_fits() {
        assert_eq!(fitting("cpe-7.example"), "cpe-7.example");
        assert_eq!(fitting("ab/c@d"), "abcd");
        assert_eq!(fitting(""), "device");
        assert_eq!(fitting(&"é".repeat(60)).len(), MAX_NAME);
        assert_eq!(name(Some("lab-1")), "lab-1");
        assert!(is_name(&name(None)));
    }

    #[test]
    fn daemons_of_a_machine_have_numbers_of_their_own() {
        let [a, b] = ["/run/braid/a.sock", "/run/braid/b.sock"].map(Path::new);
        assert_ne!(number(a), number(b));
        assert_eq!(number(a), number(a));
    }
}
