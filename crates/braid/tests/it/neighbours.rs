//! The networks of a device are reached as before while its accesses serve.

use std::net::{IpAddr, SocketAddr};

use crate::support::daemon::Daemon;
use crate::support::traffic::bonds;
use braid_netns::world::home::{Home, asked, ip, reaches, serve};
use braid_netns::world::{Ns, eventually};
use nix::sys::signal::Signal;

const DEVICE: &str = r#"proxy = ["10.77.0.1", "fd77::1"]
[access.wifi]
interface = "wlan0"
[access.nr]
interface = "d2"
"#;

/// A way between two hosts, and where it comes from, if that is bound.
type Path<'a> = (&'static str, &'a Ns, Option<IpAddr>, SocketAddr);

fn a(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Every way that has nothing to do with the accesses, of both families.
fn paths(h: &Home) -> Vec<Path<'_>> {
    let mut all: Vec<Path<'_>> = vec![];
    for [mine, computer, static_route, own, behind, tunnel] in [
        [
            "192.168.1.5",
            "192.168.1.20",
            "10.99.0.9",
            "192.168.100.1",
            "192.168.100.10",
            "10.8.0.1",
        ],
        [
            "fd01::5", "fd01::20", "fd99::9", "fd64::1", "fd64::10", "fd08::1",
        ],
    ] {
        let device = serve(&h.device, a(mine));
        let at_computer = serve(&h.computer, a(computer));
        let from = Some(a(mine));
        all.extend([
            ("the computer to the device", &h.computer, None, device),
            ("the device to the computer", &h.device, None, at_computer),
            ("its address to the computer", &h.device, from, at_computer),
            (
                "by the static route",
                &h.device,
                from,
                serve(&h.computer, a(static_route)),
            ),
            ("the tunnel to the device", &h.tunnel, None, device),
            (
                "the device by the tunnel",
                &h.device,
                from,
                serve(&h.tunnel, a(tunnel)),
            ),
            ("from behind to the address", &h.behind, None, device),
            (
                "from behind to the other",
                &h.behind,
                None,
                serve(&h.device, a(own)),
            ),
            (
                "the address to behind",
                &h.device,
                from,
                serve(&h.behind, a(behind)),
            ),
            ("forwarded to the computer", &h.behind, None, at_computer),
            (
                "forwarded from the computer",
                &h.computer,
                None,
                serve(&h.behind, a(behind)),
            ),
        ]);
    }
    all
}

fn all_work(paths: &[Path<'_>], when: &str) {
    for (what, ns, from, to) in paths {
        assert!(reaches(ns, *from, *to), "{when}: {what}, {from:?} to {to}");
    }
}

/// Each access leaves by itself, to the proxy and to the Internet.
fn lead_out(h: &Home) {
    for (from, by) in [
        ("192.168.1.5", "dev wlan0"),
        ("10.77.2.2", "dev d2"),
        ("fd01::5", "dev wlan0"),
        ("fd77:0:2::2", "dev d2"),
    ] {
        let to = match a(from).is_ipv4() {
            true => ["10.77.0.1", "203.0.113.9"],
            false => ["fd77::1", "2001:db8::9"],
        };
        for to in to {
            let way = asked(&h.device, &format!("route get {to} from {from}"));
            assert!(way.contains(by), "from {from} to {to}: {way}");
            assert!(
                reaches(&h.device, Some(a(from)), serve(&h.proxy, a(to))),
                "{from} {to}"
            );
        }
    }
}

/// Rules and routes that the daemon has set, by their protocol.
fn ours(h: &Home) -> String {
    let all = [
        "-4 rule",
        "-6 rule",
        "-4 route show table all",
        "-6 route show table all",
    ];
    let lines = all.map(|line| asked(&h.device, &format!("-N {line}")));
    let ours = |l: &&str| l.contains("proto 77") || l.contains("7700");
    let lines = lines.concat();
    lines.lines().filter(ours).collect::<Vec<_>>().join("\n")
}

#[test]
fn neighbours_static_routes_tunnels_and_what_is_forwarded_stay_as_they_were() {
    let Some(h) = Home::new() else { return };
    let t = tempfile::tempdir().unwrap();
    let paths = paths(&h);
    all_work(&paths, "before");
    assert_eq!(ours(&h), "");
    let mut device = Daemon::start(&h.device, t.path(), "up", DEVICE);
    for access in ["wifi", "nr"] {
        device.uses(access);
    }
    all_work(&paths, "while it runs");
    lead_out(&h);
    for (to, on) in [
        ("10.77.0.1", ["192.168.1.5", "10.77.2.2"]),
        ("fd77::1", ["fd01::5", "fd77:0:2::2"]),
    ] {
        let to = SocketAddr::new(a(to), 5001);
        bonds((&h.device, &device), &h.proxy, to, &on.map(a));
    }
    // A route to the proxy that comes later, by the other access, is not for this one.
    ip(
        &h.device,
        &[
            "route add 10.77.0.0/28 via 10.77.2.1 dev d2",
            "route add fd77::/96 via fd77:0:2::1 dev d2",
        ],
    );
    lead_out(&h);
    // Killed: it goes on so, until the next one ends in order.
    assert_eq!(device.end(Signal::SIGKILL), None);
    assert_ne!(ours(&h), "");
    all_work(&paths, "killed");
    lead_out(&h);
    let mut device = Daemon::start(&h.device, t.path(), "up", DEVICE);
    all_work(&paths, "with the next one");
    lead_out(&h);
    eventually("an end of all connections", || {
        let in_use = || {
            braid_mptcp::diag::Diag::open()
                .unwrap()
                .addresses_in_use()
                .unwrap()
        };
        h.device.run(in_use).is_empty().then_some(())
    });
    assert_eq!(device.end(Signal::SIGINT), Some(130));
    assert_eq!(ours(&h), "");
    all_work(&paths, "ended");
}
