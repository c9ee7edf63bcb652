//! IPv6 that is switched off: for the whole kernel (`ipv6.disable=1`), or for interfaces of a
//! namespace (`disable_ipv6`). Such an interface takes neither addresses nor routes of that family,
//! and the kernel says EACCES, as if a right were missing.

use std::net::IpAddr;

/// Whether an interface has no IPv6.
pub(crate) fn is_off(interface: &str) -> bool {
    let setting = format!("/proc/sys/net/ipv6/conf/{interface}/disable_ipv6");
    // Without IPv6 in the kernel there are no settings of it.
    std::fs::read_to_string(setting).map_or(true, |s| is_set(&s))
}

/// Whether the interface of an index has no IPv6; one that has gone has none.
pub(crate) fn is_off_at(index: u32) -> bool {
    let name = nix::net::if_::if_indextoname(index).ok();
    name.and_then(|n| n.into_string().ok())
        .is_none_or(|n| is_off(&n))
}

/// Whether an interface can have an address.
pub(crate) fn takes(interface: &str, address: &IpAddr) -> bool {
    address.is_ipv4() || !is_off(interface)
}

fn is_set(setting: &str) -> bool {
    setting.trim() != "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_without_settings_has_no_ipv6() {
        assert!(is_off("no-such-interface") && is_off_at(u32::MAX));
        assert!(!takes("no-such-interface", &"2001:db8::1".parse().unwrap()));
        assert!(takes("no-such-interface", &"192.0.2.1".parse().unwrap()));
    }

    #[test]
    fn the_setting_is_a_number_and_a_new_line() {
        assert!(is_set("1\n") && !is_set("0\n"));
    }
}
