//! The kernel refuses what one access needs: that one is out and says why, the others serve.

#[path = "support/daemon.rs"]
mod daemon;
#[path = "support/traffic.rs"]
mod traffic;
#[path = "../../mptcp/tests/world/mod.rs"]
mod world;

use std::process::Command;

use braid_core::api::AccessState;
use daemon::Daemon;
use traffic::{DEVICE, addresses};
use world::{World, device4, eventually};

fn ip(w: &World, words: &str) {
    let done = w
        .device
        .run(|| Command::new("ip").args(words.split(' ')).status());
    assert!(done.is_ok_and(|s| s.success()), "ip {words}");
}

/// Two accesses; nobody routes for `nr`, so that the daemon has to.
fn world() -> Option<World> {
    let w = World::new(2)?;
    ip(&w, "rule del from 10.77.1.2");
    Some(w)
}

/// Without it the kernel takes no route by the gateway that is in this network.
const NETWORK: &str = "10.77.1.0/30 dev d1";

fn refused(why: &str) {
    let of = why.contains("the kernel refused to add the default route via 10.77.1.1");
    assert!(of && why.contains("unreachable"), "{why}");
}

#[test]
fn an_access_whose_route_is_refused_keeps_no_other_out() {
    let Some(w) = world() else { return };
    let t = tempfile::tempdir().unwrap();
    ip(&w, &format!("route del {NETWORK}"));
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    device.becomes("wifi", AccessState::Active);
    eventually("the endpoint of wifi", || {
        (addresses(&w) == [device4(2)].into()).then_some(())
    });
    refused(&device.becomes("nr", AccessState::Ignored));
    ip(&w, &format!("route add {NETWORK}"));
    device.becomes("nr", AccessState::Active);
    assert_eq!(addresses(&w), [device4(1), device4(2)].into());
}
