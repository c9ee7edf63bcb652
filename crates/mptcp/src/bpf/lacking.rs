//! Requirements of eBPF congestion controls on the machine.

use std::fs;
use std::path::Path;

use crate::capabilities::{self, has};
use crate::error::{Error, Result};

/// Capabilities by number (`linux/capability.h`).
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// `struct_ops` that are attached by links came with Linux 6.4; the other
/// parts (`bpf_rdonly_cast`, 6.2) before.
const OLDEST: (u32, u32) = (6, 4);

/// Whether [`super::register`] can work here.
///
/// # Errors
/// [`Error::Lacking`], with what is missing and the way out.
pub fn require() -> Result<()> {
    check_release(release().trim())?;
    require_programs()
}

/// Whether this kernel is one for which the programs were written.
pub(super) fn is_recent() -> bool {
    check_release(release().trim()).is_ok()
}

fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default()
}

/// Whether programs that are no congestion controls can be loaded here.
pub(super) fn require_programs() -> Result<()> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(lacking(
            "this kernel describes its types to nobody (no /sys/kernel/btf/vmlinux)",
            "install a kernel with CONFIG_DEBUG_INFO_BTF=y, as those of the distributions are",
        ));
    }
    check_capabilities(capabilities::effective().unwrap_or(0))
}

fn check_release(release: &str) -> Result<()> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    let mut number = || parts.next().and_then(|p| p.parse::<u32>().ok());
    match (number(), number()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST => Err(lacking(
            &format!(
                "Linux {release} cannot have congestion controls attached as eBPF links; it takes {}.{}",
                OLDEST.0, OLDEST.1
            ),
            "install a newer kernel, 6.6 or later, such as that of Debian 13, which Debian 12 has as \
             linux-image-6.12-amd64",
        )),
        _ => Ok(()),
    }
}

fn check_capabilities(set: u64) -> Result<()> {
    let has = |bit| has(set, bit);
    if has(CAP_SYS_ADMIN) || has(CAP_BPF) && has(CAP_PERFMON) && has(CAP_NET_ADMIN) {
        return Ok(());
    }
    Err(no_right())
}

pub(super) fn no_right() -> Error {
    lacking(
        "no right to load eBPF programs (CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN on the host)",
        "run as root: sudo braid ...",
    )
}

pub(super) fn lacking(what: &str, remedy: &str) -> Error {
    Error::Lacking {
        what: what.into(),
        remedy: remedy.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_named() {
        for good in [
            "6.4.0",
            "6.12.117-1~deb12u1",
            "7.0-rc1",
            "6.18.44-fc-v595",
            "",
        ] {
            assert!(check_release(good).is_ok(), "{good}");
        }
        let e = check_release("6.1.0-48-amd64").unwrap_err();
        assert!(
            e.is_lacking() && e.to_string().contains("6.1.0-48-amd64"),
            "{e}"
        );
    }

    #[test]
    fn the_rights_are_roots_or_those_of_bpf() {
        assert!(check_capabilities(0x1ff_ffff_ffff).is_ok());
        let bpf = 1 << CAP_BPF | 1 << CAP_PERFMON | 1 << CAP_NET_ADMIN;
        assert!(check_capabilities(bpf).is_ok());
        for few in [0, 1 << CAP_BPF] {
            let e = check_capabilities(few).unwrap_err();
            assert!(e.is_lacking() && e.to_string().contains("CAP_BPF"), "{e}");
        }
    }
}
