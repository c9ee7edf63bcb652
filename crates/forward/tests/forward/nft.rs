//! Rules over netlink, as `nft` reads them from the kernel.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

use braid_forward::divert::{engage_kill_switch, is_kill_switch_engaged, release_kill_switch};
use braid_forward::nft::{Chain, Count, Counter, Hook, Layer4, Nftables, Rule, Set, Table};
use braid_netns::world::Ns;

/// A namespace in which there is `nft`, or the reason printed.
fn namespace() -> Option<Ns> {
    let ns = Ns::new().map_err(|e| println!("skipped: no network namespace: {e}"));
    let ns = ns.ok()?;
    if Command::new("nft").arg("-v").output().is_err() {
        println!("skipped: nft is not here");
        return None;
    }
    Some(ns)
}

/// Returns what is in place, as `nft` writes it, a line each.
fn listed(ns: &Ns) -> Vec<String> {
    let out = ns.run(|| {
        Command::new("nft")
            .args(["-nn", "list", "ruleset"])
            .output()
    });
    let out = out.unwrap();
    assert!(out.status.success(), "{out:?}");
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().map(|l| l.trim().to_owned()).collect()
}

fn replace(ns: &Ns, table: &Table) {
    ns.run(|| Nftables::open().unwrap().replace(table).unwrap());
}

fn table(hook: Hook, rules: Vec<Rule>) -> Table {
    Table {
        name: "t",
        owned: false,
        counters: vec![],
        sets: vec![],
        chains: vec![Chain::at(hook, "c", rules)],
    }
}

/// Puts rules at a hook, and returns the chain as it is listed: its line, then its rules.
fn chain(ns: &Ns, hook: Hook, rules: Vec<Rule>) -> Vec<String> {
    replace(ns, &table(hook, rules));
    let mut lines = listed(ns).into_iter();
    assert_eq!(lines.next().unwrap(), "table inet t {");
    assert_eq!(lines.next().unwrap(), "chain c {");
    lines.take_while(|l| l != "}").collect()
}

#[test]
fn rules_are_what_nft_calls_them() {
    let Some(ns) = namespace() else { return };
    let arriving = || Rule::new().arriving_on("lan0");
    let rules = vec![
        arriving().to_this_machine().accept(),
        arriving().routed_by("lan1").accept(),
        arriving()
            .to_socket(true, Layer4::Tcp, 4000)
            .mark(0xb1d)
            .accept(),
        arriving().to_socket(false, Layer4::Udp, 4001).counted(),
        arriving().to("10.0.0.0/8".parse().unwrap()).drop(),
        arriving().to("2001:db8::1/128".parse().unwrap()).drop(),
        arriving().to("fd00::/9".parse().unwrap()).drop(),
        arriving().from("10.7.0.0/16".parse().unwrap()).drop(),
        arriving().from("fd00::/64".parse().unwrap()).drop(),
        Rule::new().marked(0x12345678).accept(),
        Rule::new().to_many().accept(),
        Rule::new().to_port(Layer4::Udp, 53).accept(),
        Rule::new().protocol_number(17).to_ports(53, 53).accept(),
        Rule::new().protocol(Layer4::Tcp).to_ports(80, 443).drop(),
        arriving().from_mac([2, 0, 0x5e, 0x10, 0, 1]).drop(),
        Rule::new().dscp(true, 46).drop(),
        Rule::new().dscp(false, 46).drop(),
        Rule::new().unrouted().drop(),
        Rule::new().of_transparent_socket().accept(),
        Rule::new().number_flow(7),
        Rule::new().of_flow(7).accept(),
        Rule::new().marked_within(0xb20, 0xffff_ffe0).accept(),
    ];
    let expected = [
        "type filter hook prerouting priority -150; policy accept;",
        "iifname \"lan0\" fib daddr type 2 accept",
        "iifname \"lan0\" fib daddr oifname \"lan1\" accept",
        "iifname \"lan0\" meta nfproto 2 meta l4proto 6 tproxy ip to 127.0.0.1:4000 meta mark set 0x00000b1d accept",
        "iifname \"lan0\" meta nfproto 10 meta l4proto 17 tproxy ip6 to [::1]:4001 counter packets 0 bytes 0",
        "iifname \"lan0\" ip daddr 10.0.0.0/8 drop",
        "iifname \"lan0\" ip6 daddr 2001:db8::1 drop",
        "iifname \"lan0\" ip6 daddr fd00::/9 drop",
        "iifname \"lan0\" ip saddr 10.7.0.0/16 drop",
        "iifname \"lan0\" ip6 saddr fd00::/64 drop",
        "meta mark 0x12345678 accept",
        "meta pkttype != 0 accept",
        "udp dport 53 accept",
        "udp dport 53-53 accept",
        "tcp dport 80-443 drop",
        "iifname \"lan0\" ether saddr 02:00:5e:10:00:01 drop",
        "ip dscp 0x2e drop",
        "ip6 dscp 0x2e drop",
        "fib daddr . mark oif 0 drop",
        "socket transparent 1 accept",
        "ct mark set ct mark & 0x07ffffff | 0x07000000",
        "ct mark 0x07000000/8 accept",
        "meta mark 0x00000b20/27 accept",
    ];
    assert_eq!(chain(&ns, Hook::Prerouting, rules), expected);

    let forwarded = vec![
        arriving().leaving_by("lan1").accept(),
        arriving()
            .not_leaving_by("lan1")
            .protocol(Layer4::Tcp)
            .counted()
            .reset(),
        arriving().counted().prohibit(),
        Rule::new().established().accept(),
    ];
    let expected = [
        "type filter hook forward priority 0; policy accept;",
        "iifname \"lan0\" oifname \"lan1\" accept",
        "iifname \"lan0\" oifname != \"lan1\" meta l4proto 6 counter packets 0 bytes 0 reject with tcp reset",
        "iifname \"lan0\" counter packets 0 bytes 0 reject with icmpx 3",
        "ct state 0x2,0x4 accept",
    ];
    assert_eq!(chain(&ns, Hook::Forward, forwarded), expected);

    let masquerade = Rule::new().leaving_by("eth0").masquerade();
    let expected = [
        "type nat hook postrouting priority 100; policy accept;",
        "oifname \"eth0\" masquerade",
    ];
    assert_eq!(chain(&ns, Hook::SourceNat, vec![masquerade]), expected);
    let of = |hook| chain(&ns, hook, vec![]).remove(0);
    assert_eq!(
        of(Hook::Input),
        "type filter hook input priority 0; policy accept;"
    );
    assert_eq!(
        of(Hook::Output),
        "type route hook output priority -150; policy accept;"
    );
    assert_eq!(
        of(Hook::Arrived),
        "type filter hook prerouting priority -149; policy accept;"
    );
    assert_eq!(
        of(Hook::Postrouting),
        "type filter hook postrouting priority -150; policy accept;"
    );
    assert_eq!(
        of(Hook::Leaving),
        "type filter hook output priority 10; policy accept;"
    );
}

