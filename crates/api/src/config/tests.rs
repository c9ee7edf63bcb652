use proptest::prelude::*;

use super::*;
use braid_core::AccessKind;

const DEVICE: &str = r#"proxy = ["10.77.0.1", "fd77::1"]

[manager]
mesh = "full"
ignore = ["docker*"]

[access.nr]
interface = "wwan*"
kind = "5g"

[access.wifi]
interface = "d2"
address = "fd77::2"
backup = true
weight = 2.5
"#;

fn parse<A: Access>(text: &str, format: Format) -> Result<Config<A>, String> {
    Config::parse(text, format).map_err(|p| p.in_file("f".into(), text).to_string())
}

fn device(text: &str) -> Result<Config<DeviceAccess>, String> {
    parse(text, Format::Toml)
}

fn proxy(text: &str) -> Result<Config<ProxyAccess>, String> {
    parse(text, Format::Toml)
}

#[test]
fn reads_both_forms() {
    let c = device(DEVICE).unwrap();
    assert_eq!(
        (c.engine, c.proxy.len(), c.access.len()),
        (Engine::Mptcp, 2, 2)
    );
    // The order of the file is the order of preference.
    let (name, nr) = c.access.first().unwrap();
    assert_eq!((name.as_str(), nr.kind), ("nr", AccessKind::Nr));
    assert!(c.manager.recover && c.manager.mesh == Mesh::Full && c.probe.enabled);
    let wifi = &c.access["wifi"];
    assert!(wifi.backup && wifi.address == Some("fd77::2".parse().unwrap()));
    let json = r#"{"engine": "tcp", "proxy": "10.77.0.1", "manager": {"recover": false},
        "access": {"z": {"address": "10.77.1.0/24"}, "a": {"address": "10.77.2.2"}}}"#;
    let c: Config<ProxyAccess> = parse(json, Format::Json).unwrap();
    let (name, z) = c.access.first().unwrap();
    assert_eq!((c.engine, name.as_str()), (Engine::Tcp, "z"));
    assert_eq!(z.address.prefix_len(), 24);
    assert!(!c.manager.recover && c.manager.mesh == Mesh::Pairs);
}

#[test]
fn errors_name_the_place() {
    for (from, to, place, word) in [
        ("backup", "bakup", "14:1: ", "did you mean `backup`?"),
        ("[manager]", "[manger]", "3:2: ", "did you mean `manager`?"),
        ("\"d2\"", "\"d 2\"", "12:13: ", "no blank"),
        ("interface = \"d2\"", "", "11:1: ", "needs an interface"),
        ("2.5", "-1", "15:1: ", "above 0"),
        ("2.5", "nan", "15:1: ", "above 0"),
        ("2.5", "1000001", "15:1: ", "at most 1000000"),
        ("fd77::2", "fd77::/64", "13:11: ", "not a prefix"),
        ("fd77::2", "fd77:", "13:11: ", "no address"),
        ("\"fd77::1\"]", "\"10.77.0.2\"]", "1:1: ", "each family"),
        ("docker*", "a/b", "5:10: ", "no slash"),
        ("weight = 2.5", "max_addresses = 9", "15:1: ", "1 to 8"),
        (
            "mesh = \"full\"",
            "mesh = \"fully\"",
            "4:8: ",
            "did you mean `full`?",
        ),
        (
            "mesh = \"full\"",
            "max_addresses_per_interface = 0",
            "4:1: ",
            "1 to 8",
        ),
    ] {
        assert!(DEVICE.contains(from), "{from}");
        let e = device(&DEVICE.replacen(from, to, 1)).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{from} -> {to}: {e}"
        );
    }
    for sizes in ["[1, 2]", "[0, 1, 2]", "[3, 2, 4]", "[1, 2, 4294967295]"] {
        let to = format!("[buffers]\ntcp_wmem = {sizes}\n[access.nr]");
        let e = device(&format!("{to}\ninterface = \"d1\"")).unwrap_err();
        assert!(e.starts_with("f:2:"), "{sizes}: {e}");
    }
    let e = parse::<ProxyAccess>("{\"engine\": \"mptpc\"}", Format::Json).unwrap_err();
    assert!(
        e.starts_with("f:1:") && e.contains("did you mean `mptcp`?"),
        "{e}"
    );
    assert!(proxy("").is_ok());
    assert!(device("").unwrap_err().contains("at least one access"));
}

