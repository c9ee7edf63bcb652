//! Short queues in front of subflows.

use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_mptcp::bpf::{self, Wrr};
use braid_mptcp::buffers::{self, TCP_RMEM, TCP_WMEM};
use braid_mptcp::diag::Diag;
use braid_mptcp::support::set_sysctl;
use braid_netns::world::mptcp::{connected, look, mesh};
use braid_netns::world::{World, ask, fetch};

/// More than a subflow of 100 Mbit/s may have waiting, and much less than it takes where
/// nothing bounds it.
const SHORT: u32 = 1 << 20;

/// The most that waits on one subflow of the proxy's while the device fetches 30 MB.
fn most_waiting(w: &World, stream: &mut TcpStream) -> u32 {
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
        fetch(stream, 30_000_000);
        done.store(true, Ordering::Relaxed);
        watched.join().unwrap()
    });
    println!("{most} bytes");
    most
}

/// Returns the maximum that waits on one subflow of a connection of its own.
fn most_waiting_anew(w: &World, port: u16) -> u32 {
    let (mut stream, server) = connected(w, port, "reno");
    let most = most_waiting(w, &mut stream);
    ask(&mut stream, 0);
    server.join().unwrap();
    most
}

/// With the buffers that Braid asks for.
fn much_may_wait(w: &World) {
    for ns in [&w.device, &w.proxy] {
        ns.run(|| {
            set_sysctl(buffers::RECEIVE, &buffers::write(TCP_RMEM)).unwrap();
            set_sysctl(buffers::SEND, &buffers::write(TCP_WMEM)).unwrap();
        });
    }
}

/// From the first byte on: a first path is alone until the others have joined.
#[test]
fn little_waits_on_a_subflow_whose_rate_is_set_by_weights() {
    let Some(w) = World::new(1) else { return };
    if let Err(e) = bpf::require() {
        return println!("skipped: {e}");
    }
    if !w.limited(1) {
        return;
    }
    mesh(&w, 1);
    much_may_wait(&w);
    let wrr = Wrr::register(&format!("w{:x}_q", std::process::id()), "cubic").unwrap();
    let (mut stream, server) = connected(&w, 80, wrr.name());
    let with = most_waiting(&w, &mut stream);
    assert!(with < SHORT, "{with}");
    ask(&mut stream, 0);
    server.join().unwrap();
}

#[test]
fn little_waits_on_the_subflows_of_the_namespace_that_asked_for_it() {
    let Some(w) = World::new(2) else { return };
    match bpf::can_bound_queues() {
        Err(e) if e.is_lacking() => return println!("skipped: {e}"),
        can => can.unwrap(),
    }
    if !w.limited(2) {
        return;
    }
    mesh(&w, 2);
    much_may_wait(&w);
    let without = most_waiting_anew(&w, 80);
    assert!(without > SHORT, "{without}");
    let of_another = w.device.run(|| bpf::bound_queues().unwrap());
    let without = most_waiting_anew(&w, 81);
    assert!(without > SHORT, "{without}");

    let bound = w.proxy.run(|| bpf::bound_queues().unwrap());
    let (mut stream, server) = connected(&w, 82, "reno");
    let with = most_waiting(&w, &mut stream);
    assert!(with < SHORT, "{with}");
    // What is open when that ends is let go, but not by the end of another namespace's.
    w.device.run(|| drop(of_another));
    let with = most_waiting(&w, &mut stream);
    assert!(with < SHORT, "{with}");
    w.proxy.run(|| drop(bound));
    let without = most_waiting(&w, &mut stream);
    assert!(without > SHORT, "{without}");
    ask(&mut stream, 0);
    server.join().unwrap();
    let without = most_waiting_anew(&w, 83);
    assert!(without > SHORT, "{without}");
}
