//! Programs of the device itself: what they send goes over the bond, or nowhere.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use braid_api::{AccessState, Rules, Status};
use braid_mptcp::cgroup::Made;
use braid_netns::world::lan::{LAN, SERVER};
use braid_netns::world::{Ns, eventually};
use nix::sys::signal::Signal;

use crate::support::bulk;
use crate::support::lan::{Ends, PORT, PROXY, begin_own, of_packets, of_the_proxy, origin};

/// User beside root, which Debian has.
const USER: (&str, u32) = ("daemon", 1);

fn seen(device: &Ns) -> std::io::Result<Vec<IpAddr>> {
    let ask = |at: &IpAddr| [origin(device, *at), of_packets(device, *at)];
    SERVER.iter().flat_map(ask).collect()
}

fn bonded(e: &Ends) {
    eventually("the device's programs go over the bond", || {
        seen(&e.w.device)
            .ok()
            .filter(|seen| *seen == of_the_proxy())
    });
}

/// Addresses of the device itself by which the server has been reached, past the bond.
fn counted(e: &Ends) -> u64 {
    e.in_the_clear()
}

/// Counts at the proxy what comes from the accesses' own addresses for the server.
fn count_the_clear(e: &Ends) {
    let more = "table inet clear {
        chain d {
            type filter hook prerouting priority -300;
            ip daddr 45.11.0.10 iifname != \"net0\" iifname != \"braid0\" counter;
            ip6 daddr 2a0f:45::10 iifname != \"net0\" iifname != \"braid0\" counter;
        }
    }";
    assert!(bulk::nft(&e.w.proxy, more));
}

#[test]
fn programs_of_the_device_go_over_the_bond_or_nowhere() {
    let Some(e) = begin_own("", "") else { return };
    count_the_clear(&e);
    let mut device = e.start();
    bonded(&e);
    let status: Status = device.get("/v1/status");
    let lan = status.lan.unwrap();
    assert!(lan.programs && lan.programs_kill_switch, "{lan:?}");
    assert_eq!((lan.interfaces.len(), lan.tunnel.len()), (0, 2));
    assert_eq!(lan.no_packets, None);

    // One that is open outlives each access, with the address of its source.
    let open = |at: IpAddr| {
        e.w.device.run(|| {
            let tcp = TcpStream::connect((at, PORT)).unwrap();
            tcp.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            tcp
        })
    };
    let mut all = SERVER.map(open);
    for (tcp, from) in all.iter_mut().zip(PROXY) {
        let mut greeting = vec![0; from.len() + 1];
        tcp.read_exact(&mut greeting).unwrap();
        assert_eq!(greeting, format!("{from} ").as_bytes());
    }
    for (k, name) in [(1, "nr"), (2, "wifi")] {
        e.w.set_link(k, false);
        for tcp in &mut all {
            tcp.write_all(b"still").unwrap();
            let mut echo = [0; 5];
            tcp.read_exact(&mut echo).unwrap();
            assert_eq!(&echo, b"still");
        }
        bonded(&e);
        e.w.set_link(k, true);
        e.w.route(k);
        e.w.restore6(k);
        device.becomes(name, AccessState::Active);
    }
    assert_eq!(counted(&e), 0);

    // Who binds itself to an access leaves there, and what has begun elsewhere is answered there.
    let bound = e.w.device.run(|| {
        let udp = UdpSocket::bind(("10.77.1.2", 0)).unwrap();
        udp.connect((SERVER[0], PORT)).unwrap();
        udp.local_addr().unwrap().ip()
    });
    assert_eq!(bound.to_string(), "10.77.1.2");
    let listener =
        e.w.device
            .run(|| TcpListener::bind("0.0.0.0:7000").unwrap());
    let to: SocketAddr = "10.77.1.2:7000".parse().unwrap();
    let mut to_it =
        e.w.proxy
            .run(|| TcpStream::connect_timeout(&to, Duration::from_secs(5)).unwrap());
    let (mut it, _) = listener.accept().unwrap();
    it.write_all(b"hello").unwrap();
    let mut hello = [0; 5];
    to_it.read_exact(&mut hello).unwrap();

    // Killed: what is open is reset, and new ones are refused; a new daemon finds it so.
    assert_eq!(device.end(Signal::SIGKILL), None);
    for tcp in &mut all {
        let ended = tcp.read(&mut [0]).map_err(|e| e.kind());
        assert_eq!(ended, Err(ErrorKind::ConnectionReset));
    }
    is_cut_off(&e);
    let mut device = e.start();
    bonded(&e);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    is_cut_off(&e);
    assert_eq!(counted(&e), 0);

    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the kill switch is taken back"), "{said}");
    let past = seen(&e.w.device).unwrap();
    assert!(past.iter().all(|a| !of_the_proxy().contains(a)), "{past:?}");
    assert_ne!(counted(&e), 0, "what is counted is there");
    nothing_is_left(&e);
}

