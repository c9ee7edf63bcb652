//! Connections over several accesses: subflows, facts, events, fallback.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use braid_api::Connection;
use braid_mptcp::diag::{Diag, TcpSocket};
use braid_mptcp::events::{Batch, Event, EventKind, EventSocket};
use braid_mptcp::mib::Counters;
use braid_mptcp::pm::{EndpointFlags, PathManager};
use braid_mptcp::socket::{self, OnTheWire};
use braid_mptcp::support;
use braid_netns::world::mptcp::{
    connected, connected_to, endpoints, endpoints_at, look, mesh, with_subflows,
};
use braid_netns::world::{SERVICE6, World, ask, device4, device6, eventually, fetch, service};

#[test]
fn a_full_mesh_of_three_accesses_has_three_subflows() {
    let Some(w) = World::new(3) else { return };
    mesh(&w, 3);
    let (mut stream, server) = connected(&w, 80, "reno");
    let mut at_device = w.device.run(|| Diag::open().unwrap());
    let mut at_proxy = w.proxy.run(|| Diag::open().unwrap());
    fetch(&mut stream, 4_000_000);
    for diag in [&mut at_device, &mut at_proxy] {
        let c = with_subflows(diag, 3);
        let mut names: Vec<_> = c.subflows.iter().filter_map(|s| s.access.clone()).collect();
        names.sort();
        assert_eq!(names, ["access1", "access2", "access3"]);
        assert!(c.token.is_some() && !c.fallback && c.inode != 0);
        for s in &c.subflows {
            assert_eq!(s.state, "established");
            // Set on the MPTCP socket before it was connected: joins have it too.
            assert_eq!(s.congestion_control, "reno");
            assert!(s.srtt_ms > 0.0 && s.cwnd_segments > 0 && s.mss_bytes > 1000);
            assert!(!s.stale && !s.backup_local && !s.backup_remote);
        }
    }
    let received: u64 = with_subflows(&mut at_device, 3)
        .subflows
        .iter()
        .map(|s| s.received_bytes)
        .sum();
    let sent: u64 = with_subflows(&mut at_proxy, 3)
        .subflows
        .iter()
        .map(|s| s.sent_bytes)
        .sum();
    assert!(
        received >= 4_000_000 && sent >= 4_000_000,
        "{received} {sent}"
    );

    // The socket itself tells the same.
    let full = socket::full_info(&stream).unwrap();
    assert_eq!(full.subflows.len(), 3);
    assert_eq!(full.mptcp.subflows, 2);
    assert_eq!(
        Some(full.mptcp.token),
        with_subflows(&mut at_device, 3).token
    );
    let mut locals: Vec<_> = full.subflows.iter().map(|s| s.local.ip()).collect();
    locals.sort();
    assert_eq!(locals, [device4(1), device4(2), device4(3)]);
    assert_eq!(socket::on_the_wire(&stream).unwrap(), OnTheWire::Mptcp);
    assert_eq!(socket::congestion_control(&stream).unwrap(), "reno");
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn a_backup_is_told_to_the_peer_and_a_deleted_endpoint_closes_its_subflow() {
    let Some(w) = World::new(2) else { return };
    let ids = mesh(&w, 2);
    let (mut stream, server) = connected(&w, 80, "cubic");
    fetch(&mut stream, 100_000);
    let mut at_device = w.device.run(|| Diag::open().unwrap());
    let mut at_proxy = w.proxy.run(|| Diag::open().unwrap());
    with_subflows(&mut at_device, 2);
    let mut pm = w.device.run(|| PathManager::open().unwrap());
    pm.set_backup(ids[1], true).unwrap();
    eventually("the backup flag at both ends", || {
        let of = |c: &Connection, ours: bool| {
            c.subflows.iter().any(|s| {
                s.access.as_deref() == Some("access2")
                    && if ours {
                        s.backup_local
                    } else {
                        s.backup_remote
                    }
            })
        };
        let (d, p) = (look(&mut at_device).pop()?, look(&mut at_proxy).pop()?);
        (of(&d, true) && of(&p, false)).then_some(())
    });
    // A backup carries nothing while another access lives.
    let before = with_subflows(&mut at_proxy, 2);
    fetch(&mut stream, 2_000_000);
    let after = with_subflows(&mut at_proxy, 2);
    let sent = |c: &Connection, k: &str| {
        c.subflows
            .iter()
            .filter(|s| s.access.as_deref() == Some(k))
            .map(|s| s.sent_bytes)
            .sum::<u64>()
    };
    assert_eq!(sent(&after, "access2"), sent(&before, "access2"));
    assert!(sent(&after, "access1") >= sent(&before, "access1") + 2_000_000);

    pm.delete(ids[1]).unwrap();
    let c = with_subflows(&mut at_device, 1);
    assert_eq!(c.subflows[0].access.as_deref(), Some("access1"));
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn a_connection_returns_to_an_access_whose_endpoint_is_added_again() {
    let Some(w) = World::new(2) else { return };
    let ids = endpoints(&w, 2, EndpointFlags::SUBFLOW);
    let (mut stream, server) = connected(&w, 80, "cubic");
    let mut at_device = w.device.run(|| Diag::open().unwrap());
    let mut pm = w.device.run(|| PathManager::open().unwrap());
    // The kernel joins further subflows once the first data has passed.
    fetch(&mut stream, 100_000);
    // Both the access that it began on, and the other.
    for (k, id) in (1..).zip(ids) {
        with_subflows(&mut at_device, 2);
        let endpoint = pm.get(id).unwrap().unwrap();
        pm.delete(id).unwrap();
        let left = with_subflows(&mut at_device, 1);
        assert_ne!(left.subflows[0].local.ip(), device4(k));
        fetch(&mut stream, 100_000);
        assert_eq!(pm.add(&endpoint).unwrap(), id);
    }
    with_subflows(&mut at_device, 2);
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn events_tell_the_life_of_a_connection() {
    let Some(w) = World::new(2) else { return };
    let ids = mesh(&w, 2);
    let mut events = w.device.run(|| EventSocket::open().unwrap());
    let (mut stream, server) = connected(&w, 80, "cubic");
    fetch(&mut stream, 100_000);
    let mut seen: Vec<Event> = Vec::new();
    let mut until = |kind: EventKind, seen: &mut Vec<Event>| {
        eventually(&format!("{kind:?}"), || {
            if let Batch::Events(more) = events.read().unwrap() {
                seen.extend(more);
            }
            seen.iter().find(|e| e.kind == kind).cloned()
        })
    };
    let joined = until(EventKind::SubflowEstablished, &mut seen);
    assert_eq!(joined.local.map(|a| a.ip()), Some(device4(2)));
    assert_eq!(joined.remote, Some(service(80)));
    assert_eq!(joined.ifindex, Some(w.ifindex(2)));
    assert_eq!(joined.backup, Some(false));
    w.device
        .run(|| PathManager::open().unwrap().delete(ids[1]).unwrap());
    let closed = until(EventKind::SubflowClosed, &mut seen);
    assert_eq!((closed.token, closed.local), (joined.token, joined.local));
    ask(&mut stream, 0);
    drop(stream);
    until(EventKind::Closed, &mut seen);
    let kinds: Vec<_> = seen.iter().map(|e| e.kind).collect();
    assert_eq!(kinds[..2], [EventKind::Created, EventKind::Established]);
    server.join().unwrap();
}

#[test]
fn a_subflow_that_an_event_tells_of_is_read_without_a_new_list() {
    const LISTED: Duration = Duration::from_secs(3600);
    let Some(w) = World::new(2) else { return };
    let first = |d: fn(u8) -> IpAddr, to: SocketAddr| {
        let ids = endpoints_at(&w, 2, d, EndpointFlags::SUBFLOW);
        let mut events = w.device.run(|| EventSocket::open().unwrap());
        let (mut stream, server) = connected_to(&w, to, "cubic");
        let mut diag = w.device.run(|| Diag::open().unwrap());
        let before = diag.subflows(LISTED).unwrap();
        assert_eq!(before.len(), 1, "{before:?}");
        // The kernel joins further subflows once the first data has passed.
        fetch(&mut stream, 100_000);
        let (local, remote, ifindex) = eventually("a subflow", || {
            let Batch::Events(all) = events.read().unwrap() else {
                return None;
            };
            let joined = |e: &&Event| e.kind == EventKind::SubflowEstablished;
            let e = all.iter().find(joined)?;
            Some((e.local?, e.remote?, e.ifindex))
        });
        assert_eq!(diag.subflows(LISTED).unwrap().len(), 1, "the list is old");
        diag.learn(local, remote, ifindex);
        let read = diag.subflows(LISTED).unwrap();
        let listed = diag.tcp().unwrap();
        assert_eq!((read.len(), listed.len()), (2, 2), "{read:?} {listed:?}");
        let named = |all: &[TcpSocket]| all.iter().map(|s| s.cookie).collect::<BTreeSet<_>>();
        assert_eq!(named(&read), named(&listed));
        assert_eq!(read[1].local, local);
        // The event may come after a list that has it.
        diag.learn(local, remote, ifindex);
        assert_eq!(named(&diag.subflows(LISTED).unwrap()), named(&listed));
        assert_eq!(diag.subflows(LISTED).unwrap().len(), 2, "each once");
        ask(&mut stream, 0);
        server.join().unwrap();
        let mut pm = w.device.run(|| PathManager::open().unwrap());
        ids.iter().for_each(|id| pm.delete(*id).unwrap());
        drop(stream);
        eventually("the end of its sockets", || {
            diag.tcp().unwrap().is_empty().then_some(())
        });
    };
    first(device4, service(80));
    first(device6, SocketAddr::new(SERVICE6.into(), 80));
}

#[test]
fn one_list_has_the_sockets_of_both_families() {
    let Some(w) = World::new(1) else { return };
    let of = |to: SocketAddr| {
        let listener = w.proxy.run(|| socket::listen(to, false, None).unwrap());
        let server = w.serve(listener);
        let stream = w
            .device
            .run(|| socket::connect(None, to, false, None).unwrap());
        (stream, server)
    };
    let all = [of(service(80)), of(SocketAddr::new(SERVICE6.into(), 81))];
    let mut diag = w.device.run(|| Diag::open().unwrap());
    let mut ends: Vec<_> = diag.tcp().unwrap().iter().map(|s| s.remote).collect();
    ends.sort();
    assert_eq!(ends, [service(80), SocketAddr::new(SERVICE6.into(), 81)]);
    for (mut stream, server) in all {
        ask(&mut stream, 0);
        server.join().unwrap();
    }
}

#[test]
fn a_peer_without_mptcp_is_a_fallback() {
    let Some(w) = World::new(1) else { return };
    let listener = w.proxy.run(|| {
        support::set_sysctl("net.mptcp.enabled", "0").unwrap();
        let refused = socket::listen(service(80), true, None).unwrap_err();
        assert!(refused.is_lacking(), "{refused}");
        assert!(
            refused
                .to_string()
                .contains("sysctl -w net.mptcp.enabled=1"),
            "{refused}"
        );
        socket::listen(service(80), false, None).unwrap()
    });
    let server = w.serve(listener);
    let before = w.device.run(|| Counters::read().unwrap());
    let mut stream = w
        .device
        .run(|| socket::connect(None, service(80), true, None).unwrap());
    fetch(&mut stream, 100_000);
    assert_eq!(socket::on_the_wire(&stream).unwrap(), OnTheWire::Fallback);
    let moved = w.device.run(|| Counters::read().unwrap()).since(&before);
    assert_eq!(moved.get("MPTcpExt.MPCapableFallbackSYNACK"), 1);
    let mut diag = w.device.run(|| Diag::open().unwrap());
    let all = look(&mut diag);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].fallback, "{all:?}");
    assert_eq!(all[0].subflows[0].access.as_deref(), Some("access1"));
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn plain_tcp_is_seen_as_such() {
    let Some(w) = World::new(1) else { return };
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    let server = w.serve(listener);
    let mut stream = w
        .device
        .run(|| socket::connect(None, service(80), false, Some("cubic")).unwrap());
    fetch(&mut stream, 100_000);
    assert!(socket::tcp_info(&stream).unwrap().rtt_us > 0);
    let mut diag = w.device.run(|| Diag::open().unwrap());
    let c = look(&mut diag).pop().unwrap();
    assert_eq!((c.token, c.fallback, c.subflows.len()), (None, false, 1));
    assert_eq!(c.subflows[0].congestion_control, "cubic");
    assert!(c.inode != 0);
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn an_unknown_congestion_control_is_refused_by_name() {
    let Some(w) = World::new(0) else { return };
    w.device.run(|| {
        let e = socket::listen("127.0.0.1:0".parse().unwrap(), true, Some("warp")).unwrap_err();
        assert!(e.is_misnamed(), "{e}");
        let e = e.to_string();
        assert!(e.contains("\"warp\"") && e.contains("reno"), "{e}");
    });
}

#[test]
fn known_subflows_are_looked_at_one_by_one() {
    const OLD: Duration = Duration::from_secs(3600);
    let Some(w) = World::new(2) else { return };
    mesh(&w, 2);
    let mut at_device = w.device.run(|| Diag::open().unwrap());
    let mut at_proxy = w.proxy.run(|| Diag::open().unwrap());
    assert_eq!(at_device.subflows(OLD).unwrap(), []);
    let (mut stream, server) = connected(&w, 80, "reno");
    fetch(&mut stream, 100_000);
    // The list from before has none of them.
    assert_eq!(at_device.subflows(OLD).unwrap(), []);
    at_device.forget();
    assert_ne!(at_device.subflows(OLD).unwrap(), []);
    for diag in [&mut at_device, &mut at_proxy] {
        with_subflows(diag, 2);
        let all = diag.tcp().unwrap();
        let ends = |all: &[TcpSocket]| -> Vec<_> {
            let subflows = all.iter().filter(|s| s.ulp.is_some());
            subflows.map(|s| (s.local, s.remote, s.ulp)).collect()
        };
        let known = diag.subflows(OLD).unwrap();
        assert_eq!((known.len(), ends(&known)), (2, ends(&all)));
        assert_eq!(ends(&diag.subflows(Duration::ZERO).unwrap()), ends(&all));
    }
    let moved = |diag: &mut Diag| -> u64 {
        let all = diag.subflows(OLD).unwrap();
        all.iter().map(|s| s.tcp.bytes_received).sum()
    };
    let before = moved(&mut at_device);
    fetch(&mut stream, 100_000);
    assert!(moved(&mut at_device) >= before + 100_000);
    // Those that are gone are left out, and the list goes on.
    ask(&mut stream, 0);
    drop(stream);
    server.join().unwrap();
    eventually("both subflows are gone", || {
        let left = at_device.subflows(OLD).unwrap();
        let live = left.iter().filter(|s| s.state == 1).count();
        (live == 0).then_some(())
    });
    assert!(at_device.tcp().is_ok());
}
