//! The rights of this process, capabilities(7).

use std::fs;

use crate::error::{Error, Result};

const STATUS: &str = "/proc/self/status";

/// The effective capabilities of this process, in its user namespace.
///
/// # Errors
/// `/proc` is not mounted, or not as documented.
pub fn effective() -> Result<u64> {
    let status = fs::read_to_string(STATUS)
        .map_err(|e| Error::io(format!("read {STATUS}: is /proc mounted?"), e))?;
    in_status(&status).ok_or_else(|| Error::answer(format!("read {STATUS}"), "it has no CapEff"))
}

/// Whether the capability of this number is in `set`.
pub const fn has(set: u64, bit: u32) -> bool {
    set >> bit & 1 == 1
}

fn in_status(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|l| l.strip_prefix("CapEff:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read() {
        assert!(has(0b1000, 3) && !has(0b1000, 2));
        assert!(effective().is_ok());
        let status = "Name:\tbraid\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n";
        assert_eq!(in_status(status), Some(0x1ff_ffff_ffff));
        assert_eq!(in_status("CapEff:\tnonsense"), None);
    }
}
