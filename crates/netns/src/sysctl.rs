//! Kernel settings of a namespace.

use std::fs;
use std::path::Path;

use super::addressing::Family;

/// A setting: its path below `/proc/sys`, dots for slashes, and its value.
pub(super) type Setting = (String, String);

/// Whether the kernel has IPv6, and it is not switched off.
pub(super) fn has_ipv6() -> bool {
    Path::new("/proc/sys/net/ipv6/conf").exists()
}

/// Returns the settings that every namespace of a lab gets before it has interfaces.
///
/// `tcp_rmem` and `tcp_wmem`: least, initial and greatest buffer, bytes.
pub(super) fn base(family: Family, tcp_rmem: [u32; 3], tcp_wmem: [u32; 3]) -> Vec<Setting> {
    let triple = |[a, b, c]: [u32; 3]| format!("{a} {b} {c}");
    let mut settings: Vec<Setting> = vec![
        ("net.ipv4.tcp_rmem".into(), triple(tcp_rmem)),
        ("net.ipv4.tcp_wmem".into(), triple(tcp_wmem)),
        // What one run learns about a path must not shape the next.
        ("net.ipv4.tcp_no_metrics_save".into(), "1".into()),
        ("net.ipv4.ip_forward".into(), "0".into()),
    ];
    for scope in ["all", "default"] {
        // An answer may arrive by another access than its question left by.
        settings.push((format!("net.ipv4.conf.{scope}.rp_filter"), "0".into()));
        // A lost carrier diverts traffic, as a network manager would.
        settings.push((
            format!("net.ipv4.conf.{scope}.ignore_routes_with_linkdown"),
            "1".into(),
        ));
        let v6 =
            |key: &str, value: &str| (format!("net.ipv6.conf.{scope}.{key}"), value.to_string());
        if !has_ipv6() {
            continue;
        }
        if family == Family::Ipv4 {
            // Keeps the kernel's own IPv6 chatter off the links.
            settings.push(v6("disable_ipv6", "1"));
        } else {
            settings.extend([
                v6("disable_ipv6", "0"),
                v6("accept_dad", "0"),
                v6("dad_transmits", "0"),
                v6("accept_ra", "0"),
                v6("router_solicitations", "0"),
                v6("forwarding", "0"),
                // No link-local addresses: nothing here needs them.
                v6("addr_gen_mode", "1"),
                v6("ignore_routes_with_linkdown", "1"),
            ]);
        }
    }
    settings
}

/// Returns the settings that make a namespace forward packets of a family.
pub(super) fn forwarding(family: Family) -> Vec<Setting> {
    let key = match family {
        Family::Ipv4 => "net.ipv4.ip_forward",
        Family::Ipv6 => "net.ipv6.conf.all.forwarding",
    };
    vec![(key.into(), "1".into())]
}

/// Returns the settings by which an interface gets a link-local address of IPv6 when it comes up: a
/// router asks by that for the neighbours to whom it forwards (RFC 4861 7.2.2), and by no other.
pub(super) fn link_local(interface: &str) -> Vec<Setting> {
    let key = format!("net.ipv6.conf.{interface}.addr_gen_mode");
    let setting = has_ipv6().then(|| (key, "0".to_owned()));
    setting.into_iter().collect()
}

/// Applies settings to the calling thread's namespace, as far as the kernel
/// lets; returns a line for each that it did not take.
pub(super) fn apply(settings: &[Setting]) -> Vec<String> {
    let mut refused = Vec::new();
    for (key, value) in settings {
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        if let Err(e) = fs::write(&path, value) {
            refused.push(format!("could not set {key} to \"{value}\": {e}"));
        }
    }
    refused
}