/// Network managers remove rules that are not theirs.
#[test]
fn rules_of_routing_that_somebody_removes_are_set_again() {
    let Some(e) = begin_own("", "") else { return };
    let _device = e.start();
    bonded(&e);
    let rules = |family: &'static str| {
        let list = || Command::new("ip").args([family, "rule"]).output().unwrap();
        String::from_utf8(e.w.device.run(list).stdout).unwrap()
    };
    for family in ["-4", "-6"] {
        let before = rules(family);
        assert!(before.contains("7710:"), "{before}");
        for priority in 7705..=7711 {
            let priority = priority.to_string();
            let del = [family, "rule", "del", "priority", &priority];
            let removed = || Command::new("ip").args(del).output().unwrap();
            while e.w.device.run(removed).status.success() {}
        }
        assert!(!rules(family).contains("7710:"));
        eventually("the rules are there again", || {
            (rules(family) == before).then_some(())
        });
    }
    bonded(&e);
}

/// Neither rules nor addresses nor interfaces of own programs are there.
/// Switches IPv6 off for all interfaces of a namespace, present and to come.
fn switch_ipv6_off(at: &Ns) {
    at.run(|| {
        for scope in ["all", "default"] {
            let setting = format!("/proc/sys/net/ipv6/conf/{scope}/disable_ipv6");
            std::fs::write(setting, "1").unwrap();
        }
    });
}

#[test]
fn ends_whose_ipv6_is_switched_off_carry_the_other_family() {
    let lan = format!("[lan]\ninterfaces = [\"{LAN}\"]\n");
    let Some(mut e) = begin_own("", &lan) else {
        return;
    };
    switch_ipv6_off(&e.w.device);
    // It forwards ports of ::1.
    let lines = e.device.lines();
    let rest: Vec<_> = lines.filter(|l| !l.starts_with("forward")).collect();
    e.device = rest.join("\n");
    for proxy_too in [false, true] {
        if proxy_too {
            switch_ipv6_off(&e.w.proxy);
            assert_eq!(e.proxy.end(Signal::SIGTERM), Some(0));
            e.proxy = e.start_proxy();
        }
        let mut device = e.start();
        let proxy: IpAddr = PROXY[0].parse().unwrap();
        eventually("hosts and programs go over the bond", || {
            let ask = |at| [origin(at, SERVER[0]), of_packets(at, SERVER[0])];
            let all = [ask(&e.w.device), ask(&e.lan.host)].into_iter().flatten();
            let all: Option<Vec<IpAddr>> = all.map(Result::ok).collect();
            all.filter(|all| all.iter().all(|from| *from == proxy))
        });
        let status: Status = device.get("/v1/status");
        let lan = status.lan.unwrap();
        assert_eq!((lan.tunnel.len(), lan.no_packets), (1, None));
        origin(&e.w.device, SERVER[1]).unwrap_err();
        assert_eq!(device.end(Signal::SIGTERM), Some(0));
    }
    let (code, said) = e.down();
    assert_eq!(code, Some(0), "{said}");
    nothing_is_left(&e);
}

fn nothing_is_left(e: &Ends) {
    let of = |args: &[&str]| {
        let list = || Command::new("ip").args(args).output().unwrap().stdout;
        String::from_utf8(e.w.device.run(list)).unwrap()
    };
    for (args, word) in [
        (&["rule"][..], "7699999"),
        (&["-6", "rule"], "7699999"),
        (&["addr"], "192.0.0.6"),
        (&["addr"], "fd62:7261:6964:ffff"),
        (&["link"], "braid-own"),
    ] {
        let there = of(args);
        assert!(!there.contains(word), "{there}");
    }
}

fn is_cut_off(e: &Ends) {
    for at in SERVER {
        origin(&e.w.device, at).unwrap_err();
        of_packets(&e.w.device, at).unwrap_err();
    }
}

