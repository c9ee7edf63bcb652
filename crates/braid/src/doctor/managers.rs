//! Detection of other network managers, which may undo what the daemon sets: NetworkManager its
//! endpoints (`connection.mptcp-flags`, NetworkManager.conf(5)), systemd-networkd its rules
//! and routes (`ManageForeign...`, networkd.conf(5)).

use std::fs;
use std::path::{Path, PathBuf};

use super::facts::Managers;

/// Configuration files and folders in the order in which they are read: files, then folders.
const NETWORK_MANAGER: [&str; 4] = [
    "/etc/NetworkManager/NetworkManager.conf",
    "/usr/lib/NetworkManager/conf.d",
    "/run/NetworkManager/conf.d",
    "/etc/NetworkManager/conf.d",
];
const NETWORKD: [&str; 5] = [
    "/etc/systemd/networkd.conf",
    "/usr/lib/systemd/networkd.conf.d",
    "/usr/local/lib/systemd/networkd.conf.d",
    "/run/systemd/networkd.conf.d",
    "/etc/systemd/networkd.conf.d",
];

pub(super) fn look() -> Managers {
    // As the kernel cuts names off.
    let of = |name, files: &[&str]| runs(name).then(|| texts(files));
    Managers {
        network_manager: of("NetworkManager", &NETWORK_MANAGER).map(|t| sets_endpoints(&t)),
        networkd: of("systemd-network", &NETWORKD).map(|t| removes_others(&t)),
    }
}

/// Whether a program of this name runs in our network namespace. Where that may not be seen,
/// it is taken for ours.
fn runs(name: &str) -> bool {
    let namespace = |process: &Path| fs::read_link(process.join("ns/net")).ok();
    let own = namespace(Path::new("/proc/self"));
    let is = |process: PathBuf| {
        fs::read_to_string(process.join("comm")).is_ok_and(|c| c.trim_end() == name)
            && namespace(&process).is_none_or(|n| Some(n) == own)
    };
    fs::read_dir("/proc").is_ok_and(|all| all.flatten().any(|p| is(p.path())))
}

/// The texts of these files and of those in these folders, the last one counting most.
fn texts(places: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for place in places.iter().map(Path::new) {
        let Ok(folder) = fs::read_dir(place) else {
            files.push(place.to_owned());
            continue;
        };
        let mut inside: Vec<_> = folder.flatten().map(|f| f.path()).collect();
        inside.retain(|f| f.extension().is_some_and(|e| e == "conf"));
        inside.sort();
        files.extend(inside);
    }
    files
        .iter()
        .filter_map(|f| fs::read_to_string(f).ok())
        .collect()
}

/// The last value of `key` in a section whose name begins like this.
fn value<'a>(texts: &'a [String], section: &str, key: &str) -> Option<&'a str> {
    let (mut found, mut within) = (None, false);
    for text in texts {
        for line in text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                within = name.starts_with(section);
            } else if let Some((k, v)) = line.split_once('=')
                && within
                && k.trim_end() == key
            {
                found = Some(v.trim());
            }
        }
    }
    found
}

/// `NM_MPTCP_FLAGS_DISABLED` is 1; without it endpoints are set, also where nothing is said.
pub(super) fn sets_endpoints(texts: &[String]) -> bool {
    let flags = value(texts, "connection", "connection.mptcp-flags");
    let number = flags.and_then(|f| match f.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => f.parse().ok(),
    });
    number.is_none_or(|n| n & 1 == 0)
}

/// Whether rules and routes of others go when an interface is set up anew.
pub(super) fn removes_others(texts: &[String]) -> bool {
    let kept = |key| {
        let is =
            |v: &str| ["0", "no", "n", "false", "f", "off"].contains(&&*v.to_ascii_lowercase());
        value(texts, "Network]", key).is_some_and(is)
    };
    !(kept("ManageForeignRoutingPolicyRules") && kept("ManageForeignRoutes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn network_manager_sets_endpoints_unless_it_is_told_not_to() {
        let sets = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|t| (*t).to_owned()).collect();
            sets_endpoints(&texts)
        };
        assert!(sets(&[]));
        assert!(sets(&["[main]\nplugins=keyfile\n"]));
        assert!(sets(&["[main]\nconnection.mptcp-flags=1\n"]));
        assert!(sets(&["[connection]\n#connection.mptcp-flags=1\n"]));
        assert!(sets(&["[connection]\nconnection.mptcp-flags=0x22\n"]));
        assert!(sets(&["[connection]\nconnection.mptcp-flags=none of it\n"]));
        for off in ["1", "0x1", " 1 "] {
            let text = format!("[main]\n[connection-braid]\nconnection.mptcp-flags = {off}\n");
            assert!(!sets(&[&text]), "{text}");
            assert!(sets(&[&text, "[connection]\nconnection.mptcp-flags=34\n"]));
        }
    }

    #[test]
    fn networkd_removes_what_is_not_its_own_unless_it_is_told_not_to() {
        let removes = |text: &str| removes_others(&[text.to_owned()]);
        let rules = "ManageForeignRoutingPolicyRules";
        assert!(removes(""));
        assert!(removes(&format!("[Network]\n{rules}=no\n")));
        assert!(removes(&format!(
            "[Network]\n{rules}=no\nManageForeignRoutes=yes\n"
        )));
        assert!(removes(&format!(
            "[DHCPv4]\n{rules}=no\nManageForeignRoutes=no\n"
        )));
        assert!(!removes(&format!(
            "[Network]\n{rules}=no\nManageForeignRoutes=False\n"
        )));
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(text in "(\\PC|[\n\\[\\]=])*") {
            sets_endpoints(std::slice::from_ref(&text));
            removes_others(&[text]);
        }
    }
}
