//! Caps: an access whose month is used up is used otherwise, over restarts and reloads.

use nix::sys::signal::Signal;

use braid_api::config::CapLevel;
use braid_api::{AccessStatus, EventKind, Status};
use braid_netns::world::{World, eventually, service};

use crate::support::bulk::{Bulk, Way, limited};
use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY};

fn of(device: &Daemon, access: &str) -> AccessStatus {
    let status: Status = device.get("/v1/status");
    let mut all = status.accesses.into_iter();
    all.find(|a| a.name == access).expect("the access")
}

/// Sentences that were told of caps.
fn told(device: &Daemon) -> Vec<String> {
    let all: braid_api::Events = device.get("/v1/events");
    let told = all.events.into_iter().filter_map(|e| match e.what {
        EventKind::AccessCap { why } => Some(why),
        _ => None,
    });
    told.collect()
}

#[test]
fn an_access_whose_month_is_used_up_is_a_backup_until_it_ends() {
    let Some(w) = World::new(2) else { return };
    if !limited(&w, 2, 20) {
        println!("skipped: there is no tc");
        return;
    }
    let t = tempfile::tempdir().unwrap();
    let config = |monthly: &str, at: &str| {
        let ledger = t.path().join("usage.json");
        format!(
            "{DEVICE}[access.wifi.cap]\nmonthly = \"{monthly}\"\nnear_percent = 50\nat = \"{at}\"\n\
             [usage]\nledger = {ledger:?}\n"
        )
    };
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let mut device = Daemon::start(&w.device, t.path(), "up", &config("6 MB", "backup"));
    device.uses("wifi");
    let bulk = Bulk::start(&w, service(81), Way::Down);
    eventually("half of it is used", || {
        let cap = of(&device, "wifi").cap.expect("a cap");
        (cap.level >= CapLevel::Near && cap.used_bytes > 3_000_000).then_some(())
    });
    eventually("all of it is used", || {
        let wifi = of(&device, "wifi");
        let cap = wifi.cap.expect("a cap");
        assert_eq!(cap.monthly_bytes, 6_000_000);
        (wifi.backup && cap.level == CapLevel::Reached).then_some(())
    });
    bulk.moves(&device, &["nr"]);
    let told_of = told(&device);
    let last = told_of.last().expect("it is told");
    assert!(
        last.contains("6.0 MB of the month are used up: it is a backup until"),
        "{last}"
    );
    assert!(!of(&device, "nr").backup && of(&device, "nr").cap.is_none());
    drop(bulk);
    let used = |device: &Daemon| of(device, "wifi").cap.expect("a cap").used_bytes;
    let before = used(&device);

    // A daemon that begins anew has it from the ledger, also what flowed meanwhile.
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        device.end(signal);
        device = Daemon::start(&w.device, t.path(), "up", &config("6 MB", "backup"));
        eventually("it is a backup again", || {
            of(&device, "wifi").backup.then_some(())
        });
        assert!(used(&device) >= before, "{} and {before}", used(&device));
    }

    // A greater one lets it be used as configured, and one that is reached switches it off.
    assert_eq!(device.reload(&config("90 GB", "backup")), None);
    eventually("it is used again", || {
        let wifi = of(&device, "wifi");
        let below = wifi.cap.expect("a cap").level == CapLevel::Below;
        (!wifi.backup && wifi.enabled && below).then_some(())
    });
    assert_eq!(device.reload(&config("6 MB", "off")), None);
    eventually("it is off", || (!of(&device, "wifi").enabled).then_some(()));
    let (_, page) = device.request("GET", "/metrics", "");
    let line = "braid_access_cap_bytes{access=\"wifi\"} 6000000";
    assert!(page.lines().any(|l| l == line), "{page}");
    // Without a cap it is as configured.
    assert_eq!(device.reload(DEVICE), None);
    eventually("it is as configured", || {
        let wifi = of(&device, "wifi");
        (wifi.enabled && !wifi.backup && wifi.cap.is_none()).then_some(())
    });
    drop(proxy);
}
