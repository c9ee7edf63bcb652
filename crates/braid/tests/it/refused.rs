//! The kernel refuses what one access needs: that one is out and says why, the others serve,
//! and a request that needs it changes nothing.

use std::process::Command;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, addresses};
use braid_api::{AccessState, Status};
use braid_netns::world::{World, device4, eventually};
use nix::sys::signal::Signal;

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
    device.uses("wifi");
    eventually("the endpoint of wifi", || {
        (addresses(&w) == [device4(2)].into()).then_some(())
    });
    refused(&device.becomes("nr", AccessState::Ignored));
    ip(&w, &format!("route add {NETWORK}"));
    device.uses("nr");
    assert_eq!(addresses(&w), [device4(1), device4(2)].into());
}

#[test]
fn a_request_that_the_kernel_refuses_changes_nothing_and_is_not_kept() {
    let Some(w) = world() else { return };
    let t = tempfile::tempdir().unwrap();
    let mut device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let put = |device: &Daemon, enabled: bool| {
        let body = format!("{{\"enabled\": {enabled}}}");
        device.request("PUT", "/v1/accesses/nr", &body)
    };
    let (head, said) = put(&device, false);
    assert!(head.contains(" 200 "), "{head} {said}");
    ip(&w, &format!("route del {NETWORK}"));
    let (head, said) = put(&device, true);
    assert!(
        head.contains(" 500 ") && said.contains("access \\\"nr\\\": "),
        "{head} {said}"
    );
    refused(&said);
    let off = |device: &Daemon| {
        let s: Status = device.get("/v1/status");
        let nr = s.accesses.into_iter().find(|a| a.name == "nr").unwrap();
        assert!(!nr.enabled && nr.why.contains("switched off"), "{nr:?}");
        assert_eq!(addresses(&w), [device4(2)].into());
    };
    off(&device);
    // Nor does a next daemon go on with it.
    assert_eq!(device.end(Signal::SIGKILL), None);
    ip(&w, &format!("route add {NETWORK}"));
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    off(&device);
    let (head, said) = put(&device, true);
    assert!(head.contains(" 200 "), "{head} {said}");
    device.uses("nr");
}
