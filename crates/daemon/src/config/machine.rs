//! Configuration against the machine as it is now, for `--check`: what can never work is an
//! error, what may come later a warning.

use std::collections::BTreeSet;
use std::net::IpAddr;

use braid_api::config::NAMESPACES_CC;
use braid_api::diagnostic::Problem;
use braid_api::{Engine, Role};
use braid_mptcp::Error;
use braid_mptcp::offer::Offer;
use braid_mptcp::support::Support;

use super::Config;
use braid_core::rules::User;

/// Facts of the machine that a configuration depends on.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    support: Support,
    /// Whether Braid's eBPF programs can be loaded, as far as rights and release tell.
    ebpf: bool,
    /// Names of all interfaces.
    interfaces: BTreeSet<String>,
    /// Addresses, and the interface of each.
    addresses: Vec<(String, IpAddr)>,
    /// Settings by which it does not forward.
    unforwarded: Vec<&'static str>,
    /// Whether a user has a name.
    has_user: fn(&str) -> bool,
}

impl Machine {
    /// Looks, in the calling thread's network namespace. What cannot be read counts as absent.
    pub(crate) fn look() -> Self {
        let (interfaces, addresses) = interfaces();
        Self {
            support: Support::detect(),
            ebpf: braid_mptcp::offer::ebpf(),
            interfaces,
            addresses,
            unforwarded: crate::lan::unforwarded(true),
            has_user: |name| nix::unistd::User::from_name(name).is_ok_and(|u| u.is_some()),
        }
    }
}

/// Returns the names of all interfaces of the calling thread's network namespace, and all
/// addresses with the interface of each. What cannot be read counts as absent.
fn interfaces() -> (BTreeSet<String>, Vec<(String, IpAddr)>) {
    let (mut interfaces, mut addresses) = (BTreeSet::new(), Vec::new());
    for one in nix::ifaddrs::getifaddrs().into_iter().flatten() {
        let address = one.address.as_ref().and_then(|a| {
            let v4 = a.as_sockaddr_in().map(|a| IpAddr::from(a.ip()));
            v4.or_else(|| a.as_sockaddr_in6().map(|a| IpAddr::from(a.ip())))
        });
        if let Some(address) = address {
            addresses.push((one.interface_name.clone(), address));
        }
        interfaces.insert(one.interface_name);
    }
    (interfaces, addresses)
}

/// Returns the addresses of the accesses that reach beyond their link, in the calling thread's
/// network namespace.
pub(crate) fn addresses_of_accesses(config: &Config) -> Vec<IpAddr> {
    of_accesses(config, &interfaces().1)
}

fn of_accesses(config: &Config, all: &[(String, IpAddr)]) -> Vec<IpAddr> {
    let serves = |interface: &str, address: IpAddr| {
        let mut all = config.accesses.iter();
        all.any(|a| {
            let named = a.interface.as_ref().is_some_and(|p| p.matches(interface));
            named && a.address.is_none_or(|only| only.addr() == address)
        })
    };
    let there = all.iter().filter(|(i, a)| serves(i, *a) && is_global(*a));
    there.map(|(_, a)| *a).collect()
}

/// Result of a look at the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    /// Faults that no change of the machine's state mends.
    pub(crate) errors: Vec<Problem>,
    /// Obstacles as things are now.
    pub(crate) warnings: Vec<Problem>,
}

/// Judges `config` of an end of this role.
pub(crate) fn judge(config: &Config, role: Role, machine: &Machine) -> Findings {
    let mut found = Findings::default();
    if config.engines.contains(&Engine::Mptcp) {
        names(config, machine, &mut found);
    }
    if let Some(Err(what)) = config.converter.as_ref().map(|c| c.cookie()) {
        let at = Problem::at_key(&["converter", "cookie_file"], what);
        found.errors.push(at);
    }
    match role {
        Role::Device => device(config, machine, &mut found),
        Role::Proxy => proxy(config, machine, &mut found),
    }
    found
}

/// Scheduler and congestion control, by name.
fn names(config: &Config, machine: &Machine, found: &mut Findings) {
    let mut note = |key: &str, e: Error| {
        let at = Problem::at_key(&["scheduler", key], e.to_string());
        match e.is_misnamed() {
            true => found.errors.push(at),
            false => found.warnings.push(at),
        }
    };
    let support = &machine.support;
    let scheduler = config.scheduler.as_ref().and_then(|s| s.name.as_deref());
    if let Some(name) = scheduler
        && !Offer::schedulers(support, machine.ebpf).has(name)
        && let Err(e) = support.require_scheduler(name)
    {
        note("name", e);
    }
    if let Some(name) = config.cc.as_deref()
        && name != NAMESPACES_CC
        && !Offer::congestion_controls(support, machine.ebpf).has(name)
        && let Err(e) = support.require_congestion_control(name)
    {
        note("cc", e);
    }
}

