//! The policy `energy`: the radio that takes less carries, the other one rests until it is needed.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use braid_api::{AccessState, ControlStatus, Status};
use braid_netns::world::{SERVICE, World, fetch, service};

use crate::support::bulk::{Bulk, Way, limited};
use crate::support::daemon::Daemon;
use crate::support::quic::configs;
use crate::support::traffic::{DEVICE, PROXY, interface_bytes};

/// Configuration of a device beside its accesses: a reading every 200 ms, a hold of 1 s.
const ENERGY: &str = "[power]\ninterval = \"200 ms\"\n[control]\npolicy = \"energy\"\n\
                      [control.energy]\nhold = \"1 s\"\n";

/// Time for what the policy waits for, and for the host's pauses.
const SOON: Duration = Duration::from_secs(20);

/// Configuration with power models: Wi-Fi takes a fifth of what 5G takes.
fn modelled(text: &str) -> String {
    text.replace("[access.nr]", "[access.nr]\npower = \"nr.toml\"")
        .replace("[access.wifi]", "[access.wifi]\npower = \"wifi.toml\"")
        + ENERGY
}

fn models(folder: &Path) {
    for (name, base) in [("nr", 1500), ("wifi", 300)] {
        let text = format!(
            "name = \"{name}\"\n[affine]\nbase_mw = {base}\ndown_mw_per_mbps = 10\n\
             up_mw_per_mbps = 10\ntail_ms = 2000\ntail_mw = {base}\n"
        );
        std::fs::write(folder.join(format!("{name}.toml")), text).unwrap();
    }
}

/// Waits until these rest.
fn until(device: &Daemon, names: &[&str]) {
    let end = Instant::now() + SOON;
    loop {
        let control: ControlStatus = device.get("/v1/control");
        let resting = control.accesses.iter().filter(|a| a.rests);
        if resting.map(|a| a.name.as_str()).eq(names.iter().copied()) {
            return;
        }
        assert!(Instant::now() < end, "{names:?} do not rest: {control:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_radio_rests_until_it_is_needed() {
    let Some(w) = World::new(2) else { return };
    if !limited(&w, 2, 20) {
        println!("skipped: there is no tc");
        return;
    }
    let t = tempfile::tempdir().unwrap();
    models(t.path());
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", &modelled(DEVICE));
    device.uses("wifi");
    // A connection that does little: 5G is a backup, though nobody asked for one.
    let idle = Bulk::start(&w, service(81), Way::Idle);
    until(&device, &["nr"]);
    device.becomes("nr", AccessState::Backup);
    let status: Status = device.get("/v1/status");
    let nr = status.accesses.iter().find(|a| a.name == "nr").unwrap();
    assert!(!nr.backup, "{nr:?}");
    drop(idle);

    // One that takes all it gets has both, and none of it is undone by a request of a backup.
    let bulk = Bulk::start(&w, service(82), Way::Down);
    until(&device, &[]);
    device.becomes("nr", AccessState::Active);
    let both = |backup: &str| device.request("PUT", "/v1/accesses/nr", backup).0;
    assert!(both("{\"backup\": true}").contains("200"));
    device.becomes("nr", AccessState::Backup);
    assert!(both("{\"backup\": false}").contains("200"));
    until(&device, &[]);
    device.becomes("nr", AccessState::Active);
    drop(bulk);
    let idle = Bulk::start(&w, service(83), Way::Idle);
    until(&device, &["nr"]);
    device.becomes("nr", AccessState::Backup);

    // Wi-Fi dies: what rests carries at once.
    w.set_link(2, false);
    until(&device, &["wifi"]);
    device.becomes("nr", AccessState::Active);
    w.set_link(2, true);
    until(&device, &["nr"]);

    // Another policy lets nobody rest; without models there is none to go by.
    let plain = modelled(DEVICE).replace("\"energy\"", "\"static\"");
    assert_eq!(device.reload(&plain), None);
    until(&device, &[]);
    device.becomes("nr", AccessState::Active);
    let error = device
        .reload(&format!("{DEVICE}{ENERGY}"))
        .expect("refused");
    assert!(error.contains("give those that may rest power"), "{error}");
    drop(idle);
}

/// A radio that rests has no packet of Multipath QUIC until Wi-Fi dies.
#[test]
fn a_path_that_rests_is_left_alone_and_carries_when_the_other_dies() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    models(t.path());
    let (device, proxy) = configs(t.path(), "");
    let [device, proxy] = [device, proxy].map(|at| std::fs::read_to_string(at).unwrap());
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy);
    let device = Daemon::start(&w.device, t.path(), "up", &modelled(&device));
    until(&device, &["nr"]);
    device.becomes("nr", AccessState::Backup);
    device.uses("wifi");
    // Until what a session sends on each of its paths at first is over: names, statuses, probes of sizes.
    std::thread::sleep(Duration::from_secs(3));
    let before = interface_bytes(&w);
    std::thread::sleep(Duration::from_secs(6));
    let after = interface_bytes(&w);
    let [nr, wifi] = ["d1", "d2"].map(|name| after[name] - before[name]);
    // Three pings of either end and their answers on Wi-Fi; elsewhere what IPv6 says of neighbours.
    assert!(wifi > 300, "{wifi} bytes on wifi, {nr} on nr");
    assert!(nr < 300, "{nr} bytes on nr, {wifi} on wifi");

    let listener = w.proxy.run(|| TcpListener::bind((SERVICE, 5001)).unwrap());
    let _server = w.serve(listener);
    w.set_link(2, false);
    until(&device, &["wifi"]);
    let connect = || TcpStream::connect("127.0.0.1:5001").unwrap();
    let mut tcp = w.device.run(connect);
    fetch(&mut tcp, 1_000_000);
    let by_nr = interface_bytes(&w)["d1"] - after["d1"];
    assert!(by_nr > 1_000_000, "{by_nr}");
}
