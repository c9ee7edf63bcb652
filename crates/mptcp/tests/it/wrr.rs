//! Weighted round robin on the kernel that runs here, by eBPF.

use std::net::SocketAddr;

use braid_mptcp::bpf::{self, Wrr};
use braid_mptcp::diag::Diag;
use braid_netns::world::mptcp::{
    MESH, connected, connected_to, endpoints_at, mesh, shares, weights, with_subflows,
};
use braid_netns::world::{SERVICE6, World, ask, device6, fetch};
use ipnet::IpNet;

fn registered(n: u32) -> Option<Wrr> {
    match bpf::require() {
        Ok(()) => Some(Wrr::register(&format!("w{:x}_{n}", std::process::id()), "cubic").unwrap()),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

#[test]
fn connections_carry_on_while_weights_change_and_go() {
    let Some(w) = World::new(3) else { return };
    let Some(mut wrr) = registered(1) else { return };
    mesh(&w, 3);
    let (mut stream, server) = connected(&w, 80, wrr.name());
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    let none = std::collections::BTreeMap::new();
    fetch(&mut stream, 1_000_000);
    with_subflows(&mut diag, 3);
    for strict in [true, false] {
        wrr.set_strict(strict).unwrap();
        for of in [[30.0, 100.0, 1.0], [1.0, 1.0, 1.0], [0.0, 2.5, 7.0]] {
            wrr.set_weights(&weights(&[(1, of[0]), (2, of[1]), (3, of[2])]), &none)
                .unwrap();
            fetch(&mut stream, 2_000_000);
        }
        wrr.set_weights(&[], &none).unwrap();
    }
    let name = wrr.name().to_owned();
    // Unloaded under live sockets: they keep it.
    drop(wrr);
    fetch(&mut stream, 2_000_000);
    for s in with_subflows(&mut diag, 3).subflows {
        assert_eq!(s.congestion_control, name);
        assert!((1..1 << 20).contains(&s.cwnd_segments), "{s:?}");
    }
    ask(&mut stream, 0);
    server.join().unwrap();
}

/// By the network that the peer is in, or its address.
#[test]
fn weights_go_by_ipv6_as_well() {
    let Some(w) = World::new(3) else { return };
    let Some(mut wrr) = registered(4) else { return };
    if !w.limited(3) {
        return;
    }
    endpoints_at(&w, 3, device6, MESH);
    wrr.set_strict(true).unwrap();
    let mut rules = weights(&[(1, 1.0), (2, 2.0), (3, 3.0)]);
    for (rule, k) in rules.iter_mut().zip(1..) {
        let length = if k == 2 { 128 } else { 64 };
        rule.net = IpNet::new(device6(k), length).unwrap();
    }
    let none = std::collections::BTreeMap::new();
    wrr.set_weights(&rules, &none).unwrap();
    let to = SocketAddr::new(SERVICE6.into(), 80);
    let (mut stream, server) = connected_to(&w, to, wrr.name());
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    fetch(&mut stream, 1_000_000);
    with_subflows(&mut diag, 3);
    fetch(&mut stream, 25_000_000);
    let got = shares(&mut stream, &mut diag, 50_000_000);
    let wanted = [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0];
    let near = got.iter().zip(wanted).all(|(g, w)| (g - w).abs() < 0.05);
    assert!(near, "{got:?}, not {wanted:?}");
    ask(&mut stream, 0);
    server.join().unwrap();
}

/// Two addresses of one access do not have twice its weight.
#[test]
fn subflows_of_one_access_divide_its_weight() {
    let Some(w) = World::new(3) else { return };
    let Some(mut wrr) = registered(3) else { return };
    if !w.limited(3) {
        return;
    }
    mesh(&w, 3);
    wrr.set_strict(true).unwrap();
    let (mut stream, server) = connected(&w, 80, wrr.name());
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    fetch(&mut stream, 1_000_000);
    with_subflows(&mut diag, 3);
    let none = std::collections::BTreeMap::new();
    let mut shares_of = |accesses: [u8; 3]| {
        let mut rules = weights(&[(1, 2.0), (2, 2.0), (3, 2.0)]);
        for (rule, access) in rules.iter_mut().zip(accesses) {
            rule.access = access;
        }
        wrr.set_weights(&rules, &none).unwrap();
        fetch(&mut stream, 25_000_000);
        shares(&mut stream, &mut diag, 50_000_000)
    };
    for (accesses, expected) in [([1, 1, 2], [0.25, 0.25, 0.5]), ([1, 2, 3], [1.0 / 3.0; 3])] {
        let got = shares_of(accesses);
        let near = got.iter().zip(expected).all(|(g, e)| (g - e).abs() < 0.05);
        assert!(near, "{accesses:?}: {got:?}, not {expected:?}");
    }
    ask(&mut stream, 0);
    server.join().unwrap();
}