fn device(config: &Config, machine: &Machine, found: &mut Findings) {
    for a in &config.accesses {
        let Some(pattern) = &a.interface else {
            continue;
        };
        if !machine.interfaces.iter().any(|i| pattern.matches(i)) {
            let what = format!(
                "access \"{}\": no interface is called {pattern} now; it is used once there is one \
                 (ip -br link lists those there are)",
                a.name
            );
            let key = ["access", &a.name, "interface"];
            found.warnings.push(Problem::at_key(&key, what));
        }
    }
    for name in config.lan.iter().flat_map(|l| &l.interfaces) {
        if !machine.interfaces.contains(name) {
            let what = format!(
                "no interface is called {name} now; hosts on it are served once there is one (ip -br \
                 link lists those there are)"
            );
            let key = ["lan", "interfaces"];
            found.warnings.push(Problem::at_key(&key, what));
        }
    }
    for (place, rule) in config.rules.iter().enumerate() {
        let named = rule.descriptor.user.iter().filter_map(|user| match user {
            User::Name(name) => Some(name),
            User::Id(_) => None,
        });
        for name in named.filter(|name| !(machine.has_user)(name)) {
            let what =
                format!("no user is called {name} here: expected one that getent passwd lists");
            let key = ["rule", &place.to_string(), "user"];
            found.warnings.push(Problem::at_key(&key, what));
        }
    }
    if config.lan.is_some() && !machine.unforwarded.is_empty() {
        let what = format!(
            "this machine does not forward: what hosts send beside connections ends here, and so does \
             what a rule sends directly: sysctl -w {}=1",
            machine.unforwarded.join("=1 ")
        );
        found.warnings.push(Problem::at_key(&["lan"], what));
    }
    for proxy in &config.proxy {
        let family = |a: IpAddr| a.is_ipv4() == proxy.is_ipv4();
        let word = if proxy.is_ipv4() { "IPv4" } else { "IPv6" };
        let pinned: Vec<IpAddr> = config
            .accesses
            .iter()
            .filter_map(|a| a.address.map(|n| n.addr()))
            .collect();
        if pinned.len() == config.accesses.len() && !pinned.iter().any(|a| family(*a)) {
            let what = format!("{proxy} is {word}, and no access has an {word} address to use");
            found.errors.push(Problem::at_key(&["proxy"], what));
            continue;
        }
        let there = of_accesses(config, &machine.addresses);
        if !there.into_iter().any(family) {
            let what = format!("{proxy} is {word}, and no access has an {word} address now");
            found.warnings.push(Problem::at_key(&["proxy"], what));
        }
    }
}

fn proxy(config: &Config, machine: &Machine, found: &mut Findings) {
    for address in &config.proxy {
        let what = if address.is_unspecified() {
            format!(
                "answers leave from the address that the routing chooses, not from {address}: name \
                 the one that devices use"
            )
        } else if machine.addresses.iter().any(|(_, a)| a == address) {
            continue;
        } else {
            format!("no interface of this machine has {address} now; it answers once one has")
        };
        found.warnings.push(Problem::at_key(&["proxy"], what));
    }
}

