//! A LAN behind the device: its hosts, which know of nothing, go over the bond or not at all.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
fn nothing_is_in_the_clear_when_a_daemon_is_killed() {
    kill_under_load(6);
}

/// As often as the bar of the bond has it.
#[test]
#[ignore = "five minutes: make soak"]
fn nothing_is_in_the_clear_when_daemons_are_killed_200_times() {
    kill_under_load(200);
}

/// Kills the device's daemon, and every third time the proxy's, at changing moments, under a host
/// that connects and sends all the time. Nothing of it is in the clear, what is open is reset, and new
/// connections go on once the daemon is back.
fn kill_under_load(times: u64) {
    // IPv6 in a class of its own, with its own listener and interface.
    let class = "[class.six]\nmode = \"redundant\"\n[[rule]]\nto = \"::/0\"\nclass = \"six\"\n";
    let Some(mut e) = begin(class) else { return };
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
    let mut longest = [Duration::ZERO; 2];
    for n in 0..times {
        let host = &e.lan.host;
        let mut open = host.run(|| TcpStream::connect((SERVER[0], PORT)).unwrap());
        open.set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        open.read_exact(&mut [0; 10]).unwrap();
        std::thread::sleep(Duration::from_millis(n * 53 % 17 * 20));
        let is_proxy = n % 3 == 2;
        if is_proxy {
            assert_eq!(e.proxy.end(Signal::SIGKILL), None);
            e.proxy = e.start_proxy();
        } else {
            assert_eq!(device.end(Signal::SIGKILL), None);
            e.is_cut_off();
            device = e.start();
        }
        let since = Instant::now();
        eventually("new connections go on", || {
            origin(&e.lan.host, SERVER[0]).ok()
        });
        let which = &mut longest[usize::from(is_proxy)];
        *which = since.elapsed().max(*which);
        // At rest that may be told with the next ping.
        let ended = open.read(&mut [0]).map_err(|e| e.kind());
        assert_eq!(ended, Err(ErrorKind::ConnectionReset), "{n}");
        e.bonded();
    }
    let [of_device, of_proxy] = longest;
    println!(
        "{times} kills: new connections after {of_device:?} at most, of the proxy {of_proxy:?}"
    );
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
