//! Caps: an access whose month is used up is used otherwise, over restarts and reloads.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use braid_api::config::CapLevel;
use braid_api::{AccessStatus, EventKind, Status};
use braid_netns::world::{SERVICE, World, eventually, eventually_within, service};

use crate::support::bulk::{Bulk, Way, limited};
use crate::support::daemon::Daemon;
use crate::support::quic::configs;
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

/// Sends as fast as it goes until the other end leaves.
fn pour(mut tcp: TcpStream) {
    while tcp.write_all(&[0; 1 << 16]).is_ok() {}
}

/// Reads until the other end leaves.
fn drain(mut tcp: TcpStream) {
    let mut bytes = vec![0; 1 << 16];
    while tcp.read(&mut bytes).is_ok_and(|n| n > 0) {}
}

/// Rates of both accesses down and up, Mbit/s, over two seconds.
fn rates(device: &Daemon) -> [[f64; 2]; 2] {
    let now = || {
        let at = Instant::now();
        let bytes = ["nr", "wifi"].map(|name| {
            let a = of(device, name);
            [a.received_bytes, a.sent_bytes]
        });
        (at, bytes)
    };
    let (begin, before) = now();
    std::thread::sleep(Duration::from_secs(2));
    let (end, after) = now();
    let mbps = |i: usize, way: usize| {
        let bytes = after[i][way] - before[i][way];
        bytes as f64 * 8.0 / (end - begin).as_secs_f64() / 1e6
    };
    [0, 1].map(|i| [mbps(i, 0), mbps(i, 1)])
}

/// Waits until the accesses carry these rates, Mbit/s, down and up.
fn carry(device: &Daemon, wanted: [[f64; 2]; 2]) {
    let mut last = [[0.0; 2]; 2];
    let pairs = |got: &[[f64; 2]; 2]| {
        let all = got.iter().flatten().zip(wanted.iter().flatten());
        all.map(|(got, wanted)| got / wanted).collect::<Vec<_>>()
    };
    eventually_within(
        Duration::from_secs(20),
        "the rates are those of the limits",
        || {
            last = rates(device);
            println!("{last:.2?} of {wanted:?}");
            // Acknowledgements of the other direction count as well.
            pairs(&last)
                .iter()
                .all(|part| (0.85..1.05).contains(part))
                .then_some(())
        },
    );
}

#[test]
fn accesses_carry_no_more_than_their_limits() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let (device, proxy) = configs(t.path(), "");
    let read = |path| std::fs::read_to_string(path).unwrap();
    let ledger = t.path().join("usage.json");
    let config = |limit: &str, cap: &str| {
        let text = read(&device).replace("[access.nr]", &format!("[access.nr]\n{limit}"));
        format!("{text}{cap}[usage]\nledger = {ledger:?}\n")
    };
    let limit = "limit = { down = \"20 Mbit/s\", up = \"8 Mbit/s\" }";
    let listeners = [5001, 5002].map(|port| {
        let at = (SERVICE, port);
        w.proxy.run(|| TcpListener::bind(at).unwrap())
    });
    let [down, up] = listeners;
    w.proxy
        .spawn(move || down.incoming().flatten().for_each(pour));
    w.proxy
        .spawn(move || up.incoming().flatten().for_each(drain));
    let forward = format!("{{ listen = \"127.0.0.1:5002\", to = \"{SERVICE}:5002\" }}, ");
    let config = |limit: &str, cap: &str| {
        config(limit, cap).replace("forward = [", &format!("forward = [{forward}"))
    };
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", &read(&proxy));
    let device = Daemon::start(&w.device, t.path(), "up", &config(limit, ""));
    device.uses("wifi");
    let (head, body) = device.request(
        "PUT",
        "/v1/accesses/wifi",
        r#"{"limit": {"down_bps": 10000000, "up_bps": 4000000}}"#,
    );
    assert!(head.contains(" 200 "), "{head} {body}");
    let open = |port| {
        w.device
            .run(|| TcpStream::connect(("127.0.0.1", port)).unwrap())
    };
    let (down, up) = (open(5001), open(5002));
    let both = [down.try_clone().unwrap(), up.try_clone().unwrap()];
    let threads = [
        std::thread::spawn(move || drain(down)),
        std::thread::spawn(move || pour(up)),
    ];
    carry(&device, [[20.0, 8.0], [10.0, 4.0]]);
    assert_eq!(
        of(&device, "nr").limit.down.map(|r| r.as_mbps()),
        Some(20.0)
    );

    // One that is too small to be any is refused, and changes nothing.
    let body = r#"{"limit": {"down_bps": 1}}"#;
    let (head, body) = device.request("PUT", "/v1/accesses/wifi", body);
    assert!(
        head.contains(" 400 ") && body.contains("1 kbit/s"),
        "{head} {body}"
    );
    assert_eq!(of(&device, "wifi").limit.up.map(|r| r.as_mbps()), Some(4.0));

    // A month that is used up slows an access down, and a greater cap lets it go on.
    let cap = |monthly: &str| {
        format!("[access.nr.cap]\nmonthly = \"{monthly}\"\nat = \"slow\"\nslow = \"2 Mbit/s\"\n")
    };
    let both_limits = |cap: &str| {
        let wifi = "limit = { down = \"10 Mbit/s\", up = \"4 Mbit/s\" }";
        config(limit, cap).replace("[access.wifi]", &format!("[access.wifi]\n{wifi}"))
    };
    assert_eq!(device.reload(&both_limits(&cap("1 MB"))), None);
    carry(&device, [[2.0, 2.0], [10.0, 4.0]]);
    let told_of = told(&device);
    let last = told_of.last().expect("it is told");
    assert!(
        last.contains("it carries 2 Mbit/s each way at most"),
        "{last}"
    );
    assert_eq!(device.reload(&both_limits(&cap("90 GB"))), None);
    carry(&device, [[20.0, 8.0], [10.0, 4.0]]);
    for tcp in both {
        let _ = tcp.shutdown(std::net::Shutdown::Both);
    }
    threads.into_iter().for_each(|t| t.join().unwrap());
}
