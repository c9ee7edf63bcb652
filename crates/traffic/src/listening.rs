//! Whether a program has begun to listen, seen from outside: `/proc`.

use std::collections::HashSet;
use std::fs;

/// Whether a process of the group `group` has a listening TCP socket or a bound
/// UDP socket.
pub(super) fn group_listens(group: i32) -> bool {
    members(group).any(|pid| {
        let owned = sockets(pid);
        [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")]
            .iter()
            .any(|(table, state)| {
                // The table of the namespace that the process is in.
                fs::read_to_string(format!("/proc/{pid}/net/{table}"))
                    .is_ok_and(|text| inodes(&text, state).any(|i| owned.contains(&i)))
            })
    })
}

fn members(group: i32) -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |e| {
        let pid: i32 = e.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        (process_group(&stat)? == group).then_some(pid)
    })
}

/// The fifth field of `/proc/PID/stat`; the second, the name, may hold anything
/// and ends with the last parenthesis (proc(5)).
fn process_group(stat: &str) -> Option<i32> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(2)?.parse().ok()
}

/// Returns the inodes of the sockets that a process holds; none where this user may not see them.
pub fn sockets(pid: i32) -> HashSet<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))
        .into_iter()
        .flatten();
    entries
        .flatten()
        .filter_map(|e| {
            let target = fs::read_link(e.path()).ok()?;
            let inode = target.to_str()?.strip_prefix("socket:[")?;
            inode.strip_suffix(']')?.parse().ok()
        })
        .collect()
}

/// Numbers of the sockets of a table in `state`.
fn inodes<'a>(table: &'a str, state: &'a str) -> impl Iterator<Item = u64> + 'a {
    table.lines().skip(1).filter_map(move |line| {
        let mut fields = line.split_whitespace();
        let socket_state = fields.nth(3)?;
        let inode = fields.nth(5)?.parse().ok()?;
        (socket_state == state).then_some(inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_tables() {
        let text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            \x20  0: 0100007F:1389 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 41821 1 0000 100 0 0 10 0\n\
            \x20  1: 0100007F:A2F0 0100007F:1389 01 00000000:00000000 00:00000000 00000000     0        0 41900 1 0000 20 4 30 10 -1\n";
        assert_eq!(inodes(text, "0A").collect::<Vec<_>>(), [41821]);
        assert_eq!(inodes(text, "01").collect::<Vec<_>>(), [41900]);
        assert_eq!(process_group("7 (a) b (c) S 1 42 42 0 -1"), Some(42));
        assert_eq!(process_group("garbage"), None);
    }

    #[test]
    fn sees_a_listener_of_this_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let me = nix::unistd::getpid().as_raw();
        let stat = fs::read_to_string("/proc/self/stat").unwrap();
        let group = process_group(&stat).unwrap();
        assert_eq!(group, nix::unistd::getpgrp().as_raw());
        assert!(members(group).any(|pid| pid == me));
        assert!(group_listens(group));
        drop(listener);
    }
}