#[test]
fn a_proxy_knows_addresses_only() {
    for (text, word) in [
        (
            "interface = \"d1\"\naddress = \"10.0.0.1\"",
            "without interface",
        ),
        ("kind = \"5g\"", "give one, or a prefix"),
        ("address = \"10.0.0.1\"\nbackup = true", "at the device"),
        ("address = \"10.0.0.1\"\npriority = 1", "at the device"),
        ("address = \"10.0.0.1\"\nmax_addresses = 1", "at the device"),
        (
            "address = \"10.0.0.1\"\nexpected = { up = \"1 Mbit/s\" }",
            "set it there",
        ),
        (
            "address = \"10.0.0.1\"\n[access.b]\naddress = \"10.0.0.1\"",
            "same address",
        ),
    ] {
        let e = proxy(&format!("[access.a]\n{text}")).unwrap_err();
        assert!(e.contains(word), "{text}: {e}");
    }
    let e = proxy("[manager]\nbackup = true").unwrap_err();
    assert!(e.starts_with("f:2:1: unknown key `backup`"), "{e}");
}

#[test]
fn what_a_proxy_announces_can_be_connected_to() {
    let with = |list: &str, more: &str| format!("announce = [{list}]\n{more}");
    let c = proxy(&with("\"192.0.2.1\", \"2001:db8::1\"", ""));
    assert_eq!(c.unwrap().announce.len(), 2);
    let nine = (1..=9)
        .map(|n| format!("\"192.0.2.{n}\","))
        .collect::<String>();
    for (list, more, word) in [
        ("\"::\"", "", "no device can"),
        ("\"127.0.0.1\"", "", "no device can"),
        ("\"192.0.2.1\", \"192.0.2.1\"", "", "twice"),
        (&nine, "", "8 announced"),
        ("\"192.0.2.1\"", "engine = \"tcp\"", "mptcp"),
    ] {
        let e = proxy(&with(list, more)).unwrap_err();
        assert!(e.starts_with("f:1:1: ") && e.contains(word), "{e}");
    }
    let e = device(&with("\"192.0.2.1\"", DEVICE)).unwrap_err();
    assert!(e.contains("a device does not"), "{e}");
}

#[test]
fn what_multipath_quic_lacks_is_refused() {
    const QUIC: &str = "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[access.nr]\n\
                        interface = \"d1\"\n[mpquic]\npins = [\"sha256/x\"]\n";
    assert!(device(QUIC).is_ok());
    for (from, to, place, word) in [
        ("proxy = \"10.77.0.1\"", "", "1:1: ", "proxy's address"),
        ("\"d1\"", "\"d*\"", "4:1: ", "its whole name"),
        ("pins = [\"sha256/x\"]", "", "5:2: ", "whom to trust"),
        (
            "pins = [\"sha256/x\"]",
            "anyone = true",
            "6:1: ",
            "give its pin",
        ),
        ("pins =", "anyone = true\npins =", "7:1: ", "only one"),
        ("pins =", "key = \"k\"\npins =", "6:1: ", "come together"),
        (
            "pins =",
            "allow = [\"::/0\"]\npins =",
            "6:1: ",
            "at the proxy",
        ),
        ("pins =", "port = 0\npins =", "6:1: ", "1 to 65535"),
        (
            "pins =",
            "lane = \"streams\"\npins =",
            "6:8: ",
            "did you mean `stream`?",
        ),
        (
            "pins =",
            "lane = \"stream\"\nsend_window = 100000\npins =",
            "7:1: ",
            "only the datagram lane",
        ),
        (
            "[mpquic]",
            "expected = { down = \"1 bit/s\" }\n[mpquic]",
            "5:1: ",
            "1 kbit/s to 1000 Gbit/s",
        ),
        (
            "[mpquic]",
            "[scheduler]\ncc = \"olia\"\n[mpquic]",
            "6:1: ",
            "[mpquic] cc",
        ),
        ("\"mpquic\"", "\"mptcp\"", "5:2: ", "has [mpquic]"),
    ] {
        assert!(QUIC.contains(from), "{from}");
        let e = device(&QUIC.replacen(from, to, 1)).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{from} -> {to}: {e}"
        );
    }
    let listens = "[mpquic]\nanyone = true\nforward = [{ listen = \"[::1]:1\", to = \"[::1]:2\" }]";
    let e = proxy(&format!("engine = \"mpquic\"\nproxy = \"::1\"\n{listens}")).unwrap_err();
    assert!(
        e.starts_with("f:5:1: ") && e.contains("from the device"),
        "{e}"
    );
}

