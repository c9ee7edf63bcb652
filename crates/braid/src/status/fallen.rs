//! Connections that began with MPTCP and are TCP now (RFC 8684 3.7): whose they are, and why.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::net::SocketAddr;

use braid_api::{Connection, Connections, FallbackAt};
use serde::Serialize;

use super::show::or_dash;
use crate::table::{Column, Tone};

/// One connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Fallen {
    local: Option<SocketAddr>,
    remote: Option<SocketAddr>,
    /// Access that it stays on.
    access: Option<String>,
    /// Name and number of the process that holds it, where this user may see that.
    process: Option<String>,
    /// When it fell back, where the daemon tells.
    at: Option<FallbackAt>,
    why: &'static str,
}

/// Returns them by the other end. `process` names the process that holds the socket of an inode.
pub(super) fn fallen(all: &Connections, process: &dyn Fn(u32) -> Option<String>) -> Vec<Fallen> {
    let one = |c: &Connection| {
        let first = c.subflows.first();
        Fallen {
            local: first.map(|s| s.local),
            remote: first.map(|s| s.remote),
            access: first.and_then(|s| s.access.clone()),
            process: process(c.inode),
            at: c.fallback_at,
            why: why(c.fallback_at),
        }
    };
    let mut all: Vec<_> = all
        .connections
        .iter()
        .filter(|c| c.fallback)
        .map(one)
        .collect();
    all.sort_by_key(|f| (f.remote, f.local));
    all
}

/// Likely cause, as far as the kernel tells.
const fn why(at: Option<FallbackAt>) -> &'static str {
    match at {
        Some(FallbackAt::Handshake) => {
            "the peer does not do MPTCP, or something on the way removes its options"
        }
        Some(FallbackAt::Transfer) => {
            "something on the way changes MPTCP's options or the data after the handshake"
        }
        Some(FallbackAt::Unasked) => {
            "the kernel leaves MPTCP out for now: packets with it were lost \
             (net.mptcp.blackhole_timeout)"
        }
        None => "not told",
    }
}

/// Returns the processes that hold the sockets of these connections, by inode, as far as this
/// user may see them: `iperf3 (4711)`.
pub(super) fn processes(all: &Connections) -> HashMap<u32, String> {
    let fell = all
        .connections
        .iter()
        .filter(|c| c.fallback && c.inode != 0);
    let wanted: HashSet<u64> = fell.map(|c| u64::from(c.inode)).collect();
    let mut found = HashMap::new();
    if wanted.is_empty() {
        return found;
    }
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<i32>().ok()) else {
            continue;
        };
        let held = braid_traffic::sockets(pid);
        for inode in held.intersection(&wanted) {
            let comm = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            if let Ok(inode) = u32::try_from(*inode) {
                // Of processes that share one, the first: it was there before the others.
                let named = || format!("{} ({pid})", comm.trim_end());
                found.entry(inode).or_insert_with(named);
            }
        }
    }
    found
}

/// The columns of their table.
pub(super) fn columns(all: &[Fallen]) -> Vec<Column> {
    let left = |title, f: &dyn Fn(&Fallen) -> String| {
        Column::left(title, all.iter().map(|c| (f(c), Tone::Plain)).collect())
    };
    vec![
        left("fell back", &|c| or_dash(c.remote.map(|r| r.to_string()))),
        left("access", &|c| or_dash(c.access.clone())),
        left("process", &|c| or_dash(c.process.clone())),
        left("likely cause", &|c| c.why.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use super::super::rates::tests::reading;
    use super::*;

    fn one(port: u16, at: Option<FallbackAt>, inode: u32) -> Connection {
        let mut all = reading(1.0, &[("nr", port, 0, 0, 0, 20.0)]);
        Connection {
            token: None,
            fallback: at.is_some(),
            fallback_at: at,
            inode,
            ..all.connections.remove(0)
        }
    }

    #[test]
    fn each_has_its_process_and_its_cause() {
        let all = Connections {
            connections: vec![
                one(9, Some(FallbackAt::Transfer), 8),
                one(1, Some(FallbackAt::Handshake), 7),
                one(2, None, 0),
            ],
            ..Connections::default()
        };
        let process = |inode| (inode == 7).then(|| "curl (42)".to_owned());
        let f = fallen(&all, &process);
        assert_eq!(f.len(), 2, "plain TCP fell from nowhere");
        assert_eq!(f[0].process.as_deref(), Some("curl (42)"));
        assert!(f[0].why.contains("does not do MPTCP"), "{:?}", f[0]);
        assert_eq!(
            (f[1].process.clone(), f[1].access.as_deref()),
            (None, Some("nr"))
        );
        assert!(f[1].why.contains("after the handshake"), "{:?}", f[1]);
    }

    #[test]
    fn the_process_that_holds_a_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let link = format!("/proc/self/fd/{}", stream.as_raw_fd());
        let link = fs::read_link(link).unwrap();
        let inode = link.to_str().unwrap().trim_start_matches("socket:[");
        let inode: u32 = inode.trim_end_matches(']').parse().unwrap();
        let all = Connections {
            connections: vec![one(1, Some(FallbackAt::Handshake), inode)],
            ..Connections::default()
        };
        let own = format!("({})", std::process::id());
        let found = processes(&all);
        assert!(found[&inode].ends_with(&own), "{found:?}");
    }
}
