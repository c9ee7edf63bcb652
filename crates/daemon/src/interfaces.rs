//! Byte counters of interfaces, and the interfaces that serve an access.

use std::collections::{BTreeMap, BTreeSet};

use super::config::Access;
use super::daemon::Daemon;

/// Bytes that an interface has carried since the kernel made it, headers of its link included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceBytes {
    /// Index, which another interface of the same name does not have.
    pub(crate) index: u32,
    pub(crate) received: u64,
    pub(crate) sent: u64,
}

/// Reads the counters of all interfaces of this thread's network namespace.
pub(crate) fn counters() -> BTreeMap<String, InterfaceBytes> {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    let read = |line: &str| {
        let (name, numbers) = line.trim().split_once(':')?;
        let mut numbers = numbers.split_whitespace().map(str::parse::<u64>);
        let received = numbers.next()?.ok()?;
        let sent = numbers.nth(7)?.ok()?;
        let index = nix::net::if_::if_nametoindex(name).ok()?;
        let bytes = InterfaceBytes {
            index,
            received,
            sent,
        };
        Some((name.to_owned(), bytes))
    };
    text.lines().filter_map(read).collect()
}

/// Returns the interfaces that serve each of these accesses.
pub(crate) async fn serving(
    daemon: &Daemon,
    accesses: impl Iterator<Item = &Access>,
) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    for access in accesses {
        let mut names = BTreeSet::new();
        // One that is called in full serves no other: who serves a pattern, the engines know.
        if let Some(only) = access.interface.as_ref().filter(|i| i.is_name()) {
            names.insert(only.as_str().to_owned());
        } else {
            for engine in daemon.engines() {
                let sources = engine.sources(&access.name).await;
                names.extend(sources.into_iter().map(|(_, interface)| interface));
            }
        }
        all.insert(access.name.clone(), names);
    }
    all
}
