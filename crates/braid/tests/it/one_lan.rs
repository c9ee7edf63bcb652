//! Two interfaces of the device in one LAN, as Wi-Fi and Ethernet of one router: each carries
//! what is sent to its own addresses.

use std::net::{IpAddr, SocketAddr};

use crate::support::bulk::{Bulk, Way, command, limited, of_both_families, output};
use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY, interface_bytes, runs_on};
use braid_api::Status;
use braid_netns::world::{Ns, SERVICE6, World, eventually, service};
use nix::sys::signal::Signal;

/// The addresses of the device in the LAN, by access.
fn in_lan(v4: bool) -> [IpAddr; 2] {
    match v4 {
        true => [2, 3].map(|h| IpAddr::from([10, 77, 9, h])),
        false => [2, 3].map(|h| IpAddr::from([0xfd77, 0, 9, 0, 0, 0, 0, h])),
    }
}

/// A LAN of both accesses, 20 Mbit/s each, whose router is the proxy. It takes both addresses
/// for the second interface's, as it may where Linux answers for both on both.
fn lan() -> Option<World> {
    let w = World::new(2)?;
    if !limited(&w, 2, 20) {
        println!("skipped: there is no tc");
        return None;
    }
    let ip = |ns: &Ns, words: &str| assert!(command(ns, "ip", words), "ip {words}");
    ip(&w.proxy, "link add br0 type bridge");
    for k in [1, 2] {
        ip(&w.proxy, &format!("addr flush dev p{k}"));
        ip(&w.proxy, &format!("link set p{k} master br0"));
        ip(&w.device, &format!("addr flush dev d{k}"));
    }
    ip(&w.proxy, "link set br0 up");
    ip(&w.proxy, "addr add 10.77.9.1/24 dev br0");
    ip(&w.proxy, "addr add fd77:0:9::1/64 dev br0");
    for family in ["-4", "-6"] {
        while command(&w.device, "ip", &format!("{family} rule del pref 1000")) {}
    }
    for k in [1, 2] {
        let h = k + 1;
        ip(&w.device, &format!("addr add 10.77.9.{h}/24 dev d{k}"));
        ip(&w.device, &format!("addr add fd77:0:9::{h}/64 dev d{k}"));
        let route = format!("route replace default via 10.77.9.1 dev d{k} metric {k}");
        ip(&w.device, &route);
        let route = format!("-6 route replace default via fd77:0:9::1 dev d{k} metric {k}");
        ip(&w.device, &route);
    }
    let shown = output(&w.device, "ip", "-o link show d2");
    let mac = shown
        .split("link/ether ")
        .nth(1)
        .expect("a link-layer address");
    let mac = mac.split(' ').next().expect("one");
    for a in in_lan(true) {
        ip(
            &w.proxy,
            &format!("neigh replace {a} lladdr {mac} dev br0 nud reachable"),
        );
    }
    // The device knows its router already.
    for a in in_lan(true) {
        let words = format!("-c 1 -W 1 -I {a} 10.77.9.1");
        command(&w.device, "ping", &words);
    }
    Some(w)
}

fn conf(w: &World, k: u8) -> [String; 2] {
    ["arp_ignore", "arp_announce"].map(|s| {
        let path = format!("/proc/sys/net/ipv4/conf/d{k}/{s}");
        let read = || std::fs::read_to_string(&path).unwrap();
        w.device.run(read).trim().to_owned()
    })
}

#[test]
fn each_interface_receives_what_is_sent_to_its_addresses() {
    let Some(w) = lan() else { return };
    let t = tempfile::tempdir().unwrap();
    let (device, proxy) = of_both_families(DEVICE, PROXY);
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy);
    let mut device = Daemon::start(&w.device, t.path(), "up", &device);
    for (v4, port) in [(true, 81), (false, 82)] {
        let to = match v4 {
            true => service(port),
            false => SocketAddr::new(SERVICE6.into(), port),
        };
        let bulk = Bulk::start(&w, to, Way::Down);
        runs_on(&device, &in_lan(v4));
        bulk.moves(&device, &["nr", "wifi"]);
        eventually("both interfaces receive", || {
            let before = interface_bytes(&w);
            std::thread::sleep(std::time::Duration::from_millis(500));
            let after = interface_bytes(&w);
            let grew = |n: &str| after[n] - before[n];
            let (one, two) = (grew("d1"), grew("d2"));
            (one > 250_000 && two > 250_000).then_some(())
        });
    }
    let s: Status = device.get("/v1/status");
    for a in &s.accesses {
        assert_eq!(a.note, None, "{}", a.name);
    }
    assert_eq!([conf(&w, 1), conf(&w, 2)], [["1", "2"], ["1", "2"]]);
    device.end(Signal::SIGKILL);
    let mut next = Daemon::start(&w.device, t.path(), "up", DEVICE);
    next.end(Signal::SIGINT);
    assert_eq!([conf(&w, 1), conf(&w, 2)], [["0", "0"], ["0", "0"]]);
}

#[test]
fn what_arrives_on_the_other_interface_is_told() {
    let Some(w) = lan() else { return };
    // A router that is told where the device is by somebody else.
    let shown = output(&w.proxy, "ip", "neigh show dev br0");
    for a in in_lan(true) {
        let line = shown.lines().find(|l| l.starts_with(&format!("{a} ")));
        let mac = line
            .and_then(|l| l.split("lladdr ").nth(1))
            .expect("a neighbour");
        let mac = mac.split(' ').next().expect("one");
        let words = format!("neigh replace {a} lladdr {mac} dev br0 nud permanent");
        assert!(command(&w.proxy, "ip", &words));
    }
    let t = tempfile::tempdir().unwrap();
    let _proxy = Daemon::start(&w.proxy, t.path(), "proxy", PROXY);
    let device = Daemon::start(&w.device, t.path(), "up", DEVICE);
    let bulk = Bulk::start(&w, service(81), Way::Down);
    bulk.moves(&device, &["nr", "wifi"]);
    eventually("the note", || {
        let s: Status = device.get("/v1/status");
        let note = s.accesses[0].note.clone()?;
        note.contains("arrives on d2, not on d1").then_some(())
    });
}
