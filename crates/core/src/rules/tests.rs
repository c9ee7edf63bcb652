use std::net::IpAddr;

use ipnet::IpNet;
use proptest::prelude::*;

use super::*;

fn rule(text: &str) -> std::result::Result<Rule, String> {
    serde_json::from_str(text).map_err(|e| e.to_string())
}

fn descriptor(text: &str) -> Descriptor {
    rule(&format!(
        "{{{text}{}\"block\": true}}",
        if text.is_empty() { "" } else { ", " }
    ))
    .unwrap()
    .descriptor
}

fn whole() -> Flow {
    Flow {
        client: Some("192.168.1.7".parse().unwrap()),
        mac: Some("02:00:5e:10:00:01".parse().unwrap()),
        user: None,
        user_name: None,
        unit: None,
        to: "45.11.0.10".parse().unwrap(),
        domain: Some("www.example.org".into()),
        protocol: Some(17),
        port: Some(443),
        dscp: Dscp::new(46),
    }
}

#[test]
fn a_rule_is_read_as_people_write_it() {
    let text = r#"{"name": "tv", "client": ["02:00:5E:10:00:01", "192.168.1.9/24"], "to": "45.11.0.10",
        "domain": "*.Example.org", "protocol": "udp", "port": [443, "5000-5999"], "dscp": ["ef", 34], "direct": "nr"}"#;
    let read = rule(text).unwrap();
    assert_eq!(read.outcome, Outcome::Direct(vec!["nr".into()]));
    let words = "client 02:00:5e:10:00:01,192.168.1.0/24; to 45.11.0.10; domain *.example.org; protocol udp; \
                 port 443,5000-5999; dscp ef,af41";
    assert_eq!(read.descriptor.to_string(), words);
    assert_eq!(read.title(3), "tv");
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(written["client"][1], "192.168.1.0/24");
    assert_eq!(written["to"][0], "45.11.0.10");
    assert!(written.get("class").is_none() && written.get("block").is_none());
    assert_eq!(descriptor("").to_string(), "all");
    let words = [
        ("class", "class default"),
        ("direct", "direct by nr, else wifi"),
    ];
    for (i, text) in [r#"{"class": "default"}"#, r#"{"direct": ["nr", "wifi"]}"#]
        .into_iter()
        .enumerate()
    {
        let read = rule(text).unwrap();
        assert_eq!(read.outcome.to_string(), words[i].1);
        assert_eq!(read.title(i + 1), format!("rule {}", i + 1));
    }
}

