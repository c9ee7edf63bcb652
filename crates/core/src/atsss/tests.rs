//! Octets put together by hand, and properties of the codec.

use proptest::prelude::*;

use super::*;
use crate::mutate::Mutator;

/// Reads octets written as hexadecimal digits; what stands behind `#` in a line is a comment.
fn octets(text: &str) -> Vec<u8> {
    let code = text
        .lines()
        .map(|l| l.split_once('#').map_or(l, |(code, _)| code));
    let digits: Vec<char> = code
        .flat_map(str::chars)
        .filter(char::is_ascii_hexdigit)
        .collect();
    let pairs = digits.chunks(2).map(|p| p.iter().collect::<String>());
    pairs.map(|p| u8::from_str_radix(&p, 16).unwrap()).collect()
}

fn plain() -> Form {
    Form::default()
}

fn rule(precedence: u8, descriptor: Vec<Component>, selection: Selection) -> Entry {
    Entry::Set(Rule {
        identity: None,
        precedence,
        descriptor,
        selection,
    })
}

#[test]
fn a_container_of_release_16_is_read_octet_by_octet() {
    let bytes = octets(
        "01 0030                 # 6.1.2: ATSSS rules, 48 octets
         001d                    # 6.1.3.2: rule of 29 octets
         0a                      # precedence 10
         0016                    # descriptor of 22 octets
         10 c6336400 ffffff00    # TS 24.526 5.2: IPv4 remote address 198.51.100.0, mask
         30 11                   # protocol identifier 17
         51 1388 176f            # remote port range 5000 to 5999
         70 b8 fc                # type of service 0xb8, mask 0xfc
         50 01bb                 # single remote port 443
         04 02 01 02             # 4 octets, MPTCP, active-standby, 3GPP active and non-3GPP standby
         000f
         ff
         0009
         60 00001234             # security parameter index
         80 0fffff               # flow label: 4 spare bits, 20 bits
         03 01 02                # 3 octets, any functionality, smallest delay",
    );
    let (container, form) = Container::decode(&bytes).unwrap();
    assert_eq!(form, plain());
    let active = Mode::ActiveStandby {
        active: Side::Threegpp,
        standby: true,
    };
    let wanted = vec![
        rule(
            10,
            vec![
                Component::RemoteV4([198, 51, 100, 0].into(), [255, 255, 255, 0].into()),
                Component::Protocol(17),
                Component::RemotePorts(5000, 5999),
                Component::TrafficClass(0xb8, 0xfc),
                Component::RemotePort(443),
            ],
            Selection::new(Functionality::Mptcp, active),
        ),
        rule(
            255,
            vec![
                Component::SecurityParameterIndex(0x1234),
                Component::FlowLabel(0xf_ffff),
            ],
            Selection::new(Functionality::Supported, Mode::SmallestDelay),
        ),
    ];
    assert_eq!(container, Container(vec![Parameter::Rules(wanted)]));
    let written = container.encode(form).unwrap();
    assert_eq!(written, bytes);
}

