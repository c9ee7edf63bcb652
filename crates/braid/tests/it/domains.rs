//! Rules by domain: what goes to the addresses that a resolver gives leaves as the rule says.

use std::net::{IpAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use braid_api::Rules;
use braid_netns::world::Ns;
use braid_netns::world::lan::SERVER;
use nix::sys::signal::Signal;

use crate::support::daemon::Daemon;
use crate::support::lan::{Ends, begin, of_the_proxy, twice};

const RULES: &str = r#"
[[rule]]
name = "videos"
domain = ["*.example.org", "example.net"]
direct = ["wifi", "nr"]
"#;

/// Second address of the server, at which it resolves names.
const RESOLVER: &str = "45.11.0.53";
/// Addresses of the device on the Wi-Fi.
const WIFI: [&str; 2] = ["10.77.2.2", "fd77:0:2::2"];
/// Types of records (RFC 1035 3.2.2, RFC 3596 2.1).
const A: u16 = 1;
const AAAA: u16 = 28;

/// Answers every question for an address with that of the server, valid for no time.
fn resolve(server: &Ns) {
    let udp = server.run(|| {
        let mut add = Command::new("ip");
        add.args(["addr", "add", &format!("{RESOLVER}/24"), "dev", "eth0"]);
        assert!(add.status().unwrap().success());
        UdpSocket::bind((RESOLVER, 53)).unwrap()
    });
    server.spawn(move || {
        let mut buffer = [0; 512];
        while let Ok((n, from)) = udp.recv_from(&mut buffer) {
            let question = &buffer[12..n];
            let octets = match question[question.len() - 4..] {
                [0, 1, ..] => match SERVER[0] {
                    IpAddr::V4(ip) => ip.octets().to_vec(),
                    IpAddr::V6(_) => unreachable!("it is of IPv4"),
                },
                _ => match SERVER[1] {
                    IpAddr::V6(ip) => ip.octets().to_vec(),
                    IpAddr::V4(_) => unreachable!("it is of IPv6"),
                },
            };
            let header = [&buffer[..2], &[0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0]].concat();
            let kind = &question[question.len() - 4..question.len() - 2];
            // The question's name, the class of the Internet, and a TTL of 0.
            let record = [
                &[0xc0, 12],
                kind,
                &[0, 1, 0, 0, 0, 0, 0],
                &[octets.len() as u8],
            ]
            .concat();
            let answer = [&header[..], question, &record, &octets].concat();
            let _ = udp.send_to(&answer, from);
        }
    });
}

/// Asks the resolver for the addresses of a name, as a host does.
fn look_up(host: &Ns, name: &str) {
    host.run(|| {
        let udp = UdpSocket::bind("0.0.0.0:0").unwrap();
        udp.connect((RESOLVER, 53)).unwrap();
        udp.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        for kind in [A, AAAA] {
            let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            for label in name.split('.') {
                question.push(label.len() as u8);
                question.extend(label.as_bytes());
            }
            question.push(0);
            question.extend([kind.to_be_bytes(), [0, 1]].concat());
            udp.send(&question).unwrap();
            let mut answer = [0; 512];
            let n = udp.recv(&mut answer).unwrap();
            assert!(n > question.len(), "{n}");
        }
    });
}

fn origins(e: &Ends) -> Vec<IpAddr> {
    let all = e.origins().into_iter();
    all.collect::<std::io::Result<_>>().unwrap()
}

fn judged(device: &Daemon, more: &[&str]) -> String {
    let mut test = Command::new(env!("CARGO_BIN_EXE_braid"));
    test.args(["rules", "test", "--dst", "45.11.0.10"]);
    let out = test.args(more).arg("--control").arg(&device.control);
    String::from_utf8(out.output().unwrap().stdout).unwrap()
}

#[test]
fn a_domain_is_the_addresses_that_a_resolver_gives() {
    let Some(e) = begin(RULES) else { return };
    resolve(&e.lan.server);
    let mut device = e.start();
    e.bonded();
    // Another name, though it has the same addresses.
    look_up(&e.lan.host, "www.example.com");
    look_up(&e.lan.host, "example.org");
    assert_eq!(origins(&e), of_the_proxy());
    // From the answer on, and not somewhat later.
    look_up(&e.lan.host, "www.Example.org");
    let by_wifi = twice(WIFI.map(|a| a.parse().unwrap()));
    assert_eq!(origins(&e), by_wifi);
    let seen: Rules = device.get("/v1/rules");
    assert_eq!(seen.rules[0].count.flows, 4, "{seen:?}");

    let unknown = judged(&device, &[]);
    assert!(
        unknown.contains("it asks for domain, which is not given"),
        "{unknown}"
    );
    let known = judged(&device, &["--domain", "www.example.org"]);
    assert!(known.starts_with("videos: direct by wifi"), "{known}");
    let other = judged(&device, &["--domain", "example.org"]);
    assert!(other.contains("no, by domain"), "{other}");

    // What is known of a domain stays known with other rules, and goes with the last that names it.
    let other = "\n[[rule]]\nto = \"203.0.113.0/24\"\nblock = true\n";
    let moved = e.device.replace(RULES, &format!("{other}{RULES}"));
    assert_eq!(device.reload(&moved), None);
    assert_eq!(origins(&e), by_wifi);
    assert_eq!(device.reload(&e.device.replace(RULES, other)), None);
    assert_eq!(device.reload(&moved), None);
    assert_eq!(origins(&e), of_the_proxy());
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(e.in_the_clear(), 0);
    assert_eq!(e.down().0, Some(0));
}