#[test]
fn rates_are_expected_on_the_datagram_lane_alone() {
    let with = |engine: &str, lane: &str| {
        device(&format!(
            "engine = \"{engine}\"\nproxy = \"::1\"\n[access.a]\ninterface = \"d1\"\n\
             expected = {{ down = \"20 Mbit/s\" }}\n{lane}"
        ))
    };
    let quic = "[mpquic]\npins = [\"x\"]\n";
    let c = with("mpquic", quic).unwrap();
    let down = c.access["a"].expected.down;
    assert_eq!(down, Some(braid_core::Rate::from_mbps(20.0)));
    let e = with("mpquic", &format!("{quic}lane = \"stream\"")).unwrap_err();
    assert!(e.contains(NO_LANE), "{e}");
    let e = with("mptcp", "").unwrap_err();
    assert!(
        e.starts_with("f:5:1: ") && e.contains(KERNEL_WINDOWS),
        "{e}"
    );
}

#[test]
fn the_file_of_a_proxy_is_read_as_it_was_written() {
    let of = |address: &str, weight| ProxyAccess {
        address: address.parse().unwrap(),
        kind: AccessKind::Nr,
        weight,
    };
    let config = Config {
        engine: Engine::Mpquic,
        proxy: vec!["10.0.0.1".parse().unwrap()],
        access: IndexMap::from([
            ("z".to_owned(), of("10.77.0.0/16", Some(2.5))),
            ("a".to_owned(), of("fd77::2/128", None)),
        ]),
        mpquic: Some(Mpquic {
            anyone: true,
            allow: vec!["10.0.0.0/8".parse().unwrap()],
            ..Mpquic::default()
        }),
        ..Config::default()
    };
    let toml = toml::to_string(&config).unwrap();
    assert_eq!(proxy(&toml), Ok(config.clone()), "{toml}");
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(parse(&json, Format::Json), Ok(config), "{json}");
}

fn some<T: Clone + std::fmt::Debug + 'static>(
    all: impl Into<Vec<T>>,
) -> impl Strategy<Value = Option<T>> {
    prop::option::of(prop::sample::select(all.into()))
}

fn access() -> impl Strategy<Value = DeviceAccess> {
    let rate =
        || prop::option::of((1_000u64..=1_000_000_000_000).prop_map(braid_core::Rate::from_bps));
    (
        "[a-z]{1,4}[0-9]",
        some(["10.0.0.7", "fd77::7"]),
        some([1, 8]),
        any::<bool>(),
        any::<Option<u16>>(),
        some([0.5, 1.0, 7.25]),
        (rate(), rate()),
    )
        .prop_map(
            |(interface, address, max_addresses, backup, priority, weight, (down, up))| {
                DeviceAccess {
                    interface: interface.parse().unwrap(),
                    kind: AccessKind::Lte,
                    address: address.map(|a| a.parse().unwrap()),
                    max_addresses,
                    backup,
                    priority,
                    weight,
                    expected: crate::Expected { down, up },
                }
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        access in access(), pin in any::<Option<bool>>(), window in some([65_536, 1 << 30]),
        rmem in some([[1, 2, 3]]), full in any::<bool>(),
    ) {
        let config = Config {
            engine: Engine::Mpquic,
            proxy: vec!["10.0.0.1".parse().unwrap(), "fd77::1".parse().unwrap()],
            manager: Manager {
                mesh: if full { Mesh::Full } else { Mesh::Pairs },
                ignore: vec!["docker*".parse().unwrap()],
                ..Manager::default()
            },
            buffers: Buffers { tcp_rmem: rmem, ..Buffers::default() },
            scheduler: Some(Scheduler { pin, ..Scheduler::default() }),
            access: IndexMap::from([("one".to_owned(), access)]),
            mpquic: Some(Mpquic {
                send_window: window,
                pins: vec!["sha256/x".to_owned()],
                forward: vec![Forward {
                    listen: "127.0.0.1:1".parse().unwrap(),
                    to: "[fd77::1]:2".parse().unwrap(),
                }],
                ..Mpquic::default()
            }),
            ..Config::default()
        };
        let toml = toml::to_string(&config).unwrap();
        prop_assert_eq!(device(&toml), Ok(config.clone()), "{}", toml);
        let json = serde_json::to_string(&config).unwrap();
        prop_assert_eq!(parse(&json, Format::Json), Ok(config), "{}", json);
    }

    #[test]
    fn garbage_does_not_panic(s in "\\PC*") {
        for format in [Format::Toml, Format::Json] {
            let _ = parse::<DeviceAccess>(&s, format);
            let _ = parse::<ProxyAccess>(&s, format);
        }
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(at in 0usize..200, with in "[a-z\"=\\[\\]\n ]{0,3}") {
        let mut text = DEVICE.to_owned();
        let at = at.min(text.len());
        text.replace_range(at..(at + 2).min(text.len()), &with);
        let _ = device(&text);
    }
}
