//! Subflows that join again begin with a wider receive buffer than others.

use braid_mptcp::buffers::{RECEIVE, Wide};
use braid_mptcp::diag::Diag;
use braid_mptcp::pm::PathManager;
use braid_mptcp::support;
use braid_netns::world::mptcp::{connected, endpoints, with_subflows};
use braid_netns::world::{World, ask, device4, fetch};

#[test]
fn a_subflow_that_joins_meanwhile_is_wide() {
    let Some(w) = World::new(2) else { return };
    let sizes = "4096 200000 8000000";
    w.device
        .run(|| support::set_sysctl(RECEIVE, sizes).unwrap());
    let flags = braid_mptcp::pm::EndpointFlags::SUBFLOW;
    let ids = endpoints(&w, 2, flags);
    let (mut stream, server) = connected(&w, 80, "cubic");
    let mut diag = w.device.run(|| Diag::open().unwrap());
    fetch(&mut stream, 100_000);
    with_subflows(&mut diag, 2);
    // The second one again, at more than may be.
    let again = |initial: u32| {
        w.device.run(|| {
            let mut pm = PathManager::open().unwrap();
            let old = pm.endpoints().unwrap();
            let old = old.into_iter().find(|e| e.address == device4(2)).unwrap();
            pm.delete(old.id).unwrap();
            let wide = Wide::begin(initial);
            pm.add(&old).unwrap();
            drop(wide);
        });
    };
    for (initial, at_least) in [(9_000_000, 8_000_000), (100, 200_000)] {
        again(initial);
        fetch(&mut stream, 10_000);
        let c = with_subflows(&mut diag, 2);
        let of = |k: u8| c.subflows.iter().find(|s| s.local.ip() == device4(k));
        let widths = [1, 2].map(|k| of(k).unwrap().receive_buffer_bytes);
        assert!(widths[1] >= at_least && widths[0] < 8_000_000, "{widths:?}");
        assert!(initial > 200_000 || widths[1] < 8_000_000, "{widths:?}");
        let now = w.device.run(|| support::sysctl(RECEIVE)).unwrap();
        assert_eq!(now.split_whitespace().collect::<Vec<_>>().join(" "), sizes);
    }
    assert_eq!(ids.len(), 2);
    ask(&mut stream, 0);
    server.join().unwrap();
}
