//! Choice of the interface that serves each access, and why others serve none.

use braid_core::pattern::glob;

use super::settings::Settings;
use super::view::{Interface, MAIN_TABLE, View};

/// Verdict on an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Serves the access with this number.
    Serves(usize),
    /// Serves none, for this reason, though the access with this number, if one is
    /// given, asks for it.
    Out {
        /// The reason, which completes "NAME is not used: it ...".
        why: String,
        /// The access whose pattern stands for it.
        access: Option<usize>,
    },
}

/// Decides on every interface of `view`, in its order.
///
/// A name in full overrides the rules by kind and by name; a pattern does not;
/// the list `ignore` and loopbacks are never overridden. The first access that
/// stands for an interface has it.
pub fn choose(settings: &Settings, view: &View) -> Vec<Verdict> {
    view.interfaces
        .iter()
        .map(|i| {
            let access = settings
                .accesses
                .iter()
                .position(|a| a.interface.matches(&i.name));
            let named = access.is_some_and(|a| settings.accesses[a].interface.is_name());
            let why = always_out(settings, i).or_else(|| match named {
                true => None,
                false => out_by_rule(i, view),
            });
            match (access, why) {
                (Some(a), None) => Verdict::Serves(a),
                (access, Some(why)) => Verdict::Out { why, access },
                (None, None) => Verdict::Out {
                    why: "is not named by any access".into(),
                    access: None,
                },
            }
        })
        .collect()
}

fn always_out(settings: &Settings, i: &Interface) -> Option<String> {
    if i.loopback {
        return Some("is the loopback".into());
    }
    let listed = settings.ignore.iter().find(|p| p.matches(&i.name))?;
    Some(format!("is in the list `ignore` (\"{listed}\")"))
}

/// Names of interfaces that are no access, by what they are for.
const NAMES: [(&[&str], &str); 7] = [
    (
        &["clat*", "v4-*"],
        "is a CLAT: it carries IPv4 over another access",
    ),
    (
        &["ims*", "rmnet_ims*", "wwan*ims*"],
        "belongs to the operator's telephony (IMS)",
    ),
    (
        &["ap*", "swlan*", "softap*", "wlan*-ap"],
        "is a hotspot: it serves others",
    ),
    (
        &[
            "docker*", "virbr*", "br-*", "cni*", "flannel*", "cali*", "lxc*", "lxd*", "podman*",
        ],
        "leads to containers or virtual machines",
    ),
    (&["braid*"], "is Braid's own tunnel"),
    (
        &["tailscale*", "zt*", "ipsec*", "ppp-vpn*"],
        "is a tunnel over other accesses",
    ),
    (
        &["p2p-*", "awdl*"],
        "leads to devices nearby, not to the network",
    ),
];

/// Kinds of interfaces that are no access, as the kernel calls them.
const KINDS: [(&[&str], &str); 4] = [
    (
        &[
            "tun",
            "tap",
            "wireguard",
            "gre",
            "gretap",
            "ip6gre",
            "ip6gretap",
            "ipip",
            "ip6tnl",
            "sit",
            "vxlan",
            "geneve",
            "vti",
            "vti6",
            "xfrm",
            "gtp",
        ],
        "is a tunnel over other accesses",
    ),
    (&["dummy", "ifb", "nlmon", "vcan"], "leads nowhere"),
    (&["veth", "netkit"], "leads to a container"),
    (&["bridge"], "is a bridge: it serves others"),
];