#[test]
fn chains_lead_to_chains_and_counters_are_read() {
    let Some(ns) = namespace() else { return };
    let count = |packets, bytes| Count { packets, bytes };
    let counter = |name: &str, from| Counter {
        name: name.into(),
        from,
    };
    let sent = Rule::new().protocol(Layer4::Udp).to_ports(9, 9);
    let table = Table {
        name: "t",
        owned: false,
        sets: vec![],
        counters: vec![counter("a", count(3, 400)), counter("b", Count::default())],
        // One leads to another that comes after it.
        chains: vec![
            Chain::at(
                Hook::Leaving,
                "c",
                vec![sent.jump("d"), Rule::new().counted_as("b")],
            ),
            Chain::called(
                "d",
                vec![Rule::new().counted_as("a"), Rule::new().goto("e")],
            ),
            Chain::called("e", vec![Rule::new().counted()]),
        ],
    };
    replace(&ns, &table);
    let all = listed(&ns);
    for line in ["udp dport 9-9 jump d", "counter name \"a\"", "goto e"] {
        assert!(all.contains(&line.to_owned()), "{line}: {all:#?}");
    }
    let counters = || ns.run(|| Nftables::open().unwrap().counters("t").unwrap());
    let read = counters();
    assert_eq!(read.len(), 2);
    assert_eq!((read["a"], read["b"]), (count(3, 400), count(0, 0)));
    ns.run(|| {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        udp.send_to(b"12", "127.0.0.1:9").unwrap();
        assert!(Nftables::open().unwrap().counters("u").unwrap().is_empty());
    });
    // With the headers of UDP and IP, and what ICMP replies in the other.
    let read = counters();
    assert_eq!(read["a"], count(4, 430));
    assert!(read["b"].packets >= 1, "{read:?}");
}

#[test]
fn sets_change_under_the_rules_that_ask_them() {
    let Some(ns) = namespace() else { return };
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    let many = (0..2000).map(|n| IpAddr::from(Ipv4Addr::from_bits((10 << 24) + n)));
    let many: BTreeSet<IpAddr> = many.chain([ip("fd00::1")]).collect();
    let set = |name: &str, v4| Set {
        name: name.into(),
        v4,
        addresses: many.clone(),
    };
    let of = |name: &str, all: &[&str]| {
        let all = all.iter().map(|a| ip(a)).collect();
        BTreeMap::from([(name.to_owned(), all)])
    };
    let asked = [("a", true), ("b", false)].map(|(set, v4)| Rule::new().to_one_of(set, v4).drop());
    let table = Table {
        sets: vec![set("a", true), set("b", false)],
        ..table(Hook::Forward, asked.into())
    };
    ns.run(|| {
        let mut nft = Nftables::open().unwrap();
        nft.replace(&table).unwrap();
        let all: Vec<IpAddr> = many.iter().skip(2).copied().collect();
        let all = all.into_iter().filter(IpAddr::is_ipv4).collect();
        let deleted = BTreeMap::from([("a".to_owned(), all)]);
        // One is there already.
        let added = of("b", &["fd00::1", "fd00::2"]);
        nft.change_sets("t", &deleted, &added).unwrap();
        // Nothing of a change that fails happens.
        let absent = of("a", &["10.0.0.1", "192.0.2.1"]);
        let e = nft.change_sets("t", &absent, &of("b", &["fd00::3"]));
        let e = e.unwrap_err().to_string();
        assert!(e.starts_with("nftables: change set inet t a: "), "{e}");
        nft.change_sets("t", &BTreeMap::new(), &BTreeMap::new())
            .unwrap();
    });
    let all = listed(&ns).join(" ");
    for line in [
        "type ipv4_addr",
        "elements = { 10.0.0.0, 10.0.0.1 }",
        "elements = { fd00::1, fd00::2 }",
        "ip daddr @a drop",
        "ip6 daddr @b drop",
    ] {
        assert!(all.contains(line), "{line}: {all}");
    }
}