#[test]
fn rules_decide_about_programs_and_their_users() {
    let rules = format!(
        "[[rule]]\nname = \"of the user\"\nuser = \"{}\"\ndirect = \"wifi\"\n\
         [[rule]]\nto = \"{}\"\nprotocol = \"udp\"\nblock = true\n\
         [[rule]]\nport = 5009\ndirect = \"wifi\"\n\
         [[rule]]\nname = \"of nobody\"\nuser = 54321\nblock = true\n\
         [class.six]\nmode = \"redundant\"\n[[rule]]\nname = \"six\"\nto = \"::/0\"\nclass = \"six\"\n",
        USER.0, SERVER[0]
    );
    let Some(e) = begin_own("", &rules) else {
        return;
    };
    let device = e.start();
    eventually("connections go over the bond", || {
        let from = origin(&e.w.device, SERVER[0]).ok()?;
        (from.to_string() == PROXY[0]).then_some(())
    });
    eventually("packets of the class go over the bond", || {
        let from = of_packets(&e.w.device, SERVER[1]).ok()?;
        (from.to_string() == PROXY[1]).then_some(())
    });
    assert_eq!(
        origin(&e.w.device, SERVER[1]).unwrap().to_string(),
        PROXY[1]
    );
    of_packets(&e.w.device, SERVER[0]).unwrap_err();
    // What the user's programs send leaves by Wi-Fi, with the device's address there.
    device.becomes("wifi", AccessState::Active);
    let user = Asking {
        user: USER.1,
        group: None,
    };
    for (at, from) in SERVER.into_iter().zip(["10.77.2.2", "fd77:0:2::2"]) {
        for udp in [false, true] {
            eventually("the user's programs leave by Wi-Fi", || {
                (user.asks(&e.w.device, at, udp)? == from).then_some(())
            });
        }
    }
    // Without it they are refused at once.
    e.w.set_link(2, false);
    device.becomes("wifi", AccessState::Down);
    let to = SocketAddr::new(SERVER[0], 5009);
    let refused = || TcpStream::connect_timeout(&to, Duration::from_secs(5));
    let refused = e.w.device.run(refused).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    let rules: Rules = device.get("/v1/rules");
    let count = |title: &str| {
        let mut all = rules.rules.iter();
        all.find(|r| r.title == title).unwrap().count
    };
    let of_user = count("of the user");
    assert!(of_user.flows >= 4 && of_user.up_bytes > 2800, "{of_user:?}");
    assert!(of_user.down_bytes > 0, "{of_user:?}");
    let six = count("six");
    assert!(
        six.flows >= 2 && six.up_bytes > 1400 && six.down_bytes > 0,
        "{six:?}"
    );
    assert_eq!(count("of nobody").flows, 0);
    assert!(count("rule 2").flows >= 1);
}

/// Program that asks the server from where it sees it.
struct Asking<'a> {
    user: u32,
    group: Option<&'a Made>,
}

impl Asking<'_> {
    fn asks(&self, device: &Ns, at: IpAddr, udp: bool) -> Option<String> {
        const ASK: &str = "
import os, socket, sys
os.setuid(int(sys.argv[1]))
family = socket.AF_INET6 if ':' in sys.argv[2] else socket.AF_INET
s = socket.socket(family, socket.SOCK_DGRAM if sys.argv[4] == 'udp' else socket.SOCK_STREAM)
s.settimeout(2)
s.connect((sys.argv[2], int(sys.argv[3])))
if sys.argv[4] == 'udp':
    s.send(b'x' * 1400)
print(s.recv(100).decode().split()[0])
";
        let ask = || {
            let mut python = Command::new("python3");
            python.args(["-c", ASK]).arg(self.user.to_string());
            python.args([at.to_string(), PORT.to_string()]);
            python.arg(if udp { "udp" } else { "tcp" });
            python.stdout(Stdio::piped()).stderr(Stdio::piped());
            python.spawn().unwrap()
        };
        let child = device.run(|| match self.group {
            Some(group) => group.start(ask).unwrap(),
            None => ask(),
        });
        let out = child.wait_with_output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        out.status.success().then(|| text.trim().to_owned())
    }
}

#[test]
fn a_rule_knows_the_programs_of_a_unit() {
    let group = match Made::new() {
        Ok(group) => group,
        Err(e) => {
            println!("skipped: {e}");
            return;
        }
    };
    let unit = group.path().file_name().unwrap().to_str().unwrap();
    let rules = format!(
        "[[rule]]\nname = \"of the unit\"\nunit = \"{unit}\"\nblock = true\n\
         [[rule]]\nname = \"of another\"\nunit = \"none.service\"\ndirect = \"nr\"\n"
    );
    let Some(e) = begin_own("", &rules) else {
        return;
    };
    let device = e.start();
    bonded(&e);
    let root = Asking {
        user: 0,
        group: Some(&group),
    };
    for at in SERVER {
        for udp in [false, true] {
            assert_eq!(root.asks(&e.w.device, at, udp), None, "{at} {udp}");
        }
    }
    let rules: Rules = device.get("/v1/rules");
    assert!(rules.rules[0].count.flows >= 4, "{:?}", rules.rules[0]);
    assert_eq!(rules.rules[1].count.flows, 0);
}

#[test]
fn without_a_kill_switch_programs_leave_as_the_routes_say() {
    let Some(e) = begin_own("kill_switch = false\n", "") else {
        return;
    };
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let mut device = e.start();
        bonded(&e);
        device.end(signal);
        let past = seen(&e.w.device).unwrap();
        assert!(past.iter().all(|a| !of_the_proxy().contains(a)), "{past:?}");
    }
    let mut device = e.start();
    bonded(&e);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    nothing_is_left(&e);
}