fn out_by_rule(i: &Interface, view: &View) -> Option<String> {
    for (names, why) in NAMES {
        let stands = |n: &&&str| glob(n.as_bytes(), i.name.as_bytes());
        if names.iter().any(|n| stands(&n)) {
            return Some(why.into());
        }
    }
    for (kinds, why) in KINDS {
        if kinds.contains(&i.kind.as_str()) {
            return Some(why.into());
        }
    }
    if let Some(master) = i.master {
        let name = view.interface(master).map_or("another", |m| &m.name);
        return Some(format!("is a part of {name}"));
    }
    // A telephone that shares its access gives it a default route; one that is
    // served by us has none.
    let tethered = ["rndis*", "usb*"]
        .iter()
        .any(|n| glob(n.as_bytes(), i.name.as_bytes()));
    let leads = view
        .routes
        .iter()
        .any(|r| r.ifindex == i.index && r.table == MAIN_TABLE);
    if tethered && !leads && i.up {
        let why = "looks like tethering: no default route leads out by it, nor one to the proxy";
        return Some(why.into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::testing::{access, settings};
    use crate::view::{Route, everywhere};
    use proptest::prelude::*;

    fn interface(index: u32, name: &str, kind: &str) -> Interface {
        Interface {
            index,
            name: name.into(),
            up: true,
            carrier: true,
            kind: kind.into(),
            ..Interface::default()
        }
    }

    fn verdict(s: &Settings, i: Interface) -> Verdict {
        let view = View {
            interfaces: vec![i],
            ..View::default()
        };
        choose(s, &view).remove(0)
    }

    #[test]
    fn rules_hold_for_patterns_and_not_for_names() {
        let all = settings(vec![access("any", "*")]);
        for (name, kind, word) in [
            ("v4-wwan0", "", "CLAT"),
            ("rmnet_ims0", "", "IMS"),
            ("ap0", "", "hotspot"),
            ("docker0", "bridge", "containers"),
            ("veth12ab", "veth", "container"),
            ("wg0", "wireguard", "tunnel"),
            ("dummy0", "dummy", "nowhere"),
            ("rndis0", "", "tethering"),
            ("braid0", "tun", "own"),
        ] {
            let Verdict::Out { why, access } = verdict(&all, interface(1, name, kind)) else {
                panic!("{name} is used");
            };
            assert!(why.contains(word), "{name}: {why}");
            assert_eq!(access, Some(0));
            let by_name = settings(vec![access_named(name)]);
            assert_eq!(
                verdict(&by_name, interface(1, name, kind)),
                Verdict::Serves(0),
                "{name}"
            );
        }
        assert_eq!(verdict(&all, interface(1, "wwan0", "")), Verdict::Serves(0));
    }

    fn access_named(name: &str) -> crate::settings::AccessSpec {
        access("named", name)
    }

    #[test]
    fn a_telephone_that_shares_its_access_is_one() {
        let s = settings(vec![access("any", "*")]);
        let view = View {
            interfaces: vec![interface(4, "usb0", "")],
            routes: vec![Route::new(MAIN_TABLE, everywhere(true), 4)],
            ..View::default()
        };
        assert_eq!(choose(&s, &view), [Verdict::Serves(0)]);
    }

    #[test]
    fn the_list_and_the_loopback_stay_out_even_by_name() {
        let mut s = settings(vec![access("a", "eth0"), access("b", "lo")]);
        s.ignore = vec!["eth*".parse().unwrap()];
        let Verdict::Out { why, .. } = verdict(&s, interface(1, "eth0", "")) else {
            panic!("used")
        };
        assert!(why.contains("eth*"), "{why}");
        let lo = Interface {
            loopback: true,
            ..interface(1, "lo", "")
        };
        assert!(matches!(verdict(&s, lo), Verdict::Out { .. }));
    }

    proptest! {
        #[test]
        fn every_interface_gets_one_verdict(names in prop::collection::vec("[a-z]{1,4}[0-9]?", 0..12)) {
            let s = settings(vec![access("w", "w*"), access("all", "*")]);
            let interfaces: Vec<_> = (1..).zip(&names).map(|(i, n)| interface(i, n, "")).collect();
            let view = View { interfaces, ..View::default() };
            let v = choose(&s, &view);
            prop_assert_eq!(v.len(), names.len());
            for (v, n) in v.iter().zip(&names) {
                if n.starts_with('w') {
                    prop_assert_eq!(v, &Verdict::Serves(0));
                }
            }
        }
    }
}
