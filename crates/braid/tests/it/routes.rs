//! Every form in which a network gives an interface its way out, and the rules of others.

use crate::support::traffic;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::support::daemon::Daemon;
use crate::support::traffic::bonds;
use braid_api::{AccessState, Status};
use braid_mptcp::diag::Diag;
use braid_netns::world::home::{asked, ip};
use braid_netns::world::{Ns, eventually, wire};
use nix::sys::signal::Signal;

fn a(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A device and a proxy with `n` wires and no addresses but the proxy's, or the reason why not.
fn ends(n: usize) -> Option<(Ns, Ns)> {
    let new = || Ns::new().map_err(|e| println!("skipped: {e}")).ok();
    let (device, proxy) = (new()?, new()?);
    if let Err(e) = device.run(braid_mptcp::support::Support::detect).require() {
        println!("skipped: {e}");
        return None;
    }
    for k in 1..=n {
        let (d, p) = (format!("d{k}"), format!("p{k}"));
        wire((&device, &d), (&proxy, &p));
        ip(&proxy, &[&format!("addr add fe80::{k}/64 dev {p} nodad")]);
    }
    ip(
        &proxy,
        &[
            "addr add 10.77.0.1/32 dev lo",
            "addr add 2001:db8:77::1/128 dev lo nodad",
        ],
    );
    // Of itself the kernel takes two subflows beside the first.
    ip(&proxy, &["mptcp limits set subflow 8"]);
    Some((device, proxy))
}

fn start(device: &Ns, folder: &Path, n: usize, more: &str) -> Daemon {
    let mut text = format!("proxy = [\"10.77.0.1\", \"2001:db8:77::1\"]\n{more}\n");
    for k in 1..=n {
        text += &format!("[access.a{k}]\ninterface = \"d{k}\"\n");
    }
    Daemon::start(device, folder, "up", &text)
}

fn lines(ns: &Ns, all: &[String]) {
    ip(ns, &all.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Interface `k` of both ends with addresses in a network of their own.
fn numbered(device: &Ns, proxy: &Ns, k: usize) {
    lines(
        device,
        &[
            format!("addr add 10.77.{k}.2/24 dev d{k}"),
            format!("addr add 2001:db8:{k}::2/64 dev d{k} nodad"),
        ],
    );
    lines(
        proxy,
        &[
            format!("addr add 10.77.{k}.1/24 dev p{k}"),
            format!("-6 route add 2001:db8:{k}::/64 dev p{k}"),
        ],
    );
}

fn note(daemon: &Daemon, access: &str) -> String {
    let s: Status = daemon.get("/v1/status");
    let mut all = s.accesses.into_iter();
    all.find(|x| x.name == access)
        .unwrap()
        .note
        .unwrap_or_default()
}

#[test]
fn every_form_of_a_route_carries_subflows_and_comes_back_with_its_interface() {
    let Some((device, proxy)) = ends(6) else {
        return;
    };
    let all: Vec<IpAddr> = (1..=6).map(|k| IpAddr::from([10, 77, k, 2])).collect();
    // A modem that leads to all the world without a gateway is one that answers for it.
    proxy.run(|| std::fs::write("/proc/sys/net/ipv4/conf/p2/proxy_arp", "1").unwrap());
    proxy.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap());
    for k in 1..=6 {
        lines(&proxy, &[format!("addr add 10.77.{k}.1/24 dev p{k}")]);
        let length = if [3, 4].contains(&k) { 32 } else { 24 };
        lines(
            &device,
            &[format!("addr add 10.77.{k}.2/{length} dev d{k}")],
        );
    }
    ip(
        &device,
        &[
            "route add default via 10.77.1.1 dev d1 metric 1",
            "route add default dev d2 scope link src 10.77.2.2 metric 2",
            "route add default via 10.77.3.1 dev d3 onlink metric 3",
            "route add 10.77.4.1 dev d4 scope link",
            "route add default via 10.77.4.1 dev d4 metric 4",
            "route add 10.77.0.0/28 via 10.77.5.1 dev d5 metric 5000",
            "route add 0.0.0.0/0 via inet6 fe80::6 dev d6 metric 6",
        ],
    );
    let t = tempfile::tempdir().unwrap();
    let mut daemon = start(&device, t.path(), 6, "");
    for k in 1..=6 {
        daemon.uses(&format!("a{k}"));
    }
    let to = |port| SocketAddr::new(a("10.77.0.1"), port);
    bonds((&device, &daemon), &proxy, to(5001), &all);
    // The kernel drops their routes, and nobody puts those of the main table back.
    for k in 1..=6 {
        ip(
            &device,
            &[&format!("link set d{k} down"), &format!("link set d{k} up")],
        );
    }
    for k in 1..=6 {
        daemon.uses(&format!("a{k}"));
        let way = asked(&device, &format!("route get 10.77.0.1 from 10.77.{k}.2"));
        assert!(way.contains(&format!("dev d{k}")), "{way}");
    }
    eventually("endpoints on all", || {
        let s: Status = daemon.get("/v1/status");
        s.accesses
            .iter()
            .all(|x| x.endpoint_id.is_some())
            .then_some(())
    });
    ip(
        &device,
        &["route add default via 10.77.1.1 dev d1 metric 1"],
    );
    bonds((&device, &daemon), &proxy, to(5002), &all);
    // What live connections need would stay.
    eventually("an end of all connections", || {
        let in_use = || Diag::open().unwrap().addresses_in_use().unwrap();
        device.run(in_use).is_empty().then_some(())
    });
    assert_eq!(daemon.end(Signal::SIGTERM), Some(0));
    let left = asked(&device, "-N route show table all") + &asked(&device, "-N rule");
    assert!(!left.contains("proto 77"), "{left}");
}

#[test]
fn default_routes_of_several_next_hops_serve_each_of_their_interfaces() {
    let Some((device, proxy)) = ends(2) else {
        return;
    };
    for k in 1..=2 {
        numbered(&device, &proxy, k);
    }
    ip(
        &device,
        &[
            "route add default nexthop via 10.77.1.1 dev d1 nexthop via 10.77.2.1 dev d2",
            // As systemd-networkd leaves it after two router advertisements.
            "-6 route add default proto ra metric 1024 nexthop via fe80::1 dev d1 \
             nexthop via fe80::2 dev d2",
        ],
    );
    let t = tempfile::tempdir().unwrap();
    let daemon = start(&device, t.path(), 2, "");
    let all = |f: fn(u16) -> String| [1, 2].map(|k| a(&f(k)));
    let four = all(|k| format!("10.77.{k}.2"));
    let six = all(|k| format!("2001:db8:{k}::2"));
    bonds(
        (&device, &daemon),
        &proxy,
        SocketAddr::new(a("10.77.0.1"), 5001),
        &four,
    );
    bonds(
        (&device, &daemon),
        &proxy,
        SocketAddr::new(a("2001:db8:77::1"), 5001),
        &six,
    );
}

#[test]
fn a_global_address_is_used_beside_a_local_one_and_the_next_where_it_leads_nowhere() {
    let Some((device, proxy)) = ends(2) else {
        return;
    };
    for k in 1..=2 {
        numbered(&device, &proxy, k);
        lines(
            &device,
            &[
                format!("addr add fd00:0:0:{k}::2/64 dev d{k} nodad"),
                format!("route add default via 10.77.{k}.1 dev d{k} metric {k}"),
                format!("-6 route add default via fe80::{k} dev d{k} proto ra metric 102{k}"),
            ],
        );
    }
    let t = tempfile::tempdir().unwrap();
    let daemon = start(&device, t.path(), 2, "");
    let at = |port| SocketAddr::new(a("2001:db8:77::1"), port);
    let global = [a("2001:db8:1::2"), a("2001:db8:2::2")];
    bonds((&device, &daemon), &proxy, at(5001), &global);
    // A prefix that the network announces and does not lead back to.
    ip(
        &proxy,
        &[
            "-6 route del 2001:db8:2::/64 dev p2",
            "-6 route add fd00:0:0:2::/64 dev p2",
            "-6 route add unreachable default",
        ],
    );
    let next = [a("2001:db8:1::2"), a("fd00:0:0:2::2")];
    ip(&device, &["link set d2 down", "link set d2 up"]);
    lines(
        &device,
        &[
            "addr add 2001:db8:2::2/64 dev d2 nodad".to_owned(),
            "addr add fd00:0:0:2::2/64 dev d2 nodad".to_owned(),
            "-6 route add default via fe80::2 dev d2 proto ra metric 1022".to_owned(),
            "route add default via 10.77.2.1 dev d2 metric 2".to_owned(),
        ],
    );
    bonds((&device, &daemon), &proxy, at(5002), &next);
}

#[test]
fn rules_of_others_are_respected_or_named() {
    let Some((device, proxy)) = ends(2) else {
        return;
    };
    for k in 1..=2 {
        numbered(&device, &proxy, k);
        lines(
            &device,
            &[format!(
                "route add default via 10.77.{k}.1 dev d{k} metric {k}"
            )],
        );
    }
    let t = tempfile::tempdir().unwrap();
    let daemon = start(&device, t.path(), 2, "");
    let four = [a("10.77.1.2"), a("10.77.2.2")];
    let to = |port| SocketAddr::new(a("10.77.0.1"), port);
    let leaves = |by: &str| {
        let way = asked(&device, "route get 10.77.0.1 from 10.77.2.2");
        assert!(way.contains(by), "{way}");
    };
    daemon.uses("a2");
    leaves("dev d2");
    for pref in [100, 7699, 7701] {
        let rule = format!("pref {pref} from 10.77.2.2 lookup main suppress_prefixlength 0");
        lines(&device, &[format!("rule add {rule}")]);
        bonds((&device, &daemon), &proxy, to(5001), &four);
        leaves("dev d2");
        daemon.uses("a2");
        assert_eq!(note(&daemon, "a2"), "");
        lines(&device, &[format!("rule del {rule}")]);
    }
    // Used by what is bound to it, and where the rest goes is said.
    ip(&device, &["rule add pref 100 from 10.77.2.2 lookup main"]);
    eventually("a note", || {
        note(&daemon, "a2").contains("lookup main").then_some(())
    });
    bonds((&device, &daemon), &proxy, to(5002), &four);
    ip(&device, &["rule del pref 100"]);
    eventually("no note", || note(&daemon, "a2").is_empty().then_some(()));
    leaves("dev d2");
    // A tunnel for everything.
    ip(
        &device,
        &[
            "link add ts0 type veth peer name ts1",
            "link set ts0 up",
            "route add default dev ts0 table 52",
            "rule add pref 5270 from all lookup 52",
        ],
    );
    for access in ["a1", "a2"] {
        eventually("a note", || {
            note(&daemon, access)
                .contains("5270: from all lookup 52")
                .then_some(())
        });
        assert!(daemon.state(access).0.is_used());
    }
    ip(&device, &["rule del pref 5270"]);
    // Sent elsewhere on purpose: not used, with the reason.
    ip(
        &device,
        &[
            "route add default via 10.77.1.1 dev d1 table 100",
            "rule add pref 100 from 10.77.2.2 lookup 100",
        ],
    );
    let why = daemon.becomes("a2", AccessState::NoAddress);
    assert!(
        why.contains("d1") && why.contains("100: from 10.77.2.2 lookup 100"),
        "{why}"
    );
    ip(&device, &["rule del pref 100"]);
    daemon.uses("a2");
    bonds((&device, &daemon), &proxy, to(5003), &four);
}

#[test]
fn a_network_of_its_own_serves_for_what_the_proxy_announces() {
    let Some((device, proxy)) = ends(3) else {
        return;
    };
    for k in 1..=3 {
        numbered(&device, &proxy, k);
        // Three networks that know nothing of each other.
        let strict = format!("/proc/sys/net/ipv4/conf/p{k}/arp_ignore");
        proxy.run(|| std::fs::write(strict, "1").unwrap());
    }
    let t = tempfile::tempdir().unwrap();
    let config = "proxy = \"10.77.1.1\"\nannounce = [\"10.77.2.1\", \"10.77.3.1\"]\n";
    let _proxy = Daemon::start(&proxy, t.path(), "proxy", config);
    let config = "proxy = \"10.77.1.1\"\nmanager = { mesh = \"full\" }\n\
                  [access.a1]\ninterface = \"d1\"\n[access.a2]\ninterface = \"d2\"\n\
                  [access.a3]\ninterface = \"d3\"\n";
    let daemon = Daemon::start(&device, t.path(), "up", config);
    let listener = proxy
        .run(|| braid_mptcp::socket::listen("0.0.0.0:5001".parse().unwrap(), true, None).unwrap());
    // It goes on listening: what joins at another address has to find somebody there.
    let server = proxy.spawn(move || (listener.accept().unwrap(), listener));
    let to = "10.77.1.1:5001".parse().unwrap();
    let mut s = device.run(|| braid_mptcp::socket::connect(None, to, true, None).unwrap());
    let ((mut peer, _), _listener) = server.join().unwrap();
    let all = [1, 2, 3].map(|k| IpAddr::from([10, 77, k, 2]));
    eventually("subflows in all three networks", || {
        use std::io::{Read, Write};
        s.write_all(&[0; 100]).unwrap();
        peer.read_exact(&mut [0; 100]).unwrap();
        peer.write_all(&[0; 100]).unwrap();
        s.read_exact(&mut [0; 100]).unwrap();
        let on: Vec<_> = traffic::subflows(&daemon)
            .iter()
            .map(SocketAddr::ip)
            .collect();
        all.iter().all(|x| on.contains(x)).then_some(())
    });
    for access in ["a2", "a3"] {
        let why = daemon.becomes(access, AccessState::Active);
        assert!(why.contains("announce"), "{why}");
    }
}
