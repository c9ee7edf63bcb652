//! The counters of a network namespace (`/proc/net/netstat` and `/proc/net/snmp`)
//! and what they tell of MPTCP.
//!
//! Worth watching: `MPTcpExt.NoDSSInWindow` (data that came beyond the MPTCP-level
//! window and was dropped although TCP acknowledged it; the connection then
//! crawls), `MPTcpExt.MPTCPRetrans` (reinjections), `MPTcpExt.SubflowStale` and
//! `SubflowRecover`, `MPTcpExt.DSSNotMatching`, `MPTcpExt.MPCapableFallbackACK`
//! and `MPCapableFallbackSYNACK` (a peer or middlebox without MPTCP),
//! `TcpExt.TCPTimeouts`, `Tcp.RetransSegs`.

use std::collections::BTreeMap;

use crate::error::{Error, Result};

/// Values of all counters at one time, by the kernel's names
/// (`MPTcpExt.NoDSSInWindow`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters(BTreeMap<String, u64>);

impl Counters {
    /// Reads those of the calling thread's network namespace.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn read() -> Result<Self> {
        let mut all = BTreeMap::new();
        for file in ["netstat", "snmp"] {
            let path = format!("/proc/thread-self/net/{file}");
            let text =
                std::fs::read_to_string(&path).map_err(|e| Error::io(format!("read {path}"), e))?;
            parse(&text, &mut all);
        }
        Ok(Self(all))
    }

    /// The value of one; zero if this kernel does not have it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// How much each has grown since `earlier`; those that have not are left out.
    /// Values that are not counters (`Tcp.CurrEstab`) are left out when they fell.
    pub fn since(&self, earlier: &Self) -> Self {
        Self(
            self.0
                .iter()
                .filter_map(|(name, &now)| {
                    let grown = now.checked_sub(earlier.get(name)).filter(|&g| g > 0)?;
                    Some((name.clone(), grown))
                })
                .collect(),
        )
    }

    /// Returns the counters that are not zero, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0
            .iter()
            .filter(|(_, v)| **v != 0)
            .map(|(n, &v)| (n.as_str(), v))
    }
}

/// Pairs of lines: `Prefix: Name Name ...` and `Prefix: 1 2 ...`.
fn parse(text: &str, into: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((prefix, names)), Some((again, values))) =
            (names.split_once(':'), values.split_once(':'))
        else {
            continue;
        };
        if prefix != again {
            continue;
        }
        for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
            // Tcp.MaxConn is -1: not a counter.
            if let Ok(value) = value.parse() {
                into.insert(format!("{prefix}.{name}"), value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EARLY: &str = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n\
                         MPTcpExt: NoDSSInWindow MPTCPRetrans\nMPTcpExt: 1 0\n";
    const LATE: &str = "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 0 3\n\
                        MPTcpExt: NoDSSInWindow MPTCPRetrans\nMPTcpExt: 5 2\n\
                        Tcp: MaxConn CurrEstab\nTcp: -1 2\n";

    fn counters(text: &str) -> Counters {
        let mut c = Counters::default();
        parse(text, &mut c.0);
        c
    }

    #[test]
    fn deltas_name_what_moved() {
        let (early, late) = (counters(EARLY), counters(LATE));
        assert_eq!(late.get("MPTcpExt.NoDSSInWindow"), 5);
        assert_eq!(late.get("MPTcpExt.NotOfThisKernel"), 0);
        let delta = late.since(&early);
        let moved: Vec<_> = delta.iter().collect();
        assert_eq!(
            moved,
            [
                ("MPTcpExt.MPTCPRetrans", 2),
                ("MPTcpExt.NoDSSInWindow", 4),
                ("Tcp.CurrEstab", 2)
            ]
        );
    }

    proptest! {
        #[test]
        fn garbage_does_not_panic(s in "\\PC*") {
            counters(&s);
        }
    }
}
