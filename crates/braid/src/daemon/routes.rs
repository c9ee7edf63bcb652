//! The next hops that interfaces had, for the daemon that follows one that was killed: the
//! kernel drops the routes of an interface that is down. In a file beside the control socket.

use std::net::IpAddr;
use std::path::Path;

use braid_mptcp::manage::memory::{Hop, Memory, Remembered};
use serde::{Deserialize, Serialize};

use super::kept_file::KeptFile;

/// As it stands in the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    interface: String,
    v4: bool,
    table: Option<u32>,
    gateway: Option<IpAddr>,
    metric: u32,
}

impl From<&Remembered> for Line {
    fn from(r: &Remembered) -> Self {
        Self {
            interface: r.interface.clone(),
            v4: r.v4,
            table: r.table,
            gateway: r.hop.gateway,
            metric: r.hop.metric,
        }
    }
}

impl From<Line> for Remembered {
    fn from(l: Line) -> Self {
        Self {
            interface: l.interface,
            v4: l.v4,
            table: l.table,
            hop: Hop {
                gateway: l.gateway,
                metric: l.metric,
            },
        }
    }
}

/// The file, which goes when this is dropped.
pub(super) struct Routes {
    file: KeptFile,
    kept: Vec<Remembered>,
}

impl Routes {
    pub(super) fn beside(control: &Path) -> Self {
        let file = KeptFile::beside(control, ".routes", "by which gateways interfaces led out");
        Self { file, kept: vec![] }
    }

    /// What the daemon before had seen. Gateways are held against the interface's network
    /// before they are used, as all are.
    pub(super) fn recall(&self) -> Memory {
        let mut memory = Memory::default();
        let lines = self.file.read::<Vec<Line>>().unwrap_or_default();
        memory.recall(lines.into_iter().map(Remembered::from));
        memory
    }

    /// Keeps what is new.
    pub(super) fn keep(&mut self, memory: &Memory) {
        let now = memory.remembered();
        if now != self.kept {
            let lines: Vec<Line> = now.iter().map(Line::from).collect();
            self.file.write(&lines);
            self.kept = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn remembered() -> impl Strategy<Value = Remembered> {
        let hop = (any::<Option<IpAddr>>(), any::<u32>());
        ("[a-z]{1,15}", any::<bool>(), any::<Option<u32>>(), hop).prop_map(
            |(interface, v4, table, (gateway, metric))| Remembered {
                interface,
                v4,
                table,
                hop: Hop { gateway, metric },
            },
        )
    }

    proptest! {
        #[test]
        fn what_was_seen_is_found_again(all in prop::collection::vec(remembered(), 0..6)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            let mut memory = Memory::default();
            memory.recall(all);
            let mut routes = Routes::beside(&control);
            routes.keep(&memory);
            let again = Routes::beside(&control).recall();
            prop_assert_eq!(again.remembered(), memory.remembered());
            let fits = |r: &Remembered| r.hop.gateway.is_none_or(|g| g.is_ipv4() == r.v4);
            prop_assert!(again.remembered().iter().all(fits));
            drop(routes);
            prop_assert_eq!(std::fs::read_dir(t.path()).unwrap().count(), 0);
        }

        #[test]
        fn garbage_tells_nothing(text in prop::collection::vec(any::<u8>(), 0..200)) {
            let t = tempfile::tempdir().unwrap();
            let control = t.path().join("c.sock");
            std::fs::write(t.path().join("c.sock.routes"), text).unwrap();
            prop_assert_eq!(Routes::beside(&control).recall().remembered(), []);
        }
    }
}
