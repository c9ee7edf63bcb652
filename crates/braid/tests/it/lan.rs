//! A LAN behind the device: its hosts, which know of nothing, go over the bond or not at all.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_api::{AccessState, Status};
use braid_netns::world::eventually;
use braid_netns::world::lan::{HOST, LAN, SERVER};
use nix::sys::signal::Signal;

use crate::support::lan::{
    DNS, PORT, PROXY, begin, of_packets, of_packets_to, of_the_proxy, origin, twice,
};

#[test]
fn a_host_goes_over_the_bond_while_a_daemon_runs_and_nowhere_else() {
    let Some(e) = begin("") else { return };
    let mut device = e.start();
    e.bonded();
    let status: Status = device.get("/v1/status");
    let lan = status.lan.unwrap();
    assert_eq!((lan.interfaces, lan.kill_switch), (vec![LAN.into()], true));
    assert_eq!((lan.tunnel.len(), lan.no_packets), (2, None));

    // What the device asks of resolvers goes the same way; else it is itself.
    for (at, proxy) in SERVER.into_iter().zip(PROXY) {
        let of = |port| of_packets_to(&e.w.device, at, port).unwrap().to_string();
        assert_eq!(of(DNS), proxy);
        assert_ne!(of(PORT), proxy);
    }

    // One that is open goes on while each access dies in turn, and new ones begin at once.
    let mut open = e
        .lan
        .host
        .run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
    open.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut greeting = [0; 10];
    open.read_exact(&mut greeting).unwrap();
    assert_eq!(&greeting, b"45.11.0.1 ");
    for (k, name) in [(1, "nr"), (2, "wifi")] {
        e.w.set_link(k, false);
        open.write_all(b"still").unwrap();
        let mut echo = [0; 5];
        open.read_exact(&mut echo).unwrap();
        assert_eq!(&echo, b"still");
        e.bonded();
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
        device.becomes(name, AccessState::Active);
    }
    let (code, said) = e.down();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("stop it first"), "{said}");
    e.bonded();

    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    // With the session, whose connections cannot go on.
    let ended = open.read(&mut [0]).unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::ConnectionReset);
    e.is_cut_off();
    assert_eq!(e.in_the_clear(), 0);

    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the kill switch is taken back"), "{said}");
    let past: Vec<_> = e.origins().into_iter().map(Result::unwrap).collect();
    assert_eq!(past, twice(HOST));
    assert_ne!(e.in_the_clear(), 0, "what is counted is there");
    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("there is no kill switch"), "{said}");

    // Connections need no forwarding; packets do, and that is told.
    e.w.device.run(|| {
        for file in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"] {
            std::fs::write(format!("/proc/sys/net/{file}"), "0").unwrap();
        }
    });
    let device = e.start();
    eventually("connections go over the bond", || {
        let seen = origin(&e.lan.host, SERVER[0]).ok();
        seen.filter(|from| of_the_proxy().contains(from))
    });
    eventually("why packets do not is told", || {
        let lan = device.get::<Status>("/v1/status").lan.unwrap();
        let why = lan.no_packets.unwrap();
        why.contains("net.ipv4.ip_forward=1").then_some(())
    });
}

#[test]
fn nothing_is_in_the_clear_when_the_daemon_is_killed() {
    let Some(e) = begin("") else { return };
    // Host that connects all the time.
    let stop = Arc::new(AtomicBool::new(false));
    let mut device = e.start();
    e.bonded();
    let (lan, stopped) = (Arc::clone(&e.lan), Arc::clone(&stop));
    let busy = std::thread::spawn(move || {
        while !stopped.load(Ordering::Relaxed) {
            for at in SERVER {
                let seen = [origin(&lan.host, at), of_packets(&lan.host, at)];
                for from in seen.into_iter().flatten() {
                    assert!(of_the_proxy().contains(&from), "{from}");
                }
            }
        }
    });
    for after in [0, 3, 20, 70, 150] {
        std::thread::sleep(Duration::from_millis(after));
        assert_eq!(device.end(Signal::SIGKILL), None);
        e.is_cut_off();
        device = e.start();
        e.bonded();
    }
    stop.store(true, Ordering::Relaxed);
    busy.join().unwrap();
    assert_eq!(e.in_the_clear(), 0);
}

#[test]
fn without_a_kill_switch_a_host_leaves_as_the_routes_say() {
    let Some(e) = begin("kill_switch = false\n") else {
        return;
    };
    let mut device = e.start();
    e.bonded();
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    let past: Vec<_> = e.origins().into_iter().map(Result::unwrap).collect();
    assert_eq!(past, twice(HOST));
}
