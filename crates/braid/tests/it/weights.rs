//! Weights that requests set at the device: all of a request or nothing, and of every one.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, endpoints};
use braid_api::{AccessState, Status, Weights};
use braid_mptcp::pm::EndpointFlags;
use braid_netns::world::{World, device4};

fn put(device: &Daemon, body: &str) -> Result<Weights, String> {
    let (head, answer) = device.request("PUT", "/v1/weights", body);
    match head.contains(" 200 ") {
        true => Ok(serde_json::from_str(&answer).unwrap()),
        false => Err(format!("{head}: {answer}")),
    }
}

/// A device on which weights are set, or why it cannot be.
fn weighed(w: &World, t: &tempfile::TempDir) -> Option<Daemon> {
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let done = put(&device, "{\"nr\": 1, \"wifi\": 1}");
    done.map_err(|why| println!("skipped: {why}")).ok()?;
    Some(device)
}

#[test]
fn requests_at_the_same_time_all_count() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let Some(device) = weighed(&w, &t) else {
        return;
    };
    for round in 2..60 {
        // To leave one out takes steps at the kernel, and so a while.
        let wifi = if round % 2 == 0 { 0 } else { round };
        std::thread::scope(|s| {
            s.spawn(|| put(&device, &format!("{{\"wifi\": {wifi}}}")).unwrap());
            s.spawn(|| put(&device, &format!("{{\"nr\": {round}}}")).unwrap());
        });
        let now = put(&device, "{}").unwrap().0;
        assert_eq!((now["nr"], now["wifi"]), (f64::from(round), wifi.into()));
    }
}

#[test]
fn one_access_keeps_a_weight_above_0() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let Some(device) = weighed(&w, &t) else {
        return;
    };
    put(&device, "{\"nr\": 0}").unwrap();
    for none in ["{\"wifi\": 0}", "{\"nr\": 0, \"wifi\": 0}"] {
        let e = put(&device, none).unwrap_err();
        assert!(e.contains(" 400 ") && e.contains("above 0"), "{e}");
    }
    let now = put(&device, "{}").unwrap().0;
    assert_eq!((now["nr"], now["wifi"]), (0.0, 1.0));
}

#[test]
fn an_access_that_is_refused_anyway_hinders_no_request() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let Some(device) = weighed(&w, &t) else {
        return;
    };
    let backup = || {
        let all = endpoints(&w);
        let nr = all.iter().find(|e| e.address == device4(1));
        nr.map(|e| e.flags.contains(EndpointFlags::BACKUP))
    };
    assert_eq!(backup(), Some(false));
    // Nothing leads to the gateway of the second one: so no default route can lead by it.
    for words in [
        "route del 10.77.2.0/30 dev d2",
        "rule del from 10.77.2.2 lookup 102",
    ] {
        let ip = || Command::new("ip").args(words.split(' ')).status();
        if !w.device.run(|| ip().is_ok_and(|s| s.success())) {
            return println!("skipped: ip of iproute2 cannot take away: {words}");
        }
    }
    let why = device.becomes("wifi", AccessState::Ignored);
    assert!(why.contains("default route"), "{why}");
    let now = put(&device, "{\"nr\": 0}").unwrap().0;
    assert_eq!((now["nr"], backup()), (0.0, Some(true)));
    put(&device, "{\"nr\": 2}").unwrap();
    assert_eq!(backup(), Some(false));
    device.uses("nr");
}

#[test]
fn the_state_is_told_while_the_kernel_checks_a_program() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let set = || {
        let begun = Instant::now();
        let answer = device.request("PUT", "/v1/scheduler", "{\"name\": \"wrr\"}");
        (answer, begun.elapsed())
    };
    let (((head, body), took), slowest) = std::thread::scope(|s| {
        let setting = s.spawn(set);
        let mut slowest = Duration::ZERO;
        while !setting.is_finished() {
            let begun = Instant::now();
            let _: Status = device.get("/v1/status");
            slowest = slowest.max(begun.elapsed());
            std::thread::sleep(Duration::from_millis(50));
        }
        (setting.join().unwrap(), slowest)
    });
    if head.contains(" 501 ") {
        return println!("skipped: {body}");
    }
    assert!(head.contains(" 200 "), "{head}: {body}");
    // Where a request waits for the program, one that came right after it takes as long.
    assert!(slowest < took / 2, "{slowest:?} of {took:?}");
}
