//! Both ways, and what is said of parts without a counterpart.

use std::net::IpAddr;

use braid_core::atsss::{Component, Entry, Form, Functionality, Mode, Parameter, Rule, Selection};
use braid_core::atsss::{Container, Side};
use braid_core::control::Direction;
use braid_core::rules::{Dscp, Flow, Mac, Outcome, ask};
use proptest::prelude::*;

use super::*;
use crate::config::Format;

const DEVICE: &str = "engine = \"mpquic\"
proxy = \"10.77.0.1\"
default = \"bond\"
[mpquic]
pins = [\"sha256/x\"]
[lan]
interfaces = [\"lan0\"]
[access.nr]
interface = \"wwan0\"
kind = \"5g\"
[access.wifi]
interface = \"wlan0\"
kind = \"wifi\"
[access.lifi]
interface = \"li0\"
kind = \"lifi\"
";

fn config(more: &str) -> Config<DeviceAccess> {
    let text = format!("{DEVICE}{more}");
    Config::parse(&text, Format::Toml)
        .unwrap_or_else(|p| panic!("{}", p.in_file("f".into(), &text)))
}

fn names() -> Names {
    Names {
        threegpp: "nr".into(),
        non_threegpp: "wifi".into(),
    }
}

fn exported(more: &str) -> (Vec<Rule>, Vec<String>) {
    let config = config(more);
    let names = Names::choose(&config, None, None).unwrap();
    assert_eq!(names, super::tests::names());
    let exported = export(&config, &names, false).unwrap();
    let rules = exported.container.rules().into_iter().cloned().collect();
    let remarks = exported.remarks.iter().map(ToString::to_string);
    (rules, remarks.collect())
}

#[test]
fn a_rule_has_a_rule_for_each_combination_of_its_values() {
    let (rules, remarks) = exported(
        "[scheduler]
name = \"smallest-delay\"
[class.bulk]
mode = \"load-balancing\"
weights = { nr = 20, wifi = 80 }
[class.console]
mode = \"active-standby\"
order = [\"wifi\"]
standby = false
[[rule]]
to = [\"198.51.100.0/24\", \"2001:db8::1\"]
port = [443, \"5000-5999\"]
protocol = \"udp\"
class = \"bulk\"
[[rule]]
client = \"192.168.1.20\"
dscp = \"ef\"
port = 22
class = \"console\"
[[rule]]
to = \"2001:db8::/32\"
protocol = \"icmp\"
direct = [\"wifi\", \"nr\"]
",
    );
    let bulk = Selection::new(Functionality::Supported, Mode::LoadBalancing { tens: 2 });
    let v4 = Component::RemoteV4([198, 51, 100, 0].into(), [255, 255, 255, 0].into());
    let v6 = Component::RemoteV6("2001:db8::1".parse().unwrap(), 128);
    let udp = Component::Protocol(17);
    let ports = [
        Component::RemotePort(443),
        Component::RemotePorts(5000, 5999),
    ];
    for (i, (to, port)) in [(&v4, 0), (&v4, 1), (&v6, 0), (&v6, 1)].iter().enumerate() {
        let wanted = [(*to).clone(), udp.clone(), ports[*port].clone()];
        assert_eq!(rules[i].descriptor, wanted);
        assert_eq!(rules[i].selection, bulk);
        assert_eq!(usize::from(rules[i].precedence), i + 1);
    }
    // Ports are of TCP and UDP.
    let client = Component::LocalV4([192, 168, 1, 20].into(), [255; 4].into());
    for (rule, protocol) in rules[4..6].iter().zip([6, 17]) {
        let wanted = [
            client.clone(),
            Component::Protocol(protocol),
            Component::RemotePort(22),
            Component::TrafficClass(0xb8, 0xfc),
        ];
        assert_eq!(rule.descriptor, wanted);
        let active = Side::NonThreegpp;
        let standby = false;
        assert_eq!(rule.selection.mode, Mode::ActiveStandby { active, standby });
    }
    // ICMP of IPv6 has another number than that of IPv4.
    let icmp = &rules[6];
    assert_eq!(icmp.descriptor[1], Component::Protocol(58));
    assert_eq!(icmp.selection.functionality, Functionality::LowLayer);
    let last = &rules[7];
    assert_eq!((last.precedence, rules.len()), (255, 8));
    assert_eq!(last.descriptor, [Component::MatchAll]);
    assert_eq!(last.selection.mode, Mode::SmallestDelay);
    assert_eq!(
        remarks,
        [
            "rule 3: an ATSSS rule says by which access it leaves, and not that this is past the bond"
        ]
    );
}

#[test]
fn what_has_no_counterpart_is_said_by_name() {
    let (rules, remarks) = exported(
        "[class.voice]
mode = \"redundant\"
[class.games]
mode = \"priority-based\"
order = [\"lifi\", \"wifi\"]
max_rtt_ms = 80
reinject = true
[class.games.down]
mode = \"ecf\"
[class.third]
mode = \"wrr\"
weights = { nr = 1, wifi = 2, lifi = 1 }
[class.light]
mode = \"active-standby\"
order = [\"lifi\"]
standby = false
[[rule]]
name = \"calls\"
dscp = \"ef\"
class = \"voice\"
[[rule]]
name = \"ads\"
to = \"203.0.113.0/24\"
block = true
[[rule]]
user = \"backup\"
class = \"games\"
[[rule]]
port = 80
protocol = \"tcp\"
class = \"games\"
[[rule]]
protocol = \"tcp\"
class = \"third\"
[[rule]]
protocol = \"sctp\"
class = \"light\"
[[rule]]
unit = \"a.service\"
direct = \"lifi\"
",
    );
    let wanted = [
        "calls: left out: redundant is of Release 18, whose octets this codec does not know; what it is for meets the rules behind it",
        "ads: left out: no ATSSS rule refuses traffic; what it is for meets the rules behind it",
        "class games: [down] is left out: ATSSS rules steer what the device sends",
        "class games: access \"lifi\" has no place: a session of ATSSS has two accesses",
        "class games: max_rtt_ms and max_loss_percent are left out: Release 16 has no thresholds",
        "class games: reinject is left out: ATSSS has none",
        "rule 3: left out: `user` has no counterpart; what it is for meets the rules behind it",
        "class third: 33.3 % on nr are given as 30 %: Release 16 has tens of percent",
        "class third: access \"lifi\" has no place: a session of ATSSS has two accesses",
        "rule 6: left out: access \"lifi\" alone carries, and has no place; what it is for meets the rules behind it",
        "rule 7: access \"lifi\" has no place: a session of ATSSS has two accesses",
        "rule 7: left out: none of its accesses has a place; what it is for meets the rules behind it",
        "what meets no rule: left out: minrtt is no steering mode of ATSSS; the network decides",
    ];
    assert_eq!(remarks, wanted);
    assert_eq!(rules.len(), 2);
    let high = Side::NonThreegpp;
    assert_eq!(rules[0].selection.mode, Mode::PriorityBased { high });
    assert_eq!(rules[1].selection.mode, Mode::LoadBalancing { tens: 3 });
}

#[test]
fn rules_that_need_too_many_are_refused() {
    let ports: Vec<String> = (1..=128).map(|p| p.to_string()).collect();
    let text = format!(
        "[class.a]\nmode = \"rr\"\n[[rule]]\nport = [{}]\nclass = \"a\"\n",
        ports.join(", ")
    );
    let e = export(&config(&text), &names(), false).unwrap_err();
    assert!(e.starts_with("256 ATSSS rules are too many"), "{e}");
}

#[test]
fn the_accesses_of_a_session_are_chosen_by_their_kinds() {
    let config = config("");
    let choose = |a, b| Names::choose(&config, a, b);
    assert_eq!(choose(None, None), Ok(names()));
    let light = choose(Some("wifi"), Some("lifi")).unwrap();
    assert_eq!((&*light.threegpp, &*light.non_threegpp), ("wifi", "lifi"));
    let e = choose(Some("cable"), None).unwrap_err();
    assert_eq!(e, "no access is called \"cable\"");
    let e = choose(Some("nr"), Some("nr")).unwrap_err();
    assert!(e.contains("cannot be both"), "{e}");
    let mut without = config.clone();
    without.access.shift_remove("nr");
    let e = Names::choose(&without, None, None).unwrap_err();
    assert!(e.contains("--3gpp"), "{e}");
}

fn entry(precedence: u8, descriptor: Vec<Component>, selection: Selection) -> Entry {
    Entry::Set(Rule {
        identity: None,
        precedence,
        descriptor,
        selection,
    })
}

fn imported(entries: Vec<Entry>) -> (Imported, Vec<String>) {
    let made = import(&Container(vec![Parameter::Rules(entries)]), &names());
    let remarks = made.remarks.iter().map(ToString::to_string).collect();
    (made, remarks)
}

#[test]
fn atsss_rules_become_rules_and_classes() {
    let supported = |mode| Selection::new(Functionality::Supported, mode);
    let active = |active, standby| Mode::ActiveStandby { active, standby };
    let (made, remarks) = imported(vec![
        entry(
            20,
            vec![Component::Protocol(6), Component::RemotePort(22)],
            supported(active(Side::NonThreegpp, false)),
        ),
        entry(
            10,
            vec![Component::RemoteV4(
                [198, 51, 100, 9].into(),
                [255, 255, 255, 0].into(),
            )],
            supported(active(Side::Threegpp, true)),
        ),
        entry(
            255,
            vec![Component::MatchAll],
            supported(Mode::LoadBalancing { tens: 7 }),
        ),
    ]);
    assert!(remarks.is_empty(), "{remarks:?}");
    let wanted = "[class.3gpp-first]
mode = \"active-standby\"
order = [\"nr\", \"wifi\"]

[class.non-3gpp-only]
mode = \"active-standby\"
order = [\"wifi\"]
standby = false

[class.share-70-30]
mode = \"load-balancing\"

[class.share-70-30.weights]
nr = 70.0
wifi = 30.0

[[rule]]
name = \"precedence 10\"
to = [\"198.51.100.0/24\"]
class = \"3gpp-first\"

[[rule]]
name = \"precedence 20\"
protocol = [\"tcp\"]
port = [\"22\"]
class = \"non-3gpp-only\"

[[rule]]
name = \"precedence 255\"
class = \"share-70-30\"
";
    assert_eq!(made.toml().unwrap(), wanted);
    assert_eq!(config(wanted).rule, made.rule);
}

#[test]
fn what_a_configuration_has_no_key_for_is_said() {
    let delay = || Selection::new(Functionality::Supported, Mode::SmallestDelay);
    let lone = |component| vec![component];
    let later = Selection {
        functionality: Functionality::Mptcp,
        mode: Mode::SmallestDelay,
        later: vec![1, 0, 100],
    };
    let redundant = Selection::new(
        Functionality::Other(4),
        Mode::Other {
            mode: 5,
            information: vec![1],
        },
    );
    let (made, remarks) = imported(vec![
        entry(1, lone(Component::Fqdn(b"example.org".to_vec())), delay()),
        entry(2, lone(Component::LocalPort(80)), delay()),
        entry(3, lone(Component::TrafficClass(0xb8, 0xff)), delay()),
        entry(
            4,
            lone(Component::RemoteV4([10; 4].into(), [255, 0, 255, 0].into())),
            delay(),
        ),
        entry(
            5,
            lone(Component::OsApp(b"org.example.app".to_vec())),
            later,
        ),
        entry(6, lone(Component::MatchAll), redundant),
        entry(
            7,
            vec![
                Component::LocalV4([10; 4].into(), [255; 4].into()),
                Component::SourceMac([2; 6]),
            ],
            delay(),
        ),
        entry(
            8,
            vec![Component::Protocol(47), Component::RemotePort(1)],
            delay(),
        ),
        entry(
            9,
            vec![Component::RemotePort(1), Component::RemotePort(2)],
            delay(),
        ),
        entry(9, lone(Component::MatchAll), delay()),
    ]);
    let behind = "; what it is for meets the rules behind it";
    let wanted = [
        format!("precedence 1: left out: destination FQDN: no counterpart{behind}"),
        format!("precedence 2: left out: single local port: no counterpart{behind}"),
        format!(
            "precedence 3: left out: type of service/traffic class: mask 0xff is not that of a code point{behind}"
        ),
        format!(
            "precedence 4: left out: IPv4 remote address: mask 255.0.255.0 is no prefix{behind}"
        ),
        "precedence 5: its OS App Id is taken for the name of a unit".to_owned(),
        "precedence 5: asks for the functionality MPTCP: a class goes over Multipath QUIC"
            .to_owned(),
        "precedence 5: octets 010064 of a later release are left out; they may have thresholds"
            .to_owned(),
        format!("precedence 6: left out: steering mode 5 with 01 is not of Release 16{behind}"),
        format!(
            "precedence 7: left out: a local address and a MAC address together have no counterpart{behind}"
        ),
        format!(
            "precedence 8: left out: `port` is for tcp and udp, and this rule names the protocol gre, too: make it two rules{behind}"
        ),
        "precedence 9: of several components of one kind, one is to be met".to_owned(),
        "precedence 9: its ports count with TCP and UDP alone".to_owned(),
    ];
    assert_eq!(remarks, wanted);
    assert_eq!(made.rule.len(), 3);
    let text = made.toml().unwrap();
    let read = config(&text);
    let titles = read.rules().unwrap().into_iter().map(|r| r.name.unwrap());
    assert_eq!(
        titles.collect::<Vec<_>>(),
        ["precedence 5", "precedence 9", "precedence 9, 2"]
    );
    assert!(text.starts_with("# precedence 1: left out"), "{text}");
}

#[test]
fn no_more_classes_are_made_than_there_may_be() {
    let balanced = |tens: u8| {
        let mode = Mode::LoadBalancing { tens };
        let selection = Selection::new(Functionality::Supported, mode);
        entry(tens, vec![Component::MatchAll], selection)
    };
    let (made, remarks) = imported((0..=10).map(balanced).collect());
    assert_eq!((made.class.len(), made.rule.len()), (7, 7));
    assert_eq!(remarks.len(), 4);
    assert!(remarks[0].contains("beside 7 others"), "{remarks:?}");
}

/// Rule of a configuration that has a counterpart, but for its class.
fn rule() -> impl Strategy<Value = String> {
    let to = prop::sample::select(vec![
        "10.0.0.0/8",
        "10.1.0.0/16",
        "2001:db8::/32",
        "10.1.2.3",
    ]);
    let client = prop::sample::select(vec!["192.168.1.0/24", "192.168.1.7", "02:00:5e:10:00:01"]);
    let protocol = prop::sample::select(vec!["tcp", "udp"]);
    let port = prop::sample::select(vec!["80", "443", "80-443", "1000-2000"]);
    let dscp = prop::sample::select(vec!["ef", "cs1", "0"]);
    let list = |key: &'static str, of: prop::sample::Select<&'static str>| {
        prop::collection::vec(of, 0..3).prop_map(move |mut values| {
            values.dedup();
            match values.is_empty() {
                true => String::new(),
                false => format!("{key} = {values:?}\n"),
            }
        })
    };
    let keys = (
        list("to", to),
        list("client", client),
        list("protocol", protocol),
        list("port", port),
        list("dscp", dscp),
    );
    let class = prop::sample::select(vec!["a", "b", "c", "d"]);
    (keys, class).prop_map(|((to, client, protocol, port, dscp), class)| {
        format!("[[rule]]\n{to}{client}{protocol}{port}{dscp}class = \"{class}\"\n")
    })
}

const CLASSES: &str = "[class.a]
mode = \"active-standby\"
order = [\"wifi\"]
standby = false
[class.b]
mode = \"priority-based\"
order = [\"nr\", \"wifi\"]
[class.c]
mode = \"load-balancing\"
weights = { nr = 30, wifi = 70 }
[class.d]
mode = \"smallest-delay\"
";

fn flow() -> impl Strategy<Value = Flow> {
    let ip = |all: &'static [&'static str]| {
        prop::sample::select(all).prop_map(|a| a.parse::<IpAddr>().unwrap())
    };
    (
        ip(&[
            "10.1.2.3",
            "10.1.9.9",
            "10.9.9.9",
            "192.0.2.1",
            "2001:db8::7",
        ]),
        ip(&["192.168.1.7", "192.168.1.8", "192.168.2.7"]),
        (any::<bool>(), prop::sample::select(vec![6u8, 17])),
        prop::sample::select(vec![80u16, 81, 443, 1500, 3000]),
        prop::sample::select(vec![0u8, 8, 46, 47]),
    )
        .prop_map(|(to, client, (is_first, protocol), port, dscp)| Flow {
            // A packet is of one family.
            client: Some(match to.is_ipv4() {
                true => client,
                false => "2001:db8:1::7".parse().unwrap(),
            }),
            mac: Some(Mac([2, 0, 0x5e, 0x10, 0, u8::from(is_first)])),
            protocol: Some(protocol),
            port: Some(port),
            dscp: Dscp::new(dscp),
            ..Flow::to(to)
        })
}

/// Steering of what the device sends of a flow; `None` where no rule decides.
fn steered(config: &Config<DeviceAccess>, flow: &Flow) -> Option<braid_core::class::ClassSteering> {
    let rules = config.rules().unwrap();
    let (_, decides) = ask(&rules, flow);
    match &rules[decides?].outcome {
        Outcome::Class(class) => {
            let steering = config.class[class].steering();
            Some(steering.get(Direction::Up).clone())
        }
        other => panic!("{other}"),
    }
}

proptest! {
    #[test]
    fn flows_are_steered_alike_on_the_other_side(
        rules in prop::collection::vec(rule(), 1..5), flows in prop::collection::vec(flow(), 1..30), numbered: bool,
    ) {
        let before = config(&format!("{CLASSES}{}", rules.concat()));
        let exported = export(&before, &names(), numbered).unwrap();
        let form = Form { numbered, inclusive: numbered };
        let octets = exported.container.encode(form).unwrap();
        let (read, found) = Container::decode(&octets).unwrap();
        prop_assert_eq!(&read, &exported.container);
        // Without rules all forms are the same.
        prop_assert!(found == form || read.rules().is_empty());
        let after = config(&import(&read, &names()).toml().unwrap());
        for flow in &flows {
            prop_assert_eq!(steered(&before, flow), steered(&after, flow), "{:?}", flow);
        }
    }

    #[test]
    fn whatever_is_imported_is_a_configuration(octets in prop::collection::vec(any::<u8>(), 0..40), mode in 1u8..6, information in 0u8..13) {
        // A descriptor of any octets, in a rule that is right.
        let mut rule = vec![9];
        rule.extend((octets.len() as u16 + 1).to_be_bytes());
        rule.push(1);
        rule.extend(&octets);
        match mode {
            2 => rule.extend([3, 1, 2]),
            _ => rule.extend([4, 1, mode, information]),
        }
        let mut all = vec![1];
        all.extend((rule.len() as u16 + 2).to_be_bytes());
        all.extend((rule.len() as u16).to_be_bytes());
        all.extend(rule);
        if let Ok(container) = Container::decode_as(&all, Form::default()) {
            let made = import(&container, &names());
            prop_assert!(!made.rule.is_empty() || !made.remarks.is_empty());
            config(&made.toml().unwrap());
        }
    }
}
