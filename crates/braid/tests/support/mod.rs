//! What tests on the virtual clock share.

use std::path::{Path, PathBuf};

/// The kernel and the guest's root, or `None` with the reason on the output.
pub(crate) fn parts() -> Option<[(&'static str, PathBuf); 2]> {
    let build = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.build");
    let part = |variable: &'static str, built: &str| {
        let path = std::env::var_os(variable).map_or_else(|| build.join(built), PathBuf::from);
        (variable, path)
    };
    let parts = [
        part("BRAID_KERNEL", "kernel/linux"),
        part("BRAID_GUEST", "guest"),
    ];
    if parts[0].1.is_file() && parts[1].1.join("braid").is_file() {
        return Some(parts);
    }
    println!("skipped: there is no virtual-clock kernel; make kernel guest builds it");
    None
}
