//! Classes of what hosts send: each by its own steering, in both directions, TCP and packets.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use braid_netns::world::lan::SERVER;
use braid_netns::world::{Ns, eventually};

use braid_api::Rules;

use crate::support::daemon::Daemon;
use crate::support::lan::{Ends, PORT, begin_with};

/// Bytes there and back of each look at the accesses.
const BYTES: usize = 2 << 20;
/// Datagrams of each look.
const DATAGRAMS: usize = 400;

/// IPv4 by 5G, IPv6 by Wi-Fi, while these work.
const CLASSES: &str = r#"
[class.on-nr]
mode = "active-standby"
order = ["nr", "wifi"]

[class.on-wifi]
mode = "active-standby"
order = ["wifi", "nr"]

[[rule]]
to = "45.11.0.0/16"
class = "on-nr"

[[rule]]
to = "2a0f:45::/64"
class = "on-wifi"
"#;

/// Bytes that an access has received and sent, at the device.
fn counted(device: &Ns, interface: &str) -> [u64; 2] {
    let read = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let text = device.run(read);
    let mut lines = text.lines().filter_map(|l| l.trim().split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| *name == interface).unwrap();
    let numbers: Vec<u64> = numbers
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    [numbers[0], numbers[8]]
}

/// Share of the first access in what both have received, and in what both have sent, while `f` runs.
fn share_of_nr(e: &Ends, f: impl FnOnce(&Ns)) -> [f64; 2] {
    let look = || ["d1", "d2"].map(|name| counted(&e.w.device, name));
    let before = look();
    f(&e.lan.host);
    let after = look();
    [0, 1].map(|way| {
        let more = [0, 1].map(|access| (after[access][way] - before[access][way]) as f64);
        more[0] / (more[0] + more[1])
    })
}

/// Sends as much by TCP as comes back.
fn echo(host: &Ns, at: IpAddr) {
    host.run(|| {
        let to = SocketAddr::new(at, PORT);
        let mut tcp = TcpStream::connect_timeout(&to, Duration::from_secs(5)).unwrap();
        tcp.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut out = tcp.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            out.write_all(&vec![7; BYTES]).unwrap();
            out.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut all = Vec::new();
        tcp.read_to_end(&mut all).unwrap();
        writing.join().unwrap();
        assert!(all.len() > BYTES, "{}", all.len());
    });
}

/// Sends datagrams, one after the other, each of which is answered.
fn datagrams(host: &Ns, at: IpAddr) {
    host.run(|| {
        let any: IpAddr = match at {
            IpAddr::V4(_) => [0; 4].into(),
            IpAddr::V6(_) => [0; 16].into(),
        };
        let udp = UdpSocket::bind((any, 0)).unwrap();
        udp.connect((at, PORT)).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        for _ in 0..DATAGRAMS {
            udp.send(&[7; 1200]).unwrap();
            udp.recv(&mut [0; 100]).unwrap();
        }
    });
}

/// Sends datagrams by one socket until it is told to stop; returns how many were sent, and answered.
fn answered(at: IpAddr, stop: &AtomicBool) -> (u32, u32) {
    let udp = UdpSocket::bind(("::", 0)).unwrap();
    udp.connect((at, PORT)).unwrap();
    udp.set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let (mut sent, mut answers) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        // While nobody takes it, it is refused.
        sent += 1;
        if udp.send(&[7; 100]).is_ok() && udp.recv(&mut [0; 100]).is_ok() {
            answers += 1;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    (sent, answers)
}

/// Looks at which access carries what is sent to a server, until it is this one.
fn goes_by(e: &Ends, at: IpAddr, nr: bool) {
    // Answers to datagrams are small, and acknowledgements leave on the faster access.
    let mostly = |share: f64| if nr { share > 0.8 } else { share < 0.2 };
    for (what, traffic) in [("TCP", echo as fn(&Ns, IpAddr)), ("UDP", datagrams)] {
        let words = format!("{what} to {at} goes by {}", if nr { "nr" } else { "wifi" });
        eventually(&words, || {
            let shares = share_of_nr(e, |host| traffic(host, at));
            println!("{words}: {shares:.2?} of what comes and goes is nr's");
            shares.into_iter().all(mostly).then_some(())
        });
    }
}

/// Without accesses of its own: they are registered, under other names.
fn unnamed(proxy: String) -> String {
    let begin = proxy.find("[access.").expect("accesses");
    format!("{}[gateway]\n", &proxy[..begin])
}

/// The device tells what it has sent of each class on each access. Of one look each: while an access
/// pauses, the next of the order carries for it.
fn tells_which_access_each_uses(e: &Ends, device: &Daemon) {
    let rules: Rules = device.get("/v1/rules");
    let names: Vec<_> = rules.classes.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["on-nr", "on-wifi", "default"]);
    for (class, at, by, other) in [(0, SERVER[0], "nr", "wifi"), (1, SERVER[1], "wifi", "nr")] {
        let sent = || {
            let rules: Rules = device.get("/v1/rules");
            [by, other].map(|access| rules.classes[class].sent_bytes[access])
        };
        eventually(&format!("{by} has what class {class} sends"), || {
            let before = sent();
            echo(&e.lan.host, at);
            let after = sent();
            let [by, other] = [0, 1].map(|i| after[i] - before[i]);
            println!("class {class}: {by} bytes, {other} on the other access");
            (by > BYTES as u64 && other * 20 < by).then_some(())
        });
    }
    let (_, page) = device.request("GET", "/metrics", "");
    let line = "braid_class_sent_bytes_total{access=\"nr\",class=\"on-nr\"} ";
    assert!(page.lines().any(|l| l.starts_with(line)), "{page}");
}

#[test]
fn each_class_goes_by_its_own_accesses_in_both_directions() {
    for named in [true, false] {
        let proxy_of = |proxy| if named { proxy } else { unnamed(proxy) };
        let Some(e) = begin_with(CLASSES, proxy_of) else {
            return;
        };
        let device = e.start();
        e.bonded();
        goes_by(&e, SERVER[0], true);
        goes_by(&e, SERVER[1], false);
        assert_eq!(e.in_the_clear(), 0);
        tells_which_access_each_uses(&e, &device);
        if !named {
            continue;
        }
        // Where its access is not there, a class goes by the next of its order.
        e.w.set_link(1, false);
        goes_by(&e, SERVER[0], false);
        e.w.set_link(1, true);
        goes_by(&e, SERVER[0], true);
        // Another class, and rules that name others: what begins afterwards goes by them, and packets
        // that nothing has changed for go on.
        let first = "[class.first]\nmode = \"active-standby\"\norder = [\"wifi\"]\n\n[class.on-nr]";
        let turned = CLASSES.replace("[class.on-nr]", first);
        let turned = turned.replace("class = \"on-nr\"", "class = \"first\"");
        let config = e.device.replace(CLASSES, &turned);
        let stop = Arc::new(AtomicBool::new(false));
        let (lan, stopped) = (Arc::clone(&e.lan), Arc::clone(&stop));
        let steady = std::thread::spawn(move || lan.host.run(|| answered(SERVER[1], &stopped)));
        assert_eq!(device.reload(&config), None);
        goes_by(&e, SERVER[0], false);
        goes_by(&e, SERVER[1], false);
        stop.store(true, Ordering::Relaxed);
        let (sent, answers) = steady.join().unwrap();
        assert!(sent > 10 && answers == sent, "{answers} of {sent}");
        assert_eq!(e.in_the_clear(), 0);
    }
}