/// Whether the address can reach beyond its link.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(a) => !a.is_loopback() && !a.is_link_local(),
        IpAddr::V6(a) => !a.is_loopback() && !a.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;
    use braid_api::config::Format;

    fn machine() -> Machine {
        let address = |i: &str, a: &str| (i.to_owned(), a.parse().unwrap());
        Machine {
            support: Support {
                kernel: "6.12.0".into(),
                compiled: true,
                enabled: true,
                path_managers: vec!["kernel".into()],
                schedulers: vec!["default".into()],
                scheduler: Some("default".into()),
                congestion_controls: vec!["reno".into(), "cubic".into()],
                default_congestion_control: "cubic".into(),
            },
            ebpf: true,
            interfaces: ["lo", "wwan0"].map(str::to_owned).into(),
            addresses: vec![
                address("lo", "::1"),
                address("wwan0", "10.64.0.2"),
                address("wwan0", "fe80::2"),
            ],
            unforwarded: vec!["net.ipv4.ip_forward"],
            has_user: |name| name == "backup",
        }
    }

    /// Errors and warnings of a file, with their places.
    fn found(text: &str, role: Role) -> (Vec<String>, Vec<String>) {
        let config = parse(text, Format::Toml, role);
        let config = config.map_err(|p| p.in_file("f".into(), text)).unwrap();
        let found = judge(&config, role, &machine());
        let told = |all: Vec<Problem>| {
            let one = |p: Problem| p.in_file("f".into(), text).to_string();
            all.into_iter().map(one).collect()
        };
        (told(found.errors), told(found.warnings))
    }

    const NR: &str = "[access.nr]\ninterface = \"wwan0\"\n";

    #[test]
    fn names_that_nobody_has_are_errors_and_others_warnings() {
        let of = |key: &str, name: &str| {
            found(
                &format!("[scheduler]\n{key} = \"{name}\"\n{NR}"),
                Role::Device,
            )
        };
        for (key, name) in [
            ("name", "wrr"),
            ("name", "default"),
            ("cc", "lia"),
            ("cc", "reno"),
        ] {
            assert_eq!(of(key, name), (vec![], vec![]), "{name}");
        }
        for (key, name) in [("name", "fifo"), ("cc", "foo")] {
            let (errors, warnings) = of(key, name);
            assert!(warnings.is_empty(), "{warnings:?}");
            assert!(
                errors[0].starts_with("f:2:1: ") && errors[0].contains(name),
                "{errors:?}"
            );
        }
        for (key, name) in [("name", "blest"), ("cc", "vegas")] {
            let (errors, warnings) = of(key, name);
            assert!(
                errors.is_empty() && warnings.len() == 1,
                "{errors:?} {warnings:?}"
            );
        }
    }

    #[test]
    fn a_proxy_that_no_access_reaches_is_told() {
        let of = |proxy: &str, more: &str| {
            found(&format!("proxy = \"{proxy}\"\n{NR}{more}"), Role::Device)
        };
        assert_eq!(of("203.0.113.7", ""), (vec![], vec![]));
        let (errors, warnings) = of("2001:db8::7", "");
        assert!(errors.is_empty(), "{errors:?}");
        assert!(
            warnings[0].starts_with("f:1:1: ") && warnings[0].contains("IPv6"),
            "{warnings:?}"
        );
        let (errors, _) = of("2001:db8::7", "address = \"10.64.0.2\"");
        assert!(
            errors[0].starts_with("f:1:1: ") && errors[0].contains("IPv6"),
            "{errors:?}"
        );
    }

    #[test]
    fn what_is_not_there_yet_is_a_warning() {
        let text = format!("{NR}[access.wifi]\ninterface = \"wlan*\"");
        let (errors, warnings) = found(&text, Role::Device);
        assert!(errors.is_empty(), "{errors:?}");
        assert!(
            warnings[0].starts_with("f:4:1: access \"wifi\""),
            "{warnings:?}"
        );
        let pin = format!("sha256/{}=", "A".repeat(43));
        let text = format!(
            "engine = \"mpquic\"\nproxy = \"203.0.113.7\"\n[mpquic]\npins = [\"{pin}\"]\n[lan]\ninterfaces = [\"wwan1\"]\n{NR}"
        );
        let (errors, warnings) = found(&text, Role::Device);
        assert!(
            errors.is_empty() && warnings.len() == 2,
            "{errors:?} {warnings:?}"
        );
        assert!(
            warnings[0].contains("no interface is called wwan1"),
            "{warnings:?}"
        );
        assert!(
            warnings[1].starts_with("f:5:")
                && warnings[1].contains("sysctl -w net.ipv4.ip_forward=1"),
            "{warnings:?}"
        );
        let rules = "[[rule]]\nuser = [\"backup\", 7]\nblock = true\n[[rule]]\nuser = \"bakup\"\nblock = true\n";
        let text = format!(
            "engine = \"mpquic\"\nproxy = \"203.0.113.7\"\ndefault = \"bond\"\n[mpquic]\npins = [\"{pin}\"]\n{NR}\n{rules}"
        );
        let (errors, warnings) = found(&text, Role::Device);
        assert!(
            errors.is_empty() && warnings.len() == 1,
            "{errors:?} {warnings:?}"
        );
        assert!(
            warnings[0].contains("no user is called bakup here"),
            "{warnings:?}"
        );
        for (address, word) in [
            ("0.0.0.0", "the routing chooses"),
            ("192.0.2.1", "has 192.0.2.1"),
        ] {
            let (errors, warnings) = found(&format!("proxy = \"{address}\""), Role::Proxy);
            assert!(
                errors.is_empty() && warnings[0].contains(word),
                "{warnings:?}"
            );
        }
        assert_eq!(
            found("proxy = \"10.64.0.2\"", Role::Proxy),
            (vec![], vec![])
        );
    }
}