#[test]
fn every_component_is_read_and_written() {
    use Component::*;
    let vectors: [(&str, Component); 27] = [
        ("01", MatchAll),
        (
            "08 000102030405060708090a0b0c0d0e0f 03 617070",
            OsIdApp {
                os: std::array::from_fn(|i| i as u8),
                app: b"app".to_vec(),
            },
        ),
        (
            "10 c0000201 ffffffff",
            RemoteV4([192, 0, 2, 1].into(), [255; 4].into()),
        ),
        (
            "11 0a000000 ff000000",
            LocalV4([10, 0, 0, 0].into(), [255, 0, 0, 0].into()),
        ),
        (
            "21 20010db8000000000000000000000000 20",
            RemoteV6("2001:db8::".parse().unwrap(), 32),
        ),
        (
            "23 20010db8000000000000000000000001 80",
            LocalV6("2001:db8::1".parse().unwrap(), 128),
        ),
        ("30 06", Protocol(6)),
        ("40 0016", LocalPort(22)),
        ("41 0400 ffff", LocalPorts(1024, 65535)),
        ("50 0050", RemotePort(80)),
        ("51 0000 0000", RemotePorts(0, 0)),
        ("60 ffffffff", SecurityParameterIndex(u32::MAX)),
        ("70 2e 3f", TrafficClass(0x2e, 0x3f)),
        ("80 0abcde", FlowLabel(0xa_bcde)),
        ("81 02005e100001", DestinationMac([2, 0, 0x5e, 0x10, 0, 1])),
        ("82 02005e100002", SourceMac([2, 0, 0x5e, 0x10, 0, 2])),
        ("83 0fff", CTagVid(4095)),
        ("84 0001", STagVid(1)),
        ("85 0f", CTagPcpDei(15)),
        ("86 04", STagPcpDei(4)),
        ("87 0800", Ethertype(0x800)),
        ("88 09 08 696e7465726e6574", Dnn(b"\x08internet".to_vec())),
        ("90 02 01 08", ConnectionCapabilities(vec![1, 8])),
        (
            "91 0b 6578616d706c652e6f7267",
            Fqdn(b"example.org".to_vec()),
        ),
        ("a0 03 617070", OsApp(b"app".to_vec())),
        ("a0 00", OsApp(vec![])),
        (
            "fe 0102",
            Other {
                identifier: 0xfe,
                contents: vec![1, 2],
            },
        ),
    ];
    for (text, component) in vectors {
        let bytes = octets(text);
        let mut reader = Reader::new(&bytes);
        assert_eq!(Component::decode(&mut reader).as_ref(), Ok(&component));
        assert!(reader.is_empty(), "{component:?}");
        let mut written = Vec::new();
        component.encode(&mut written).unwrap();
        assert_eq!(written, bytes, "{component:?}");
        assert_eq!(component.identifier(), bytes[0]);
        // Cut anywhere, it is no component; an unknown one may be of any length.
        for n in 0..bytes.len() {
            let mut cut = Reader::new(&bytes[..n]);
            let read = Component::decode(&mut cut);
            assert!(read.is_err() || bytes[0] == 0xfe, "{component:?} at {n}");
        }
    }
    // Spare bits are not looked at: 24.007 11.2.
    let spare = octets("80 fabcde");
    let read = Component::decode(&mut Reader::new(&spare));
    assert_eq!(read, Ok(FlowLabel(0xa_bcde)));
}

