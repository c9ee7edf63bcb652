//! Peers hear which access is a backup, even where the packet that tells them is lost.

use std::process::Command;
use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, Traffic, carries, is_over};
use braid_api::AccessState;
use braid_netns::world::{World, device4, service};
use nix::sys::signal::Signal;

/// Words of `tc` for the device's interface of an access; false if it cannot.
fn tc(w: &World, words: &str) -> bool {
    let run = || Command::new("tc").args(words.split(' ')).status();
    w.device.run(|| run().is_ok_and(|s| s.success()))
}

fn begin(w: &World, folder: &std::path::Path) -> Daemon {
    let limits = braid_mptcp::pm::Limits::MAX;
    w.proxy
        .run(|| braid_mptcp::pm::PathManager::open()?.set_limits(limits))
        .unwrap();
    Daemon::start(&w.device, folder, "up", DEVICE)
}

fn end(w: &World, mut device: Daemon, traffic: Traffic) {
    traffic.stop();
    is_over(w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
}

fn backup(device: &Daemon, access: &str, is: bool) {
    let path = format!("/v1/accesses/{access}");
    let (head, said) = device.request("PUT", &path, &format!(r#"{{"backup": {is}}}"#));
    assert!(head.contains(" 200 "), "{head} {said}");
}

#[test]
fn what_was_lost_is_asked_again() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = begin(&w, t.path());
    let traffic = Traffic::start(&w, service(80));
    traffic.goes_on();
    // Nothing passes: all of what is queued is longer than a byte.
    if !tc(&w, "qdisc add dev d1 root bfifo limit 1") {
        println!("skipped: tc of iproute2 cannot drop");
        return end(&w, device, traffic);
    }
    backup(&device, "nr", true);
    std::thread::sleep(Duration::from_millis(20));
    assert!(tc(&w, "qdisc del dev d1 root"));
    carries(&device, &traffic, "wifi");
    // And so is an end of it.
    backup(&device, "nr", false);
    backup(&device, "wifi", true);
    carries(&device, &traffic, "nr");
    assert!(tc(&w, "qdisc add dev d2 root bfifo limit 1"));
    backup(&device, "wifi", false);
    std::thread::sleep(Duration::from_millis(20));
    assert!(tc(&w, "qdisc del dev d2 root"));
    backup(&device, "nr", true);
    carries(&device, &traffic, "wifi");
    end(&w, device, traffic);
}

#[test]
fn a_first_subflow_that_was_closed_is_no_obstacle() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = begin(&w, t.path());
    let traffic = Traffic::bound(&w, (device4(1), 0).into(), service(80));
    traffic.goes_on();
    w.set_link(1, false);
    device.becomes("nr", AccessState::Down);
    carries(&device, &traffic, "wifi");
    w.set_link(1, true);
    device.becomes("nr", AccessState::Active);
    backup(&device, "wifi", true);
    carries(&device, &traffic, "nr");
    backup(&device, "wifi", false);
    backup(&device, "nr", true);
    carries(&device, &traffic, "wifi");
    end(&w, device, traffic);
}
