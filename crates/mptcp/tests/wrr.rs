//! Weighted round robin on the kernel that runs here, by eBPF.
#![cfg(feature = "bpf")]

mod world;

use braid_mptcp::bpf::{self, Wrr};
use braid_mptcp::diag::Diag;
use braid_mptcp::weights::Rule;
use braid_mptcp::{socket, support};
use world::mptcp::{connected, mesh, with_subflows};
use world::{World, ask, device4, fetch, service};

fn registered(n: u32) -> Option<Wrr> {
    match bpf::require() {
        Ok(()) => Some(Wrr::register(&format!("w{:x}_{n}", std::process::id())).unwrap()),
        Err(e) => {
            println!("skipped: {e}");
            None
        }
    }
}

fn weights(of: &[(u8, f64)]) -> Vec<Rule> {
    let rule = |&(k, weight): &(u8, f64)| Rule {
        net: device4(k).into(),
        remote: true,
        weight,
    };
    of.iter().map(rule).collect()
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

/// As the default of a namespace it reaches sockets that it is not meant for.
#[test]
fn plain_tcp_keeps_what_the_namespace_had() {
    const DEFAULT: &str = "net.ipv4.tcp_congestion_control";
    let Some(w) = World::new(1) else { return };
    let registered = w.proxy.run(|| {
        support::set_sysctl(DEFAULT, "reno").unwrap();
        registered(2)
    });
    let Some(wrr) = registered else { return };
    w.proxy
        .run(|| support::set_sysctl(DEFAULT, wrr.name()).unwrap());
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    let listener = w
        .proxy
        .run(|| socket::listen(service(80), true, None).unwrap());
    let server = w.serve(listener);
    for (mptcp, expected) in [(false, "reno"), (true, wrr.name())] {
        let mut stream = w
            .device
            .run(|| socket::connect(None, service(80), mptcp, None).unwrap());
        fetch(&mut stream, 1_000_000);
        let mine = stream.local_addr().unwrap();
        let sockets = diag.tcp().unwrap();
        let far = sockets.iter().find(|s| s.remote == mine).unwrap();
        assert_eq!(far.congestion_control, expected);
        if mptcp {
            ask(&mut stream, 0);
        }
    }
    server.join().unwrap();
}