#[test]
fn every_steering_mode_of_release_16_has_its_octets() {
    use Side::*;
    let active = |active, standby| Mode::ActiveStandby { active, standby };
    // Table 6.1.3.2-1.
    let mut vectors = vec![
        (vec![4, 1, 1, 1], active(Threegpp, false)),
        (vec![4, 1, 1, 2], active(Threegpp, true)),
        (vec![4, 1, 1, 3], active(NonThreegpp, false)),
        (vec![4, 1, 1, 4], active(NonThreegpp, true)),
        (vec![3, 1, 2], Mode::SmallestDelay),
        (vec![4, 1, 4, 1], Mode::PriorityBased { high: Threegpp }),
        (vec![4, 1, 4, 2], Mode::PriorityBased { high: NonThreegpp }),
    ];
    // 1 is 100 % on the 3GPP access, 11 is 0 %.
    for tens in 0..=10 {
        vectors.push((vec![4, 1, 3, 11 - tens], Mode::LoadBalancing { tens }));
    }
    for (bytes, mode) in vectors {
        let selection = Selection::new(Functionality::Supported, mode);
        let read = Selection::decode(&mut Reader::new(&bytes));
        assert_eq!(read.as_ref(), Ok(&selection));
        let mut written = Vec::new();
        selection.encode(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    let functionality = |octet| {
        let bytes = [3, octet, 2];
        Selection::decode(&mut Reader::new(&bytes))
            .unwrap()
            .functionality
    };
    assert_eq!(
        [1, 2, 3, 4].map(functionality),
        [
            Functionality::Supported,
            Functionality::Mptcp,
            Functionality::LowLayer,
            Functionality::Other(4)
        ]
    );
}

#[test]
fn what_a_later_release_adds_is_kept() {
    for bytes in [
        vec![4u8, 4, 5, 1], // A functionality and a mode that Release 16 does not have.
        vec![3, 1, 5],      // Such a mode without information.
        vec![4, 1, 3, 12],  // A share that Release 16 does not have.
        vec![3, 1, 3],      // Shares without information.
        vec![7, 1, 3, 3, 1, 0, 100], // Octets behind the shares.
        vec![6, 1, 2, 1, 0, 100], // Octets behind smallest delay.
    ] {
        let selection = Selection::decode(&mut Reader::new(&bytes)).unwrap();
        let mut written = Vec::new();
        selection.encode(&mut written).unwrap();
        assert_eq!(written, bytes);
    }
    let later = [7, 1, 3, 3, 1, 0, 100];
    let selection = Selection::decode(&mut Reader::new(&later)).unwrap();
    assert_eq!(selection.mode, Mode::LoadBalancing { tens: 8 });
    assert_eq!(selection.later, [1, 0, 100]);
    let unknown = octets("7f 0002 abcd");
    let (container, _) = Container::decode(&unknown).unwrap();
    assert_eq!(container.encode(plain()).unwrap(), unknown);
}

#[test]
fn rules_with_identities_are_told_from_those_without() {
    // Identity, operation and precedence; the length counts itself in the second.
    for (length, inclusive) in [("000a", false), ("000c", true)] {
        let text = format!(
            "01 001c                                  # 12 + 12 + 4 octets
             {length} 07 01 05 0001 01 04 03 01 03   # rule 7: set
             {length} 09 01 04 0001 01 04 03 01 01   # rule 9: set
             {} 07 02                                # rule 7: delete",
            if inclusive { "0004" } else { "0002" }
        );
        let bytes = octets(&text);
        let (container, form) = Container::decode(&bytes).unwrap();
        let wanted = Form {
            numbered: true,
            inclusive,
        };
        assert_eq!(form, wanted);
        assert_eq!(container.encode(form).unwrap(), bytes);
        let rules = container.rules();
        assert_eq!(rules.len(), 1, "rule 7 is deleted");
        assert_eq!((rules[0].identity, rules[0].precedence), (Some(9), 4));
        assert!(matches!(
            container.encode(plain()),
            Err(EncodeError::Form(_))
        ));
    }
}

#[test]
fn the_rule_of_the_least_precedence_is_asked_first() {
    let selection = || Selection::new(Functionality::Supported, Mode::SmallestDelay);
    let entries = [30, 10, 20].map(|p| rule(p, vec![Component::MatchAll], selection()));
    let container = Container(vec![Parameter::Rules(entries.to_vec())]);
    let order = container.rules().into_iter().map(|r| r.precedence);
    assert_eq!(order.collect::<Vec<_>>(), [10, 20, 30]);
}

#[test]
fn parameters_beside_the_rules_are_read() {
    let bytes = octets(
        "02 0027                                        # 6.1.4.2: network steering, 39 octets
         01 c0000201                                    # the device over 3GPP: IPv4
         02 20010db8000000000000000000000001            # and over non-3GPP: IPv6
         10                                             # proxies: 16 octets
         01 c6336401 1151 01                            # 198.51.100.1, port 4433, converter
         01 c6336402 1151 01
         03 000a                                        # 6.1.5.2: measurement assistance, IP
         01 c6336403 1388 1389 01                       # PMF address, ports, AARI
         03 000d 02005e100001 02005e100002 00           # 6.1.5.2: Ethernet",
    );
    let (container, form) = Container::decode(&bytes).unwrap();
    let converter = |last| Proxy {
        addresses: Addresses::V4([198, 51, 100, last].into()),
        port: 4433,
        kind: 1,
    };
    let wanted = [
        Parameter::Network(NetworkSteering {
            threegpp: Addresses::V4([192, 0, 2, 1].into()),
            non_threegpp: Addresses::V6("2001:db8::1".parse().unwrap()),
            proxies: vec![converter(1), converter(2)],
            later: vec![],
        }),
        Parameter::Measurement(Measurement::Ip {
            addresses: Addresses::V4([198, 51, 100, 3].into()),
            threegpp_port: 5000,
            non_threegpp_port: 5001,
            reports: true,
            later: vec![],
        }),
        Parameter::Measurement(Measurement::Ethernet {
            threegpp: [2, 0, 0x5e, 0x10, 0, 1],
            non_threegpp: [2, 0, 0x5e, 0x10, 0, 2],
            reports: false,
        }),
    ];
    assert_eq!(container.0, wanted);
    assert_eq!(container.encode(form).unwrap(), bytes);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (text, offset, words) in [
        ("", 0, "at least one parameter"),
        ("01", 1, "the length of a parameter"),
        ("01 0004 0000", 5, "it ends within a parameter"),
        ("01 0004 0005 00", 6, "it ends within"),
        (
            "01 0009 0007 0a 0000 04 01 01 01",
            8,
            "at least one component",
        ),
        (
            "01 000a 0008 0a 0001 01 02 01 01 01",
            9,
            "at least 3 octets",
        ),
        (
            "01 000a 0008 0a 0001 01 09 01 01 01",
            13,
            "an access selection descriptor",
        ),
        (
            "01 000b 0009 0a 0001 01 04 01 01 01 00",
            13,
            "1 octets too many in a rule",
        ),
        (
            "01 000e 000c 0a 0005 51 0002 0001 04 01 01 01",
            9,
            "no range of ports",
        ),
        ("02 0001 04", 3, "type 1 (IPv4)"),
        ("03 0001 01", 4, "the address for measurements"),
    ] {
        let e = Container::decode_as(&octets(text), plain()).unwrap_err();
        assert_eq!(e.offset, offset, "{text}: {e}");
        assert!(e.what.contains(words), "{text}: {e}");
    }
    let long = vec![0; MAX_BYTES + 1];
    let e = Container::decode(&long).unwrap_err();
    assert_eq!(e.offset, MAX_BYTES);
}

#[test]
fn values_without_octets_are_refused() {
    let with = |component: Component, mode: Mode| {
        let selection = Selection::new(Functionality::Supported, mode);
        let entries = vec![rule(1, vec![component], selection)];
        Container(vec![Parameter::Rules(entries)]).encode(plain())
    };
    let long = Component::Fqdn(vec![b'a'; 256]);
    let e = with(long, Mode::SmallestDelay).unwrap_err();
    assert_eq!(
        e.to_string(),
        "destination FQDN has 256 octets: at most 255 fit"
    );
    for component in [
        Component::FlowLabel(1 << 20),
        Component::CTagVid(4096),
        Component::STagPcpDei(16),
        Component::RemoteV6(std::net::Ipv6Addr::LOCALHOST, 129),
        Component::RemotePorts(2, 1),
    ] {
        let refused = with(component.clone(), Mode::SmallestDelay);
        assert!(
            matches!(refused, Err(EncodeError::Value { .. })),
            "{component:?}"
        );
    }
    let tens = with(Component::MatchAll, Mode::LoadBalancing { tens: 11 });
    assert!(matches!(tens, Err(EncodeError::Value { value: 11, .. })));
    let many = Parameter::Other {
        identifier: 9,
        contents: vec![0; 40_000],
    };
    let e = Container(vec![many.clone(), many]).encode(plain());
    assert!(matches!(e, Err(EncodeError::TooLong { .. })));
}

#[test]
fn changed_containers_are_read_the_same_or_refused() {
    let seeds: [&[u8]; 3] = [
        include_bytes!("../../../../fuzz/seeds/atsss/plain"),
        include_bytes!("../../../../fuzz/seeds/atsss/numbered"),
        include_bytes!("../../../../fuzz/seeds/atsss/parameters"),
    ];
    assert!(seeds.iter().all(|s| Container::decode(s).is_ok()));
    let mut read = 0;
    for octets in Mutator::new(1, seeds.map(<[u8]>::to_vec)).take(50_000) {
        match Container::decode(&octets) {
            Ok((container, form)) => {
                read += 1;
                let again = container.encode(form).unwrap();
                assert_eq!(Container::decode_as(&again, form), Ok(container));
            }
            Err(e) => assert!(e.offset <= octets.len(), "{e}"),
        }
    }
    assert!(read > 1000, "{read}: most of the reader is not reached");
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..max)
}

fn component() -> impl Strategy<Value = Component> {
    use Component::*;
    let ports = || (any::<u16>(), any::<u16>()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let v4 = || (any::<[u8; 4]>(), any::<[u8; 4]>()).prop_map(|(a, m)| (a.into(), m.into()));
    let v6 = || (any::<[u8; 16]>(), 0u8..=128).prop_map(|(a, n)| (a.into(), n));
    prop_oneof![
        Just(MatchAll),
        (any::<[u8; 16]>(), bytes(256)).prop_map(|(os, app)| OsIdApp { os, app }),
        v4().prop_map(|(a, m)| RemoteV4(a, m)),
        v4().prop_map(|(a, m)| LocalV4(a, m)),
        v6().prop_map(|(a, n)| RemoteV6(a, n)),
        v6().prop_map(|(a, n)| LocalV6(a, n)),
        any::<u8>().prop_map(Protocol),
        any::<u16>().prop_map(LocalPort),
        ports().prop_map(|(a, b)| LocalPorts(a, b)),
        any::<u16>().prop_map(RemotePort),
        ports().prop_map(|(a, b)| RemotePorts(a, b)),
        any::<u32>().prop_map(SecurityParameterIndex),
        any::<(u8, u8)>().prop_map(|(v, m)| TrafficClass(v, m)),
        (0u32..1 << 20).prop_map(FlowLabel),
        any::<[u8; 6]>().prop_map(DestinationMac),
        any::<[u8; 6]>().prop_map(SourceMac),
        (0u16..4096).prop_map(CTagVid),
        (0u16..4096).prop_map(STagVid),
        (0u8..16).prop_map(CTagPcpDei),
        (0u8..16).prop_map(STagPcpDei),
        any::<u16>().prop_map(Ethertype),
        bytes(256).prop_map(Dnn),
        bytes(256).prop_map(ConnectionCapabilities),
        bytes(256).prop_map(Fqdn),
        bytes(256).prop_map(OsApp),
    ]
}

fn side() -> impl Strategy<Value = Side> {
    prop_oneof![Just(Side::Threegpp), Just(Side::NonThreegpp)]
}

fn selection() -> impl Strategy<Value = Selection> {
    let mode = prop_oneof![
        (side(), any::<bool>())
            .prop_map(|(active, standby)| Mode::ActiveStandby { active, standby }),
        Just(Mode::SmallestDelay),
        (0u8..=10).prop_map(|tens| Mode::LoadBalancing { tens }),
        side().prop_map(|high| Mode::PriorityBased { high }),
    ];
    let known = (mode, bytes(20)).prop_map(|(mode, later)| (mode, later));
    let other = (5u8.., bytes(20))
        .prop_map(|(mode, information)| (Mode::Other { mode, information }, vec![]));
    (any::<u8>(), prop_oneof![known, other]).prop_map(|(octet, (mode, later))| {
        let read = Selection::decode(&mut Reader::new(&[3, octet, 2])).unwrap();
        Selection {
            functionality: read.functionality,
            mode,
            later,
        }
    })
}

fn addresses() -> impl Strategy<Value = Addresses> {
    let (v4, v6) = (any::<[u8; 4]>(), any::<[u8; 16]>());
    prop_oneof![
        v4.prop_map(|a| Addresses::V4(a.into())),
        v6.prop_map(|a| Addresses::V6(a.into())),
        any::<([u8; 4], [u8; 16])>().prop_map(|(a, b)| Addresses::Both(a.into(), b.into())),
    ]
}

fn parameter(numbered: bool) -> impl Strategy<Value = Parameter> {
    let set = (
        (any::<u8>(), any::<u8>()),
        prop::collection::vec(component(), 1..6),
        selection(),
    );
    let set = set.prop_map(move |((identity, precedence), descriptor, selection)| {
        Entry::Set(Rule {
            identity: numbered.then_some(identity),
            precedence,
            descriptor,
            selection,
        })
    });
    let entry = match numbered {
        false => set.boxed(),
        true => {
            let delete = (any::<u8>(), bytes(9))
                .prop_map(|(identity, rest)| Entry::Delete { identity, rest });
            prop_oneof![3 => set, 1 => delete].boxed()
        }
    };
    let proxy = (addresses(), any::<(u16, u8)>()).prop_map(|(addresses, (port, kind))| Proxy {
        addresses,
        port,
        kind,
    });
    let network = (
        (addresses(), addresses()),
        prop::collection::vec(proxy, 0..6),
        bytes(6),
    );
    let network = network.prop_map(|((threegpp, non_threegpp), proxies, later)| {
        Parameter::Network(NetworkSteering {
            threegpp,
            non_threegpp,
            proxies,
            later,
        })
    });
    let ip =
        (addresses(), any::<(u16, u16, bool)>(), bytes(3)).prop_map(|(a, (p, q, r), later)| {
            Measurement::Ip {
                addresses: a,
                threegpp_port: p,
                non_threegpp_port: q,
                reports: r,
                later,
            }
        });
    // With three octets more, one of IP is as long as one of Ethernet.
    let ethernet =
        any::<([u8; 6], [u8; 6], bool)>().prop_map(|(a, b, reports)| Measurement::Ethernet {
            threegpp: a,
            non_threegpp: b,
            reports,
        });
    let other = (4u8.., bytes(40)).prop_map(|(identifier, contents)| Parameter::Other {
        identifier,
        contents,
    });
    prop_oneof![
        4 => prop::collection::vec(entry, 0..5).prop_map(Parameter::Rules),
        1 => network,
        1 => prop_oneof![ip, ethernet].prop_map(Parameter::Measurement),
        1 => other,
    ]
}

fn container() -> impl Strategy<Value = (Container, Form)> {
    prop::sample::select(Form::ALL.to_vec()).prop_flat_map(|form| {
        let parameters = prop::collection::vec(parameter(form.numbered), 1..5);
        (parameters.prop_map(Container), Just(form))
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read((container, form) in container()) {
        let bytes = container.encode(form).unwrap();
        prop_assert_eq!(Container::decode_as(&bytes, form), Ok(container));
    }

    #[test]
    fn what_is_read_is_written_and_read_the_same((container, form) in container(), at in any::<prop::sample::Index>(), to: u8) {
        let mut bytes = container.encode(form).unwrap();
        *at.get_mut(&mut bytes) = to;
        for form in Form::ALL {
            if let Ok(read) = Container::decode_as(&bytes, form) {
                let again = read.encode(form).unwrap();
                prop_assert_eq!(Container::decode_as(&again, form), Ok(read));
            }
        }
    }

    #[test]
    fn any_octets_are_read_or_refused_within_them(bytes in bytes(300)) {
        if let Err(e) = Container::decode(&bytes) {
            prop_assert!(e.offset <= bytes.len(), "{e}");
        }
    }

    #[test]
    fn a_container_that_is_cut_is_refused((container, form) in container(), at in any::<prop::sample::Index>()) {
        let bytes = container.encode(form).unwrap();
        let cut = at.index(bytes.len());
        // Behind a parameter it ends as well.
        if let Ok(read) = Container::decode_as(&bytes[..cut], form) {
            prop_assert!(container.0.starts_with(&read.0), "{read:?}");
        }
    }
}
