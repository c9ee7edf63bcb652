//! Energy at a device: of radios by their power models, and of counters as Linux shows them.

use std::fs;
use std::path::Path;

use braid_api::{AccessEnergy, Status};
use braid_netns::world::{World, eventually, service};

use crate::support::bulk::{Bulk, Way, limited};
use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY};

/// A battery of a device that takes so many milliwatts.
fn battery(root: &Path, mw: u64) {
    let dir = root.join("class/power_supply/BAT0");
    fs::create_dir_all(&dir).unwrap();
    let power = format!("{}\n", mw * 1000);
    for (file, text) in [
        ("type", "Battery\n"),
        ("status", "Discharging\n"),
        ("power_now", &power),
    ] {
        fs::write(dir.join(file), text).unwrap();
    }
}

fn energy(device: &Daemon, access: &str) -> Option<AccessEnergy> {
    let status: Status = device.get("/v1/status");
    let mut all = status.accesses.into_iter();
    all.find(|a| a.name == access).expect("the access").energy
}

#[test]
fn radios_take_what_their_models_say_and_the_battery_is_read() {
    let Some(w) = World::new(2) else { return };
    if !limited(&w, 2, 20) {
        println!("skipped: there is no tc");
        return;
    }
    let t = tempfile::tempdir().unwrap();
    battery(t.path(), 2500);
    // 1 J for each MB and nothing else: the energy is what the interface carried.
    let own = "name = \"mine\"\n[paper002]\njoules_per_mb = 1\nin_use_mw = 0\n";
    fs::write(t.path().join("mine.toml"), own).unwrap();
    let config = |wifi: &str| {
        let root = t.path();
        DEVICE.replace(
            "[access.wifi]",
            &format!("[access.wifi]\npower = \"{wifi}\""),
        ) + &format!("[power]\ncounters = true\ninterval = \"100 ms\"\nroot = {root:?}\n")
    };
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", &config("mine.toml"));
    device.uses("wifi");
    let bulk = Bulk::start(&w, service(81), Way::Down);
    let wifi = eventually("the radio has taken 1 J", || {
        energy(&device, "wifi").filter(|e| e.joules > 1.0)
    });
    assert_eq!(wifi.set, "mine");
    assert!((wifi.active_joules - wifi.joules).abs() < 1e-9, "{wifi:?}");
    assert_eq!(energy(&device, "nr"), None);
    drop(bulk);

    battery(t.path(), 2600);
    eventually("the battery is read", || {
        let status: Status = device.get("/v1/status");
        let all = status.power.iter();
        let mut all = all.map(|c| (c.source.as_str(), c.power_mw));
        all.any(|c| c == ("power_supply/BAT0", Some(2600.0)))
            .then_some(())
    });
    let (_, page) = device.request("GET", "/metrics", "");
    let line = "braid_power_watts{rail=\"system\",source=\"power_supply/BAT0\"} 2.6";
    assert!(page.lines().any(|l| l == line), "{page}");
    let joules = "braid_access_energy_joules_total{access=\"wifi\",state=\"active\"} ";
    assert!(page.lines().any(|l| l.starts_with(joules)), "{page}");

    // Another model goes on with the energy so far; one that is wrong changes nothing.
    let before = energy(&device, "wifi").unwrap().joules;
    assert_eq!(device.reload(&config("paper002-wifi")), None);
    let after = eventually("it goes by the other set", || {
        energy(&device, "wifi").filter(|e| e.set == "paper002-wifi")
    });
    assert!(after.joules >= before, "{after:?} {before}");
    let why = device.reload(&config("paper002-wfi")).expect("refused");
    assert!(why.contains("did you mean \"paper002-wifi\"?"), "{why}");
    fs::write(t.path().join("mine.toml"), own.replace("= 1\n", "= -1\n")).unwrap();
    let why = device.reload(&config("mine.toml")).expect("refused");
    assert!(why.contains("joules_per_mb is -1: expected 0 to"), "{why}");
}
