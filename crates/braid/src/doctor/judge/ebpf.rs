//! Rights, and what eBPF can do with them.

use braid_mptcp::capabilities;

use super::{Row, Verdict, lacks, ok, trial};
use crate::doctor::facts::{Facts, Orphans};

pub(super) const NET_ADMIN: (u32, &str) = (12, "CAP_NET_ADMIN");
const SYS_ADMIN: u32 = 21;
const BPF_RIGHTS: [(u32, &str); 3] = [(39, "CAP_BPF"), (38, "CAP_PERFMON"), NET_ADMIN];

/// Whether this process has the `wanted` rights, by number and name.
pub(super) fn rights(set: u64, what: &str, wanted: &[(u32, &str)]) -> Row {
    // CAP_SYS_ADMIN had the rights of CAP_BPF and CAP_PERFMON before they were split.
    let has = |bit: u32| {
        capabilities::has(set, bit) || bit != NET_ADMIN.0 && capabilities::has(set, SYS_ADMIN)
    };
    let names = |held: bool| -> Vec<&str> {
        let of = wanted.iter().filter(|(bit, _)| has(*bit) == held);
        of.map(|(_, name)| *name).collect()
    };
    if names(false).is_empty() {
        return ok(what, names(true).join(" "));
    }
    lacks(
        what,
        Verdict::Missing,
        format!("this process lacks {}", names(false).join(" ")),
        "the daemon does not start; what follows may be better for root",
        "run it as root: sudo braid doctor",
    )
}

const TYPES: &str = "types of the kernel (BTF)";
const MOUNT: &str = "eBPF file system";

/// One for each directory; none where there is nothing to say.
fn orphans(all: &Orphans) -> Vec<Row> {
    const WHAT: &str = "pins of killed daemons";
    let one = |(at, remedy): &(String, String)| {
        lacks(
            WHAT,
            Verdict::Weak,
            format!("{at}, whose network namespace is gone"),
            "a congestion control stays registered that nobody can go on with",
            remedy,
        )
    };
    match all {
        Orphans::Known(all) => all.iter().map(one).collect(),
        Orphans::Unknown(why) => vec![lacks(
            WHAT,
            Verdict::Weak,
            why,
            "they may hold congestion controls that nobody can go on with",
            "run it as root: sudo braid doctor",
        )],
    }
}

pub(super) fn rows(f: &Facts) -> Vec<Row> {
    let mut rights = rights(f.capabilities, "right to load eBPF", &BPF_RIGHTS);
    if rights.verdict != Verdict::Ok {
        rights.costs = "Braid works without weights and its own congestion controls".into();
    }
    let types = match f.btf {
        true => ok(TYPES, "/sys/kernel/btf/vmlinux"),
        false => lacks(
            TYPES,
            Verdict::Missing,
            "no /sys/kernel/btf/vmlinux",
            "no eBPF: neither weights nor congestion controls of Braid's",
            "install a kernel with CONFIG_DEBUG_INFO_BTF=y, as those of the distributions are",
        ),
    };
    let mount = match f.bpffs {
        true => ok(MOUNT, "mounted at /sys/fs/bpf"),
        false => lacks(
            MOUNT,
            Verdict::Weak,
            "not mounted at /sys/fs/bpf",
            "eBPF programs cannot outlive the process that loaded them",
            "mount -t bpf bpf /sys/fs/bpf",
        ),
    };
    let mut rows = vec![
        rights,
        types,
        trial(
            "eBPF congestion control",
            &f.struct_ops,
            "loaded for a trial (struct_ops)",
            "neither weights nor Braid's congestion controls (lia, olia, balia, wvegas, swing)",
        ),
        trial(
            "short queues of subflows",
            &f.queues,
            "attached for a trial (sockops)",
            "what an access that gets slow was given is late by seconds, and all waits for it",
        ),
        trial(
            "congestion control by cgroup",
            &f.sockops,
            "loaded for a trial (sockops)",
            "braid run --cgroup cannot set --cc; per connection and per namespace remain",
        ),
        trial(
            "MPTCP by cgroup",
            &f.fmod_ret,
            "attached for a trial (fmod_ret)",
            "braid run preloads a library, which does not reach static programs and services",
        ),
        trial(
            "cgroups of version 2",
            &f.cgroup,
            "mounted, groups can be made",
            "no MPTCP and no congestion control by cgroup",
        ),
        mount,
    ];
    rows.extend(orphans(&f.orphans));
    rows
}
