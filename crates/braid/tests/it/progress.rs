//! Subflows that make no progress though their access answers, on both ends' data: a NAT that
//! forgot a five-tuple, a path that carries smaller packets than its interface and does not say
//! so, and an access that was silent together with all others.

use crate::support::bulk;
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use crate::support::bulk::{Bulk, Way, command, limited, of_both_families};
use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY, runs_on, subflows};
use braid_api::{AccessState, EventKind, Events, Status};
use braid_netns::world::{
    Ns, SERVICE6, World, device4, device6, eventually, eventually_within, service,
};

/// Limit for what is to be replaced. It is replaced within 3 s, which `make bench-recovery`
/// measures; a busy machine may take its time.
const SOON: Duration = Duration::from_secs(10);

struct Ends {
    w: World,
    device: Daemon,
    _proxy: Daemon,
    _t: tempfile::TempDir,
}

/// Two accesses of 20 Mbit/s in each direction.
fn world() -> Option<World> {
    let w = World::new(2)?;
    if !limited(&w, 2, 20) || !command(&w.proxy, "nft", "list tables") {
        println!("skipped: there is no nft or no tc");
        return None;
    }
    // As on most machines, nobody else routes by source.
    for family in ["-4", "-6"] {
        while command(&w.device, "ip", &format!("{family} rule del pref 1000")) {}
    }
    Some(w)
}

/// And a daemon at each end.
fn begin() -> Option<Ends> {
    let w = world()?;
    Some(start(w, of_both_families(DEVICE, PROXY)))
}

fn start(w: World, (device, proxy): (String, String)) -> Ends {
    let t = tempfile::tempdir().unwrap();
    let proxy = Daemon::start(&w.proxy, t.path(), "proxy", &proxy);
    let device = Daemon::start(&w.device, t.path(), "up", &device);
    Ends {
        w,
        device,
        _proxy: proxy,
        _t: t,
    }
}

/// Both addresses of the device in the family of the service, and where it serves.
fn family(v4: bool, port: u16) -> ([IpAddr; 2], SocketAddr) {
    match v4 {
        true => ([device4(1), device4(2)], service(port)),
        false => (
            [device6(1), device6(2)],
            SocketAddr::new(SERVICE6.into(), port),
        ),
    }
}

fn nft(ns: &Ns, rules: &str) {
    assert!(bulk::nft(ns, rules), "nft takes {rules}");
}

fn note(device: &Daemon, access: &str) -> String {
    let s: Status = device.get("/v1/status");
    let mut all = s.accesses.into_iter();
    let found = all.find(|a| a.name == access).expect("the access");
    found.note.unwrap_or_default()
}

/// The ports of the subflows on an address.
fn ports(device: &Daemon, on: IpAddr) -> BTreeSet<u16> {
    let all = subflows(device).into_iter();
    all.filter(|s| s.ip() == on).map(|s| s.port()).collect()
}

/// The ports on both addresses once they stay as they are for a second: an access that has just
/// become active may get its subflow anew.
fn settled(device: &Daemon, on: [IpAddr; 2]) -> (BTreeSet<u16>, BTreeSet<u16>) {
    let now = || (ports(device, on[0]), ports(device, on[1]));
    let (mut seen, mut since) = (now(), Instant::now());
    eventually_within(SOON, "subflows stay", || {
        let new = now();
        if new != seen {
            (seen, since) = (new, Instant::now());
        }
        (!seen.1.is_empty() && since.elapsed() > Duration::from_secs(1)).then(|| seen.clone())
    })
}

/// Drops what arrives: a sender is told of what its own machine drops.
fn on_arrival(table: &str, interface: &str, what: &str) -> String {
    format!(
        "table inet {table} {{
            chain i {{ type filter hook input priority 0; iifname {interface} {what} drop; }}
        }}"
    )
}

/// A NAT at access 2 forgets the subflow on it.
fn forgets(e: &Ends, on: [IpAddr; 2], to: SocketAddr, way: Way) {
    let bulk = Bulk::start(&e.w, to, way);
    runs_on(&e.device, &on);
    bulk.moves(&e.device, &["nr", "wifi"]);
    let (kept, lost) = settled(&e.device, on);
    let port = lost.first().expect("a subflow on wifi");
    for (ns, end, what) in [(&e.w.proxy, "p2", "sport"), (&e.w.device, "d2", "dport")] {
        nft(ns, &on_arrival("nat", end, &format!("tcp {what} {port}")));
    }
    let before: Events = e.device.get("/v1/events");
    let since = Instant::now();
    eventually_within(SOON, "another subflow on wifi", || {
        let now = ports(&e.device, on[1]);
        (!now.is_empty() && now.is_disjoint(&lost)).then_some(())
    });
    println!("{way:?} to {to}: replaced after {:?}", since.elapsed());
    bulk.moves(&e.device, &["nr", "wifi"]);
    assert_eq!(ports(&e.device, on[0]), kept, "the other one is left alone");
    let note = note(&e.device, "wifi");
    let events: Events = e.device.get("/v1/events");
    // Where the answer to a probe waited behind what the subflow had sent, for longer than the
    // detect time, the address was silent for a moment.
    let silent = EventKind::AddressState {
        address: on[1],
        silent: true,
    };
    let mut later = events.events.iter().filter(|e| e.seq > before.next);
    let was_silent = later.any(|e| e.what == silent);
    let told = note.contains("made no progress") || was_silent;
    assert!(told, "{note:?} {events:?}");
    e.device.was_never(AccessState::Silent);
}

