//! Kernels that now and then skip an eBPF hook and go on with any number instead of
//! its result: connections come through, with windows and rates that make sense.

use std::collections::BTreeMap;

use braid_api::Subflow;
use braid_mptcp::bpf::{self, CongestionControl, Skip, Wrr};
use braid_mptcp::diag::Diag;
use braid_netns::world::mptcp::{connected, look, mesh, shares, weights, with_subflows};
use braid_netns::world::{LIMIT, World, ask, eventually_within, fetch};

/// Far more often than any kernel was seen to.
const SKIP: Skip = Skip(3);

fn sane(s: &Subflow) -> bool {
    (1..=1 << 20).contains(&s.cwnd_segments)
        && s.ssthresh_segments
            .is_none_or(|t| (1..=1 << 20).contains(&t))
        && s.pacing_mbps.is_none_or(|r| r > 0.0)
}

/// Data while accesses fall silent and come back, so that every hook is called.
fn comes_through(w: &World, port: u16, name: &str) {
    let (mut stream, server) = connected(w, port, name);
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    fetch(&mut stream, 1_000_000);
    with_subflows(&mut diag, 3);
    for k in [2, 3, 1] {
        w.silence(k, true);
        // Longer than a retransmission timeout.
        let start = std::time::Instant::now();
        while start.elapsed().as_millis() < 500 {
            fetch(&mut stream, 500_000);
        }
        w.silence(k, false);
        let acked = |diag: &mut Diag| -> Vec<u64> {
            let all = look(diag);
            let subflows = all.iter().flat_map(|c| &c.subflows);
            subflows.map(|s| s.acked_bytes).collect()
        };
        let before = acked(&mut diag);
        // It tries again after as long as it was silent, at the latest.
        let most = start.elapsed() + LIMIT;
        eventually_within(
            most,
            "all subflows carry data, and show what makes sense",
            || {
                fetch(&mut stream, 3_000_000);
                let now = acked(&mut diag);
                let all = look(&mut diag);
                let mut subflows = all.iter().flat_map(|c| &c.subflows);
                let carry = before.len() == 3 && before.iter().zip(&now).all(|(b, n)| n > b);
                (carry && subflows.all(sane)).then_some(())
            },
        );
    }
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn shares_are_those_of_the_weights() {
    let Some(w) = World::new(3) else { return };
    if let Err(e) = bpf::require() {
        println!("skipped: {e}");
        return;
    }
    if !w.limited(3) {
        return;
    }
    mesh(&w, 3);
    let name = format!("s{:x}_share", std::process::id() & 0xffff);
    let mut wrr = Wrr::register_skipping(&name, "cubic", SKIP).unwrap();
    wrr.set_strict(true).unwrap();
    let rules = weights(&[(1, 1.0), (2, 2.0), (3, 3.0)]);
    wrr.set_weights(&rules, &BTreeMap::new()).unwrap();
    let (mut stream, server) = connected(&w, 80, wrr.name());
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

#[test]
fn connections_come_through() {
    let Some(w) = World::new(3) else { return };
    if let Err(e) = bpf::require() {
        println!("skipped: {e}");
        return;
    }
    mesh(&w, 3);
    for (port, algorithm) in (80..).zip(CongestionControl::ALL) {
        let name = format!("s{:x}_{}", std::process::id() & 0xffff, algorithm.name());
        let _registered = bpf::register_skipping(algorithm, &name, SKIP).unwrap();
        comes_through(&w, port, &name);
    }
    let name = format!("s{:x}_wrr", std::process::id() & 0xffff);
    let wrr = Wrr::register_skipping(&name, "cubic", SKIP).unwrap();
    comes_through(&w, 90, wrr.name());
}
