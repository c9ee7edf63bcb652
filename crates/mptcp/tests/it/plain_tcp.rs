//! Plain TCP beside congestion controls of Braid's that are the default of a namespace: they
//! reach sockets that they are not meant for.

use braid_mptcp::bpf::{self, CongestionControl, Wrr};
use braid_mptcp::diag::Diag;
use braid_mptcp::{socket, support};
use braid_netns::world::{World, ask, fetch, service};

/// Congestion control that the namespace had, and that plain TCP is to have.
const BEFORE: &str = "reno";

fn keeps_what_it_had(w: &World, port: u16, name: &str) {
    w.proxy
        .run(|| support::set_sysctl(support::CONGESTION_CONTROL, name).unwrap());
    let mut diag = w.proxy.run(|| Diag::open().unwrap());
    let listener = w
        .proxy
        .run(|| socket::listen(service(port), true, None).unwrap());
    let server = w.serve(listener);
    for (mptcp, expected) in [(false, BEFORE), (true, name)] {
        let mut stream = w
            .device
            .run(|| socket::connect(None, service(port), mptcp, None).unwrap());
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
    w.proxy
        .run(|| support::set_sysctl(support::CONGESTION_CONTROL, BEFORE).unwrap());
}

#[test]
fn plain_tcp_keeps_what_the_namespace_had() {
    let Some(w) = World::new(1) else { return };
    if let Err(e) = bpf::can_register() {
        return println!("skipped: {e}");
    }
    let own = std::process::id();
    for (port, algorithm) in (81..).zip(CongestionControl::ALL) {
        let name = format!("{}_p{own:x}", algorithm.name());
        let _registered = bpf::NamespaceDefault::register(algorithm, &name, BEFORE).unwrap();
        keeps_what_it_had(&w, port, &name);
    }
    let wrr = Wrr::register(&format!("w{own:x}_p"), BEFORE).unwrap();
    keeps_what_it_had(&w, 80, wrr.name());
}