#[test]
fn a_subflow_that_a_nat_forgot_is_replaced() {
    for (v4, way) in [
        (true, Way::Up),
        (true, Way::Down),
        (false, Way::Up),
        (false, Way::Down),
    ] {
        // Anew: one that is lost again soon is opened later.
        let Some(e) = begin() else { return };
        let (on, to) = family(v4, 81);
        forgets(&e, on, to, way);
    }
}

#[test]
fn what_is_idle_or_waits_keeps_its_subflows() {
    let Some(e) = begin() else { return };
    let (on, to) = family(true, 81);
    // First: what nobody reads fills 64 MB, and the sender's own queue is first come, first served.
    let busy = Bulk::start(&e.w, service(84), Way::Down);
    runs_on(&e.device, &on);
    busy.moves(&e.device, &["nr", "wifi"]);
    let idle = Bulk::start(&e.w, to, Way::Idle);
    // Nobody reads, at either end.
    let unread = [
        Bulk::start(&e.w, service(82), Way::DownUnread),
        Bulk::start(&e.w, service(83), Way::UpUnread),
    ];
    let joined = || ports(&e.device, on[1]).len() == 4;
    eventually("all have joined", || joined().then_some(()));
    let all = || on.map(|a| ports(&e.device, a));
    let before = all();
    assert_eq!(before[1].len(), 4);
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(all(), before);
    assert_eq!(note(&e.device, "wifi"), "");
    drop((idle, unread, busy));
}

/// Access 2 carries 1430 bytes in both directions.
fn narrow(w: &World) {
    for (ns, name) in [(&w.device, "d2"), (&w.proxy, "p2")] {
        // What is larger than a packet would be cut to packets after the filter only.
        assert!(command(
            ns,
            "ip",
            &format!("link set dev {name} gso_max_segs 1")
        ));
    }
    for (ns, end) in [(&w.proxy, "p2"), (&w.device, "d2")] {
        nft(ns, &on_arrival("narrow", end, "meta length > 1430"));
    }
}

/// Whether the routes by access 2 limit packets.
fn mtu(w: &World, v4: bool) -> bool {
    let family = if v4 { "-4" } else { "-6" };
    let words = format!("{family} route show table all dev d2 proto 77");
    bulk::output(&w.device, "ip", &words).contains("mtu 1430")
}

#[test]
fn a_path_that_carries_smaller_packets_is_found_before_it_is_used() {
    let Some(w) = world() else { return };
    narrow(&w);
    let mut e = start(w, of_both_families(DEVICE, PROXY));
    let both = || mtu(&e.w, true) && mtu(&e.w, false);
    eventually("a limit of the routes", || both().then_some(()));
    for (v4, way, port) in [(true, Way::Up, 81), (false, Way::Down, 82)] {
        let (on, to) = family(v4, port);
        let bulk = Bulk::start(&e.w, to, way);
        runs_on(&e.device, &on);
        bulk.moves(&e.device, &["nr", "wifi"]);
    }
    let note = note(&e.device, "wifi");
    assert!(
        note.contains("more than 1430 bytes do not pass on d2"),
        "{note}"
    );
    e.device.end(nix::sys::signal::Signal::SIGTERM);
}

#[test]
fn a_path_that_becomes_narrow_carries_again() {
    let Some(e) = begin() else { return };
    for (v4, way, port) in [(true, Way::Down, 81), (false, Way::Up, 82)] {
        let (on, to) = family(v4, port);
        let bulk = Bulk::start(&e.w, to, way);
        runs_on(&e.device, &on);
        bulk.moves(&e.device, &["nr", "wifi"]);
        if v4 {
            narrow(&e.w);
        }
        let since = Instant::now();
        let found = || mtu(&e.w, v4).then_some(());
        eventually_within(SOON, "the path is found narrow", found);
        println!("{way:?} to {to}: found narrow after {:?}", since.elapsed());
        bulk.moves(&e.device, &["nr", "wifi"]);
        println!("{way:?} to {to}: carries again after {:?}", since.elapsed());
    }
}

#[test]
fn both_carry_again_after_all_were_silent() {
    let Some(w) = world() else { return };
    // Silence is of IPv4 here.
    let e = start(w, (DEVICE.to_owned(), PROXY.to_owned()));
    let (on, to) = family(true, 81);
    for way in [Way::Down, Way::Up] {
        let bulk = Bulk::start(&e.w, SocketAddr::new(to.ip(), to.port() + way as u16), way);
        runs_on(&e.device, &on);
        bulk.moves(&e.device, &["nr", "wifi"]);
        for k in [1, 2] {
            e.w.silence(k, true);
        }
        for name in ["nr", "wifi"] {
            e.device.becomes(name, AccessState::Silent);
        }
        // The kernel's timer has doubled five times, and fires after 6 s more.
        std::thread::sleep(Duration::from_millis(6_500));
        for k in [1, 2] {
            e.w.silence(k, false);
        }
        let since = Instant::now();
        bulk.moves_within(SOON, &e.device, &["nr", "wifi"]);
        println!("{way:?}: both carry again after {:?}", since.elapsed());
    }
}