#[test]
fn what_is_no_rule_is_refused() {
    for (text, word) in [
        (r"{}", "one outcome"),
        (r#"{"class": "default", "block": true}"#, "one outcome"),
        (r#"{"block": false}"#, "one outcome"),
        (r#"{"block": true, "prot": "udp"}"#, "unknown field"),
        (
            r#"{"block": true, "client": "192.168.1"}"#,
            "no address, no prefix and no MAC",
        ),
        (r#"{"block": true, "client": "02:00:5e:10:00"}"#, "no MAC"),
        (r#"{"block": true, "user": "a b"}"#, "no user"),
        (r#"{"block": true, "unit": "../a.service"}"#, "no unit"),
        (r#"{"block": true, "unit": "/a.service"}"#, "no unit"),
        (
            r#"{"block": true, "unit": "a.service", "client": "10.0.0.1"}"#,
            "two rules",
        ),
        (
            r#"{"block": true, "user": "backup", "client": "10.0.0.1"}"#,
            "two rules",
        ),
        (
            r#"{"block": true, "to": "example.org"}"#,
            "no address and no prefix",
        ),
        (r#"{"block": true, "domain": "*"}"#, "no domain"),
        (r#"{"block": true, "protocol": "quic"}"#, "no protocol"),
        (r#"{"block": true, "protocol": 256}"#, "no protocol"),
        (r#"{"block": true, "port": 0}"#, "no port"),
        (r#"{"block": true, "port": "90-80"}"#, "no port"),
        (r#"{"block": true, "port": -1}"#, "no port"),
        (
            r#"{"block": true, "port": 80, "protocol": ["tcp", "icmp"]}"#,
            "two rules",
        ),
        (r#"{"block": true, "dscp": 64}"#, "no code point"),
        (r#"{"block": true, "port": []}"#, "at least one"),
        (r#"{"block": true, "port": true}"#, "a value, or a list"),
        (r#"{"block": true, "name": " "}"#, "letters"),
    ] {
        let e = rule(text).unwrap_err();
        assert!(e.contains(word), "{text}: {e}");
    }
    let many: Vec<String> = (0..=MAX_VALUES).map(|i| (i + 1).to_string()).collect();
    let e = rule(&format!(
        "{{\"block\": true, \"port\": [{}]}}",
        many.join(",")
    ))
    .unwrap_err();
    assert!(e.contains("256 values at most"), "{e}");
}

#[test]
fn each_criterion_decides() {
    let flow = whole();
    for (text, expected) in [
        ("", Match::Yes),
        (r#""client": "192.168.1.7""#, Match::Yes),
        (
            r#""client": ["192.168.2.0/24", "02:00:5e:10:00:01"]"#,
            Match::Yes,
        ),
        (
            r#""client": "192.168.2.0/24""#,
            Match::No(Criterion::Client),
        ),
        (r#""to": ["10.0.0.0/8", "45.0.0.0/8"]"#, Match::Yes),
        (r#""to": "2a00::/12""#, Match::No(Criterion::To)),
        (r#""domain": ["example.net", "*.example.org"]"#, Match::Yes),
        (r#""domain": "example.org""#, Match::No(Criterion::Domain)),
        (r#""protocol": ["tcp", "udp"]"#, Match::Yes),
        (r#""protocol": "icmp""#, Match::No(Criterion::Protocol)),
        (r#""port": "400-500""#, Match::Yes),
        (r#""port": 80"#, Match::No(Criterion::Port)),
        (r#""dscp": "ef""#, Match::Yes),
        (r#""dscp": "cs0""#, Match::No(Criterion::Dscp)),
        (r#""dscp": "ef", "port": 80"#, Match::No(Criterion::Port)),
    ] {
        assert_eq!(descriptor(text).judge(&flow), expected, "{text}");
    }
    // What has no ports meets no rule about them.
    let icmp = Flow {
        protocol: Some(1),
        port: None,
        ..flow.clone()
    };
    let ports = descriptor(r#""port": 443"#);
    assert_eq!(ports.judge(&icmp), Match::No(Criterion::Port));
    let icmp_v6 = Flow {
        protocol: Some(58),
        ..icmp.clone()
    };
    assert_eq!(
        descriptor(r#""protocol": "icmp""#).judge(&icmp_v6),
        Match::Yes
    );
}

#[test]
fn what_is_not_known_is_said() {
    let to = Flow::to("45.11.0.10".parse().unwrap());
    let all = [
        (
            r#""client": "192.168.1.7""#,
            Match::Unknown(Criterion::Client),
        ),
        (
            r#""client": "192.168.1.7", "to": "10.0.0.0/8""#,
            Match::No(Criterion::To),
        ),
        (
            r#""domain": "example.org""#,
            Match::Unknown(Criterion::Domain),
        ),
        (r#""protocol": "udp""#, Match::Unknown(Criterion::Protocol)),
        (r#""port": 443"#, Match::Unknown(Criterion::Port)),
        (r#""dscp": "ef""#, Match::Unknown(Criterion::Dscp)),
        (r#""user": "backup""#, Match::Unknown(Criterion::User)),
        (r#""unit": "a.service""#, Match::Unknown(Criterion::Unit)),
        (r#""to": "45.0.0.0/8""#, Match::Yes),
    ];
    for (text, expected) in all {
        assert_eq!(descriptor(text).judge(&to), expected, "{text}");
    }
    let by_port = Flow {
        port: Some(80),
        ..to.clone()
    };
    assert_eq!(
        descriptor(r#""port": 443"#).judge(&by_port),
        Match::No(Criterion::Port)
    );
    assert_eq!(
        descriptor(r#""port": 80"#).judge(&by_port),
        Match::Unknown(Criterion::Port)
    );
    // A host that is known by its address may have any interface.
    let by_address = Flow {
        client: Some("192.168.1.7".parse().unwrap()),
        ..to
    };
    let mac = descriptor(r#""client": "02:00:5e:10:00:01""#);
    assert_eq!(mac.judge(&by_address), Match::Unknown(Criterion::Client));
}

#[test]
fn users_are_of_the_device_and_clients_are_behind_it() {
    let of_user = Flow {
        user: Some(34),
        user_name: Some("backup".into()),
        ..Flow::to("45.11.0.10".parse().unwrap())
    };
    for (text, expected) in [
        (r#""user": "backup""#, Match::Yes),
        (r#""user": 34"#, Match::Yes),
        (r#""user": ["root", 34]"#, Match::Yes),
        (r#""user": ["root", 35]"#, Match::No(Criterion::User)),
        (r#""client": "0.0.0.0/0""#, Match::No(Criterion::Client)),
        (r#""to": "45.11.0.10""#, Match::Yes),
    ] {
        assert_eq!(descriptor(text).judge(&of_user), expected, "{text}");
    }
    let user = descriptor(r#""user": "backup""#);
    assert_eq!(user.judge(&whole()), Match::No(Criterion::User));
    let by_number = Flow {
        user_name: None,
        ..of_user
    };
    assert_eq!(user.judge(&by_number), Match::Unknown(Criterion::User));
    assert!(user.is_of_device() && !user.is_of_hosts());
    let of_unit = Flow {
        unit: Some("system.slice/a.service/sub".into()),
        ..by_number
    };
    for (text, expected) in [
        (r#""unit": "a.service""#, Match::Yes),
        (r#""unit": "system.slice/a.service""#, Match::Yes),
        (
            r#""unit": "system.slice/a.serv""#,
            Match::No(Criterion::Unit),
        ),
        (r#""unit": ["a", "sub"]"#, Match::Yes),
        (r#""unit": "b.service""#, Match::No(Criterion::Unit)),
        (
            r#""unit": "a.service", "user": 35"#,
            Match::No(Criterion::User),
        ),
    ] {
        assert_eq!(descriptor(text).judge(&of_unit), expected, "{text}");
    }
    let unit = descriptor(r#""unit": "a.service""#);
    assert_eq!(unit.judge(&whole()), Match::No(Criterion::Unit));
    assert!(unit.is_of_device() && !unit.is_of_hosts());
}

#[test]
fn the_first_that_is_met_decides() {
    let rules: Vec<Rule> = [
        r#"{"client": "02:00:5e:10:00:02", "block": true}"#,
        r#"{"port": 443, "direct": "nr"}"#,
        r#"{"class": "default"}"#,
    ]
    .map(|text| rule(text).unwrap())
    .to_vec();
    let doubt = |flow: &Flow| {
        let (asked, place) = ask(&rules, flow);
        let doubtful = asked.into_iter().enumerate();
        let doubtful = doubtful.filter_map(|(i, m)| match m {
            Match::Unknown(criterion) => Some((i, criterion)),
            Match::Yes | Match::No(_) => None,
        });
        (place, doubtful.collect())
    };
    assert_eq!(doubt(&whole()), (Some(1), vec![]));
    let web = Flow {
        port: Some(80),
        ..whole()
    };
    assert_eq!(doubt(&web), (Some(2), vec![]));
    let unknown = Flow {
        mac: None,
        ..whole()
    };
    assert_eq!(doubt(&unknown), (Some(1), vec![(0, Criterion::Client)]));
    assert_eq!(ask(&rules[..1], &whole()).1, None);
}

fn networks() -> impl Strategy<Value = IpNet> {
    (any::<IpAddr>(), 0..=128u8).prop_map(|(ip, n)| {
        let most = if ip.is_ipv4() { 32 } else { 128 };
        IpNet::new(ip, n.min(most)).unwrap().trunc()
    })
}

fn descriptors() -> impl Strategy<Value = Descriptor> {
    let mac = any::<[u8; 6]>().prop_map(|m| Client::Mac(Mac(m)));
    let client = prop_oneof![mac, networks().prop_map(Client::Network)];
    // 1 and 58 alone are of one family; the name is of both.
    let protocol = prop_oneof![Just(Protocol::Icmp), any::<u8>().prop_map(Protocol::Number)];
    let port = (1u16.., 1u16..).prop_map(|(a, b)| Ports {
        first: a.min(b),
        last: a.max(b),
    });
    let dscp = (0..64u8).prop_map(|d| Dscp::new(d).unwrap());
    let user = prop_oneof![
        "[a-z_][a-z0-9_-]{0,31}".prop_map(User::Name),
        any::<u32>().prop_map(User::Id)
    ];
    let few = 0..4;
    let domain = r"(\*\.)?[a-z0-9-]{1,9}(\.[a-z]{2,3}){0,2}";
    let domain = domain.prop_filter_map("a domain", |d| d.parse().ok());
    // Of hosts, or of users.
    let unit = "[a-z@-]{1,9}(/[a-z.]{3,9}){0,2}".prop_filter_map("a unit", |u| u.parse().ok());
    let client = prop::collection::vec(client, few.clone()).prop_map(|c| (c, vec![], vec![]));
    let user = prop::collection::vec(user, few.clone());
    let unit = prop::collection::vec(unit, few.clone());
    let user = (user, unit).prop_map(|(user, unit)| (vec![], user, unit));
    (
        prop_oneof![client, user],
        prop::collection::vec(networks(), few.clone()),
        prop::collection::vec(domain, few.clone()),
        prop::collection::vec(protocol, few.clone()),
        prop::collection::vec(port, few.clone()),
        prop::collection::vec(dscp, few),
    )
        .prop_map(|((client, user, unit), to, domain, protocol, port, dscp)| {
            // Ports are of protocols that have them.
            let port = if protocol.is_empty() { port } else { vec![] };
            Descriptor {
                client,
                user,
                unit,
                to,
                domain,
                protocol,
                port,
                dscp,
            }
        })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(descriptor in descriptors(), name in prop::option::of("[a-z]{1,9}"), kind in 0..3) {
        let outcome = match kind {
            0 => Outcome::Class("default".into()),
            1 => Outcome::Direct(vec!["nr".into(), "wifi".into()]),
            _ => Outcome::Block,
        };
        let rule = Rule { name, descriptor, outcome };
        let text = serde_json::to_string(&rule).unwrap();
        prop_assert_eq!(serde_json::from_str::<Rule>(&text).unwrap(), rule);
    }

    /// More facts decide what was not decided, and turn nothing over.
    #[test]
    fn facts_turn_nothing_over(descriptor in descriptors(), port in 1u16.., protocol: u8, to: IpAddr, client: IpAddr) {
        let less = Flow::to(to);
        let more = Flow { client: Some(client), mac: Some(Mac([2; 6])), domain: Some("a.org".into()), protocol: Some(protocol), port: Some(port), dscp: Dscp::new(0), ..less.clone() };
        let judged = descriptor.judge(&more);
        prop_assert!(!matches!(judged, Match::Unknown(_)));
        match descriptor.judge(&less) {
            Match::Unknown(_) => {}
            Match::Yes => prop_assert_eq!(judged, Match::Yes),
            Match::No(_) => prop_assert!(matches!(judged, Match::No(_))),
        }
    }

    #[test]
    fn garbage_is_no_value(text in "\\PC{0,20}") {
        let _ = (text.parse::<Client>(), text.parse::<User>(), text.parse::<Unit>(), text.parse::<Protocol>(), text.parse::<Ports>(), text.parse::<Dscp>());
    }
}
