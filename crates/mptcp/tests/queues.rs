//! Short queues in front of subflows.
#![cfg(feature = "bpf")]

mod world;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_mptcp::bpf;
use braid_mptcp::buffers::{self, TCP_RMEM, TCP_WMEM};
use braid_mptcp::diag::Diag;
use braid_mptcp::support::set_sysctl;
use world::mptcp::{connected, look, mesh};
use world::{World, ask, fetch};

/// More than a subflow of 100 Mbit/s may have waiting, and much less than it takes where
/// nothing bounds it.
const SHORT: u32 = 1 << 20;

/// The most that waited on one subflow of the proxy's while the device fetched 30 MB.
fn most_waiting(w: &World, port: u16) -> u32 {
    let (mut stream, server) = connected(w, port, "reno");
    let done = AtomicBool::new(false);
    let most = std::thread::scope(|s| {
        let watched = s.spawn(|| {
            w.proxy.run(|| {
                let (mut diag, mut most) = (Diag::open().unwrap(), 0);
                while !done.load(Ordering::Relaxed) {
                    let waiting = look(&mut diag).into_iter().flat_map(|c| c.subflows);
                    most = waiting.map(|s| s.notsent_bytes).fold(most, u32::max);
                    std::thread::sleep(Duration::from_millis(5));
                }
                most
            })
        });
        fetch(&mut stream, 30_000_000);
        done.store(true, Ordering::Relaxed);
        watched.join().unwrap()
    });
    ask(&mut stream, 0);
    server.join().unwrap();
    println!("{port}: {most} bytes");
    most
}

#[test]
fn little_waits_on_the_subflows_of_the_namespace_that_asked_for_it() {
    let Some(w) = World::new(2) else { return };
    if let Err(e) = bpf::can_bound_queues() {
        return println!("skipped: {e}");
    }
    if !w.limited(2) {
        return;
    }
    mesh(&w, 2);
    for ns in [&w.device, &w.proxy] {
        ns.run(|| {
            set_sysctl(buffers::RECEIVE, &buffers::write(TCP_RMEM)).unwrap();
            set_sysctl(buffers::SEND, &buffers::write(TCP_WMEM)).unwrap();
        });
    }
    let without = most_waiting(&w, 80);
    assert!(without > SHORT, "{without}");
    let of_another = w.device.run(|| bpf::bound_queues().unwrap());
    let without = most_waiting(&w, 81);
    assert!(without > SHORT, "{without}");
    let bound = w.proxy.run(|| bpf::bound_queues().unwrap());
    let with = most_waiting(&w, 82);
    assert!(with < SHORT, "{with}");
    drop((of_another, bound));
    let without = most_waiting(&w, 83);
    assert!(without > SHORT, "{without}");
}
