//! More than one proxy: another takes over when the one in use does not answer.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use braid_api::{EventKind, Events, Status};
use braid_netns::world::lan::SERVER;
use braid_netns::world::{Ns, eventually};
use nix::sys::signal::Signal;

use crate::support::daemon::Daemon;
use crate::support::lan::{Ends, begin_own, origin};

/// Address of the second proxy.
const SECOND: &str = "10.77.0.2";

/// A second proxy beside the first, in the same namespace: it is told from it by its address alone.
fn second(e: &Ends) -> Daemon {
    e.w.proxy.run(|| {
        let add = ["addr", "add", "10.77.0.2/32", "dev", "lo"];
        let added = std::process::Command::new("ip").args(add).status();
        assert!(added.unwrap().success());
    });
    start_second(e)
}

fn start_second(e: &Ends) -> Daemon {
    let config = e.proxy_config().replace("10.77.0.1", SECOND);
    // Packets have one interface in a namespace: that of the first.
    let config = config.replace("[gateway]\n", "");
    let folder = e.t.path().join("second");
    std::fs::create_dir_all(&folder).unwrap();
    Daemon::start(&e.w.proxy, &folder, "proxy", &config)
}

fn goes(device: &Ns) -> Option<IpAddr> {
    origin(device, SERVER[0]).ok()
}

/// Returns which proxies have been turned to.
fn turned(device: &Daemon) -> Vec<IpAddr> {
    let events: Events = device.get("/v1/events");
    let to = events.events.into_iter().filter_map(|e| match e.what {
        EventKind::ProxyChanged { to } => to.first().copied(),
        _ => None,
    });
    to.collect()
}

#[test]
fn another_proxy_takes_over_within_two_seconds_and_back() {
    let keys = format!("fallback = \"{SECOND}\"\n");
    let Some(mut e) = begin_own(&keys, "") else {
        return;
    };
    let mut other = second(&e);
    let device = e.start();
    eventually("connections go over the first", || goes(&e.w.device));
    let [first, second] = ["10.77.0.1", SECOND].map(|a| a.parse::<IpAddr>().unwrap());

    let took = |end: &mut dyn FnMut(), device: &Ns| {
        end();
        let since = Instant::now();
        eventually("connections go over another", || goes(device));
        since.elapsed()
    };
    let to_second = took(
        &mut || assert_eq!(e.proxy.end(Signal::SIGKILL), None),
        &e.w.device,
    );
    assert_eq!(turned(&device), [second]);
    let status: Status = device.get("/v1/status");
    let note = format!("the proxy {SECOND} serves");
    assert!(
        status.notes.iter().any(|n| n.starts_with(&note)),
        "{:?}",
        status.notes
    );

    // The preferred one is back, and the other goes on until it does not answer.
    e.proxy = e.start_proxy();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(turned(&device), [second]);
    let to_first = took(
        &mut || assert_eq!(other.end(Signal::SIGKILL), None),
        &e.w.device,
    );
    assert_eq!(turned(&device), [second, first]);
    println!(
        "new connections: over the second after {to_second:?}, over the first after {to_first:?}"
    );
    for took in [to_second, to_first] {
        assert!(took < Duration::from_secs(4), "{took:?}");
    }
}

/// An outage of all accesses says nothing about a proxy, and its session goes on.
#[test]
fn an_outage_that_all_proxies_share_turns_nowhere() {
    let keys = format!("fallback = \"{SECOND}\"\n");
    let Some(e) = begin_own(&keys, "") else {
        return;
    };
    let _other = second(&e);
    let device = e.start();
    eventually("connections go over the first", || goes(&e.w.device));
    for k in [1, 2] {
        e.w.set_link(k, false);
    }
    std::thread::sleep(Duration::from_secs(3));
    for k in [1, 2] {
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
    }
    eventually("connections go on", || goes(&e.w.device));
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(turned(&device), Vec::<IpAddr>::new());
}