#[test]
fn thousands_of_rules_are_one_transaction() {
    let Some(ns) = namespace() else { return };
    let net = |i: u32| ipnet::Ipv4Net::new_assert((0x0a00_0000 + i).into(), 32);
    let rules = (0..5000).map(|i| Rule::new().to(net(i).into()).drop());
    let all = chain(&ns, Hook::Forward, rules.collect());
    assert_eq!(all.len(), 5001);
    assert_eq!(all[5000], "ip daddr 10.0.19.135 drop");
}

#[test]
fn a_table_is_replaced_as_a_whole_or_not_at_all() {
    let Some(ns) = namespace() else { return };
    let accept = || vec![Rule::new().accept()];
    replace(&ns, &table(Hook::Forward, accept()));
    let before = listed(&ns);
    // Nothing is handed to sockets where packets leave.
    let wrong = table(
        Hook::Leaving,
        vec![Rule::new().to_socket(true, Layer4::Tcp, 1)],
    );
    let e = ns.run(|| Nftables::open().unwrap().replace(&wrong).unwrap_err());
    let said = e.to_string();
    let attempted =
        "nftables: add rule inet t c (meta nfproto ipv4 meta l4proto tcp tproxy ip to :1): ";
    assert!(said.starts_with(attempted), "{said}");
    assert_eq!(listed(&ns), before);

    ns.run(|| Nftables::open().unwrap().remove("t").unwrap());
    assert_eq!(listed(&ns), [""; 0]);
    // Once more, though there is none.
    ns.run(|| Nftables::open().unwrap().remove("t").unwrap());
}

#[test]
fn what_is_owned_goes_with_its_owner_and_the_kill_switch_stays() {
    let Some(ns) = namespace() else { return };
    ns.run(|| {
        let mut owner = Nftables::open().unwrap();
        let owned = Table {
            owned: true,
            ..table(Hook::Forward, vec![])
        };
        owner.replace(&owned).unwrap();
        // By the owner itself, and by nobody else.
        owner.replace(&owned).unwrap();
        let e = Nftables::open().unwrap().remove("t").unwrap_err();
        assert!(e.to_string().contains("take hold of table inet t"), "{e}");
        assert!(!is_kill_switch_engaged().unwrap());
        engage_kill_switch(&["lan0".into(), "lan1".into()], true).unwrap();
        assert!(is_kill_switch_engaged().unwrap());
    });
    let mut expected: Vec<String> = [
        "table inet braid-kill-switch {",
        "chain forward {",
        "type filter hook forward priority 0; policy accept;",
    ]
    .map(str::to_owned)
    .into();
    for from in ["lan0", "lan1"] {
        // Of the other interfaces of the LAN, and those of the classes' tunnels.
        let into = ["lan0", "lan1"].map(str::to_owned).into_iter();
        let into = into.chain((0..8).map(|class| format!("braid{class}")));
        expected.extend(into.map(|to| format!("iifname \"{from}\" oifname \"{to}\" accept")));
        let rest = [
            "meta mark 0x00000b20/27 accept",
            "meta l4proto 6 counter packets 0 bytes 0 reject with tcp reset",
            "counter packets 0 bytes 0 reject with icmpx 3",
        ];
        expected.extend(rest.map(|rule| format!("iifname \"{from}\" {rule}")));
    }
    let own = [
        "}",
        "",
        "chain output {",
        "type filter hook output priority 10; policy accept;",
        "ip saddr 192.0.0.6 goto own",
        "ip6 saddr fd62:7261:6964:ffff::6 goto own",
        "}",
        "",
        "chain own {",
        "meta mark 0x00000b1d accept",
        "meta mark 0x00000b1c accept",
        "meta mark 0x00000b20/27 accept",
        "meta mark 0x00000b1e accept",
        "meta mark 0x00000b40/29 accept",
        "fib daddr type 2 accept",
        "meta l4proto 6 counter packets 0 bytes 0 reject with tcp reset",
        "counter packets 0 bytes 0 reject with icmpx 3",
    ];
    expected.extend(own.map(str::to_owned));
    expected.extend(["}", "}"].map(str::to_owned));
    assert_eq!(listed(&ns), expected);
    ns.run(|| release_kill_switch().unwrap());
    assert_eq!(listed(&ns), [""; 0]);
}
