//! Braid's congestion controls, loaded into the running kernel.

use braid_mptcp::bpf::{self, CongestionControl};
use braid_mptcp::diag::Diag;
use braid_mptcp::socket;
use braid_mptcp::support::Support;
use braid_netns::world::mptcp::{connected, mesh, with_subflows};
use braid_netns::world::{World, ask, fetch, service};

/// Whether this machine can; the reason is printed where it cannot.
fn can_register() -> bool {
    match bpf::require() {
        Ok(()) => true,
        Err(e) => {
            println!("skipped: {e}");
            false
        }
    }
}

/// A name that no other run of these tests has.
fn name(algorithm: CongestionControl) -> String {
    format!("t{:x}_{}", std::process::id() & 0xffff, algorithm.name())
}

fn available(name: &str) -> bool {
    Support::detect()
        .congestion_controls
        .iter()
        .any(|c| c == name)
}

#[test]
fn each_is_there_until_dropped() {
    if !can_register() {
        return;
    }
    for algorithm in CongestionControl::ALL {
        let name = name(algorithm);
        let registered = bpf::register(algorithm, &name).unwrap();
        assert_eq!(registered.name(), name);
        assert!(available(&name), "{name}");
        let e = bpf::register(algorithm, &name).unwrap_err();
        assert_eq!(e.raw_os_error(), Some(libc::EEXIST), "{e}");
        assert!(e.to_string().contains(&name), "{e}");
        drop(registered);
        assert!(!available(&name), "{name}");
    }
}

#[test]
fn connections_over_three_accesses_run_on_each() {
    let Some(w) = World::new(3) else { return };
    if !can_register() {
        return;
    }
    mesh(&w, 3);
    for (port, algorithm) in (80..).zip(CongestionControl::ALL) {
        let name = format!("{}_2", name(algorithm));
        let registered = bpf::register(algorithm, &name).unwrap();
        let (mut stream, server) = connected(&w, port, name.as_str());
        let mut diag = w.proxy.run(|| Diag::open().unwrap());
        fetch(&mut stream, 1_000_000);
        with_subflows(&mut diag, 3);
        // Goes on for connections that have it.
        drop(registered);
        fetch(&mut stream, 40_000_000);
        let c = with_subflows(&mut diag, 3);
        for s in &c.subflows {
            assert_eq!(s.congestion_control, name);
            assert!((1..1 << 20).contains(&s.cwnd_segments), "{s:?}");
        }
        assert!(
            c.subflows
                .iter()
                .filter(|s| s.acked_bytes > 100_000)
                .count()
                >= 2,
            "{c:?}"
        );
        ask(&mut stream, 0);
        server.join().unwrap();
    }
}

/// The server's answer to a client of plain TCP.
#[test]
fn plain_tcp_can_have_them_too() {
    let Some(w) = World::new(1) else { return };
    if !can_register() {
        return;
    }
    for (port, algorithm) in (80..).zip(CongestionControl::ALL) {
        let name = format!("{}_3", name(algorithm));
        let _registered = bpf::register(algorithm, &name).unwrap();
        let listener = w
            .proxy
            .run(|| socket::listen(service(port), false, Some(&name)).unwrap());
        let server = w.serve(listener);
        let mut stream = w
            .device
            .run(|| socket::connect(None, service(port), false, Some(&name)).unwrap());
        fetch(&mut stream, 20_000_000);
        ask(&mut stream, 0);
        server.join().unwrap();
    }
}
