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
        (c.engines(), c.proxy.len(), c.access.len()),
        (vec![Engine::Mptcp], 2, 2)
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
    assert_eq!((c.engines(), name.as_str()), (vec![Engine::Tcp], "z"));
    assert_eq!(z.address.prefix_len(), 24);
    assert!(!c.manager.recover && c.manager.mesh == Mesh::Pairs);
}

#[test]
fn tcp_probes_are_found_by_their_earlier_name_too() {
    let tcp = |probe: &str| {
        let text = format!("[probe]\n{probe}\n[access.nr]\ninterface = \"d1\"\n");
        device(&text).map(|c| c.probe.tcp)
    };
    assert_eq!(tcp(""), Ok(true));
    assert_eq!(tcp("tcp = false"), Ok(false));
    assert_eq!(tcp("knock = false"), Ok(false));
    assert!(tcp("tcp = false\nknock = true").is_err());
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
fn each_access_can_have_an_interface() {
    const TWO: &str = "[access.nr]\ninterface = \"w0\"\n[access.wifi]\ninterface = \"w0\"\n";
    let e = device(TWO).unwrap_err();
    assert!(e.starts_with("f:4:1: access \"wifi\" never has"), "{e}");
    let e = device(&TWO.replacen("w0", "*", 1)).unwrap_err();
    assert!(
        e.starts_with("f:4:1: ") && e.contains("\"nr\" stands before"),
        "{e}"
    );
    // The other way round something is left for the second.
    let e = device(&TWO.replace(
        "\"w0\"\n[access.wifi]\ninterface = \"w0\"",
        "\"w0\"\n[access.wifi]\ninterface = \"*\"",
    ));
    assert!(e.is_ok(), "{e:?}");
    // Other engines tell them by address.
    let pinned = "engine = \"tcp\"\n[access.a]\ninterface = \"w0\"\naddress = \"10.0.0.1\"\n\
                  [access.b]\ninterface = \"w0\"\naddress = \"10.0.0.2\"";
    assert!(device(pinned).is_ok());
    let e = device(&pinned.replacen("tcp", "mptcp", 1)).unwrap_err();
    assert!(e.starts_with("f:6:1: "), "{e}");
}

#[test]
fn probes_at_rest_are_within_an_hour() {
    let with = |s: &str| proxy(&format!("[probe]\nidle_interval = {s}"));
    assert_eq!(with("3600").unwrap().probe.idle_interval, 3600);
    assert_eq!(proxy("").unwrap().probe.idle_interval, 1);
    for bad in ["0", "3601"] {
        let e = with(bad).unwrap_err();
        assert!(e.starts_with("f:2:1: ") && e.contains("1 to 3600"), "{e}");
    }
}

#[test]
fn a_group_may_read() {
    let with = |group: &str| proxy(&format!("[control_socket]\ngroup = \"{group}\""));
    let c = with("braid").unwrap();
    assert_eq!(c.control_socket.group.as_deref(), Some("braid"));
    let long = "a".repeat(33);
    for bad in ["", "a b", "a/b", &*long] {
        let e = with(bad).unwrap_err();
        assert!(
            e.starts_with("f:2:1: ") && e.contains("name of a group"),
            "{bad}: {e}"
        );
    }
}

#[test]
fn the_proxy_is_a_host() {
    for (proxy_address, refused) in [
        ("\"0.0.0.0\"", true),
        ("\"::\"", true),
        ("\"224.0.0.1\"", true),
        ("[\"192.0.2.1\", \"ff02::1\"]", true),
        ("\"192.0.2.1\"", false),
    ] {
        let text = format!("proxy = {proxy_address}\n[access.nr]\ninterface = \"w0\"");
        match device(&text) {
            Ok(_) => assert!(!refused, "{text}"),
            Err(e) => assert!(refused && e.starts_with("f:1:1: "), "{text}: {e}"),
        }
    }
    let named = device(&DEVICE.replacen("\"10.77.0.1\"", "\"proxy.example.org\"", 1)).unwrap();
    assert_eq!(named.proxy[0], Host::Name("proxy.example.org".into()));
    let e = device(&DEVICE.replacen("\"10.77.0.1\"", "\"10.77.0\"", 1)).unwrap_err();
    assert!(
        e.starts_with("f:1:9: ") && e.contains("no name of a host"),
        "{e}"
    );
    let e = proxy("proxy = \"proxy.example.org\"").unwrap_err();
    assert!(e.starts_with("f:1:1: ") && e.contains("not a name"), "{e}");
    // A proxy may serve at every address of its host.
    assert!(proxy("proxy = \"0.0.0.0\"").is_ok());
}

#[test]
fn engines_serve_together_where_they_can() {
    const BOTH: &str = "engines = [\"mptcp\", \"mpquic\"]\nproxy = \"10.77.0.1\"\n[scheduler]\n\
                        cc = \"lia\"\n[access.nr]\ninterface = \"d1\"\n\
                        expected = { up = \"5 Mbit/s\" }\n[mpquic]\npins = [\"sha256/x\"]\n";
    let c = device(BOTH).unwrap();
    assert_eq!(c.engines(), [Engine::Mptcp, Engine::Mpquic]);
    let with = |engines: &str| device(&BOTH.replacen("[\"mptcp\", \"mpquic\"]", engines, 1));
    let one = with("[\"mpquic\"]").unwrap_err();
    assert!(
        one.starts_with("f:4:1: ") && one.contains("\"mptcp\""),
        "{one}"
    );
    for (engines, place, word) in [
        (
            "[\"mpquic\", \"mpquic\"]",
            "1:1: ",
            "\"mpquic\" is there twice",
        ),
        ("[\"mptcp\", \"tcp\"]", "1:1: ", "runs alone"),
        ("[\"mptcp\", \"mpqiuc\"]", "1:", "did you mean `mpquic`?"),
        ("[\"mptcp\"]", "7:1: ", "the kernel's windows"),
        (
            "[\"mptcp\", \"mpquic\"]\nengine = \"mptcp\"",
            "1:1: ",
            "keep one",
        ),
    ] {
        let e = with(engines).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{engines}: {e}"
        );
    }
    // What either needs is needed.
    let e = device(&BOTH.replace("proxy = \"10.77.0.1\"\n", "")).unwrap_err();
    assert!(e.contains("proxy's address"), "{e}");
    assert!(device(&BOTH.replace("\"d1\"", "\"d*\"")).is_ok());
    let e = device(&BOTH.replace(
        "[scheduler]",
        "[control]\npolicy = \"capacity\"\n[scheduler]\nname = \"rr\"",
    ));
    assert!(e.unwrap_err().contains("\"wrr\""));
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
    assert!(device(&QUIC.replace("\"d1\"", "\"d*\"")).is_ok());
    for (from, to, place, word) in [
        ("proxy = \"10.77.0.1\"", "", "1:1: ", "proxy's address"),
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
    let listens = "[mpquic]\nanyone = true\nsocks = \"[::1]:1\"";
    let e = proxy(&format!("engine = \"mpquic\"\nproxy = \"::1\"\n{listens}")).unwrap_err();
    assert!(
        e.starts_with("f:5:1: ") && e.contains("connect to the device"),
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
        estimator: Estimator::default(),
    };
    let config = Config {
        engine: Some(Engine::Mpquic),
        proxy: vec!["10.0.0.1".parse().unwrap()],
        access: IndexMap::from([
            ("z".to_owned(), of("10.77.0.0/16", Some(2.5))),
            ("a".to_owned(), of("fd77::2/128", None)),
        ]),
        mpquic: Some(Mpquic {
            anyone: true,
            allow: Allow {
                internet: true,
                networks: vec!["10.0.0.0/8".parse().unwrap()],
            },
            ..Mpquic::default()
        }),
        ..Config::default()
    };
    let toml = toml::to_string(&config).unwrap();
    assert_eq!(proxy(&toml), Ok(config.clone()), "{toml}");
    let json = serde_json::to_string(&config).unwrap();
    assert_eq!(parse(&json, Format::Json), Ok(config), "{json}");
}

#[test]
fn further_proxies_stand_at_the_device_with_multipath_quic() {
    let file = |engine: &str, fallback: &str| {
        let quic = match engine {
            "mpquic" => "[mpquic]\npins = [\"x\"]\n",
            _ => "",
        };
        format!(
            "engine = \"{engine}\"\nproxy = \"192.0.2.1\"\nfallback = {fallback}\n[access.a]\n\
             interface = \"d1\"\n{quic}"
        )
    };
    let read = |fallback: &str| device(&file("mpquic", fallback));
    let config = read("[\"proxy2.example\", \"2001:db8::2\"]").unwrap();
    assert_eq!(config.fallback.len(), 2);
    let toml = toml::to_string(&config).unwrap();
    assert_eq!(device(&toml), Ok(config));
    assert_eq!(read("\"192.0.2.2\"").unwrap().fallback.len(), 1);
    let many: Vec<String> = (2..10).map(|i| format!("\"192.0.2.{i}\"")).collect();
    for (fallback, words) in [
        ("\"192.0.2.1\"", "\"192.0.2.1\" is there twice"),
        ("[\"a.example\", \"a.example\"]", "is there twice"),
        ("\"0.0.0.0\"", "no host's address"),
        ("\"a b\"", "no address and no name"),
        (&format!("[{}]", many.join(", ")), "8 proxies beside"),
    ] {
        let e = read(fallback).unwrap_err();
        assert!(e.contains(words), "{fallback}: {e}");
    }
    let e = device(&file("mptcp", "\"192.0.2.2\"")).unwrap_err();
    assert!(e.contains("expected \"mpquic\""), "{e}");
    let e = proxy(
        "engine = \"mpquic\"\nproxy = \"::1\"\nfallback = \"::2\"\n[mpquic]\nanyone = true\n",
    );
    assert!(e.unwrap_err().contains("set it there"));
}

#[test]
fn hosts_behind_the_device_are_served_with_multipath_quic_alone() {
    let file = |engine: &str, lan: &str| {
        let quic = match engine {
            "mpquic" => "[mpquic]\npins = [\"x\"]\n",
            _ => "",
        };
        format!(
            "engine = \"{engine}\"\nproxy = \"::1\"\n[access.a]\ninterface = \"d1\"\n[access.b]\n\
             interface = \"w*\"\n{quic}[lan]\n{lan}"
        )
    };
    let read = |lan: &str| device(&file("mpquic", lan));
    let lan = read("interfaces = [\"lan0\", \"br-lan.7\"]")
        .unwrap()
        .lan
        .unwrap();
    assert_eq!(
        (lan.interfaces.len(), lan.kill_switch, lan.dns),
        (2, true, true)
    );
    let lan = read("interfaces = [\"w0\"]\nkill_switch = false")
        .unwrap()
        .lan
        .unwrap();
    assert!(!lan.kill_switch, "a pattern stands for the others");
    for (lan, word) in [
        ("interfaces = []", "br-lan"),
        ("interfaces = [\"d1\"]", "serves the access a"),
        ("interfaces = [\"l\", \"l\"]", "twice"),
        ("interfaces = [\"lan*\"]", "no name"),
        ("interfaces = [\"a-name-of-16-lett\"]", "no name"),
        ("interfaces = [\"lo\"]", "no hosts"),
        ("", "interfaces"),
        ("interfaces = [\"l\"]\nkillswitch = true", "did you mean"),
    ] {
        let e = read(lan).unwrap_err();
        assert!(e.contains(word), "{lan}: {e}");
    }
    let lan = "interfaces = [\"lan0\"]";
    let e = device(&file("mptcp", lan)).unwrap_err();
    assert!(e.contains("\"mpquic\" among"), "{e}");
    let at_proxy = "engine = \"mpquic\"\nproxy = \"::1\"\n[mpquic]\nanyone = true\n[lan]\n";
    let e = proxy(&format!("{at_proxy}{lan}")).unwrap_err();
    assert!(e.contains("behind the device"), "{e}");
}

#[test]
fn a_gateway_has_a_network_of_each_family() {
    let with = |gateway: &str| {
        let file = "engine = \"mpquic\"\nproxy = \"::1\"\n[mpquic]\nanyone = true\n[gateway]\n";
        proxy(&format!("{file}{gateway}")).map(|c| c.gateway.unwrap())
    };
    let (v4, v6) = with("").unwrap().pools().unwrap();
    assert_eq!(
        (v4.prefix_len(), v6.map(|n| n.prefix_len())),
        (16, Some(64))
    );
    let (v4, v6) = with("pool = [\"100.64.7.1/24\"]").unwrap().pools().unwrap();
    assert_eq!((v4.to_string(), v6), ("100.64.7.0/24".to_owned(), None));
    for (pool, word) in [
        ("[]", "one network of IPv4"),
        ("[\"fd00::/64\"]", "one network of IPv4"),
        ("[\"10.0.0.0/16\", \"10.1.0.0/16\"]", "one network of IPv4"),
        ("[\"10.0.0.0/30\"]", "8 to 29 bits"),
        ("[\"10.0.0.0/16\", \"fd00::/96\"]", "8 to 64 bits"),
    ] {
        let e = with(&format!("pool = {pool}")).unwrap_err();
        assert!(e.contains(word), "{pool}: {e}");
    }
    let at_device = "engine = \"mpquic\"\nproxy = \"::1\"\n[access.a]\ninterface = \"d1\"\n\
                     [mpquic]\npins = [\"x\"]\n[gateway]\n";
    let e = device(at_device).unwrap_err();
    assert!(e.contains("at the proxy"), "{e}");
    let e = proxy("proxy = \"::1\"\n[gateway]\n").unwrap_err();
    assert!(e.contains("Multipath QUIC"), "{e}");
}

#[test]
fn destinations_are_networks_or_the_internet() {
    let with = |allow: &str| {
        let file = "engine = \"mpquic\"\nproxy = \"::1\"\n[mpquic]\nanyone = true\nallow = ";
        proxy(&format!("{file}{allow}")).map(|c| c.mpquic.unwrap().allow)
    };
    let all = with("[\"internet\", \"10.0.0.7\", \"fd00::/8\"]").unwrap();
    assert_eq!((all.internet, all.networks.len()), (true, 2));
    assert!(with("[]").unwrap().is_empty());
    let e = with("[\"internets\"]").unwrap_err();
    assert!(e.contains("nor is it the word \"internet\""), "{e}");
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
                    limit: crate::Limit { down: up, up: down },
                    estimator: Estimator::default(),
                    cap: None,
                    power: None,
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
            engine: Some(Engine::Mpquic),
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

#[test]
fn a_policy_is_checked_against_engine_and_scheduler() {
    const ACCESS: &str = "[access.nr]\ninterface = \"d1\"\n";
    let with = |control: &str| device(&format!("[control]\n{control}\n{ACCESS}"));
    let c = with("policy = \"capacity\"\nhysteresis_percent = 20\nstep = \"1 Mbit/s\"").unwrap();
    assert_eq!(c.control.policy, Policy::Capacity);
    assert_eq!(c.control.step, braid_core::Rate::from_mbps(1.0));
    assert_eq!(device(ACCESS).unwrap().control, Control::default());
    // What the parts of core have by themselves.
    let settings = braid_core::control::CapacitySettings::default();
    assert_eq!(Control::default().step, settings.step);
    for (control, place, word) in [
        ("polcy = \"static\"", "2:1: ", "did you mean `policy`?"),
        ("policy = \"capacty\"", "2:10: ", "did you mean `capacity`?"),
        ("hysteresis_percent = 101", "2:1: ", "0 to 100"),
        ("step = \"10\"", "2:8: ", "a unit after"),
        ("step = \"1 bit/s\"", "2:1: ", "1 kbit/s"),
        ("journal_bytes = 1000", "2:1: ", "65536"),
        (
            "policy = \"capacity\"\n[scheduler]\nname = \"default\"",
            "4:1: ",
            "name = \"wrr\"",
        ),
    ] {
        let e = with(control).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{control}: {e}"
        );
    }
    // At the top, where a key of the file stands before the section.
    let e = device(&format!(
        "engine = \"tcp\"\n[control]\npolicy = \"capacity\"\n{ACCESS}"
    ));
    let e = e.unwrap_err();
    assert!(e.starts_with("f:3:1: ") && e.contains("mptcp"), "{e}");
    assert!(with("policy = \"capacity\"\n[scheduler]\ncc = \"lia\"").is_ok());
}

#[test]
fn radios_rest_at_a_device_that_has_models_of_them() {
    let with = |control: &str, access: &str| {
        device(&format!(
            "[control]\npolicy = \"energy\"\n{control}\n[access.nr]\ninterface = \"d1\"\n{access}"
        ))
    };
    let model = "power = \"sigcomm21-lte\"";
    let c = with(
        "[control.energy]\nkeep_percent = 50\nhold = \"30 s\"",
        model,
    )
    .unwrap();
    let energy = c.control.energy;
    assert_eq!((energy.keep_percent, energy.hold.as_secs()), (50, 30));
    for (control, access, place, word) in [
        ("", "", "2:1: ", "give those that may rest power"),
        (
            "[control.energy]\nkeep_percent = 0",
            model,
            "4:1: ",
            "1 to 100",
        ),
        (
            "[control.energy]\nhold = \"0 s\"",
            model,
            "4:1: ",
            "1 s to 10 min",
        ),
        (
            "[control.energy]\nwithin_percent = 101",
            model,
            "4:1: ",
            "0 to 100",
        ),
        ("[control.energy]\nkeep = 1", model, "4:1: ", "keep_percent"),
    ] {
        let e = with(control, access).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{control}: {e}"
        );
    }
    for policy in Policy::ALL.iter().filter(|p| p.rests()) {
        let name = policy.as_str();
        let e = proxy(&format!(
            "proxy = \"::1\"\n[control]\npolicy = \"{name}\"\n"
        ))
        .unwrap_err();
        assert!(
            e.starts_with("f:3:1: ") && e.contains("which the device has"),
            "{e}"
        );
    }
}

#[test]
fn estimators_have_what_they_need() {
    let with = |policy: &str, access: &str| {
        device(&format!(
            "[control]\npolicy = \"{policy}\"\n[access.nr]\ninterface = \"d1\"\n{access}"
        ))
    };
    let c = with(
        "capacity",
        "estimator = \"expected\"\nexpected = { up = \"20 Mbit/s\" }",
    );
    assert_eq!(c.unwrap().access["nr"].estimator.names(), ["expected"]);
    let e = with("capacity", "estimator = \"expected\"").unwrap_err();
    assert!(e.starts_with("f:5:1: ") && e.contains("needs"), "{e}");
    let e = with("capacity", "estimator = \"pasive\"").unwrap_err();
    assert!(
        e.starts_with("f:5:13: ") && e.contains("did you mean `passive`?"),
        "{e}"
    );
    let e = with("static", "expected = { up = \"20 Mbit/s\" }").unwrap_err();
    assert!(e.contains(KERNEL_WINDOWS), "{e}");
    // Each name is one that core knows.
    let known: Vec<&str> = braid_core::estimate::ESTIMATORS
        .iter()
        .map(|(n, _)| *n)
        .collect();
    for estimator in Estimator::ALL {
        assert!(estimator.names().iter().all(|n| known.contains(n)));
    }
    for policy in Policy::ALL {
        assert!(braid_core::policy::names().any(|n| n == policy.as_str()));
    }
}

#[test]
fn transfers_are_bounded_and_have_what_they_need() {
    let with = |probe: &str| {
        device(&format!(
            "proxy = \"10.77.0.1\"\n[control.probe]\n{probe}\n[access.nr]\ninterface = \"d1\"\n\
             estimator = \"probe\""
        ))
    };
    let c = with("duration = \"5 s\"\ninterval = \"10s\"\nday_bytes = 500_000_000").unwrap();
    let probe = &c.control.probe;
    assert_eq!(
        (probe.duration.as_secs(), probe.interval.as_secs()),
        (5, 10)
    );
    assert_eq!((probe.day_bytes, probe.flows), (500_000_000, 10));
    assert!(!probe.serve, "a proxy serves nobody unless it is told to");
    for (probe, place, word) in [
        ("flows = 0", "3:1: ", "1 to 32"),
        ("flows = 33", "3:1: ", "1 to 32"),
        ("duration = \"100 ms\"", "3:1: ", "200 ms"),
        ("duration = \"1\"", "3:12: ", "a unit"),
        ("interval = \"2 s\"", "3:1: ", "the duration and 3 s"),
        ("rest = \"25 h\"", "3:1: ", "24 h"),
        ("at_once = 0", "3:1: ", "1 to 16"),
        ("at_once = 17", "3:1: ", "1 to 16"),
        ("month_bytes = 999999", "3:1: ", "1000000"),
        ("serve = true", "3:1: ", "by the proxy"),
        ("flow = 3", "3:1: ", "did you mean `flows`?"),
    ] {
        let e = with(probe).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{probe}: {e}"
        );
    }
    let access = "[access.nr]\ninterface = \"d1\"\nestimator = \"probe\"";
    let e = device(access).unwrap_err();
    assert!(e.starts_with("f:3:1: ") && e.contains("proxy ="), "{e}");
    let e = device(&format!(
        "proxy = \"10.77.0.1\"\n[probe]\nenabled = false\n{access}"
    ));
    let e = e.unwrap_err();
    assert!(e.starts_with("f:6:1: ") && e.contains("[probe]"), "{e}");
    let e = device(&format!(
        "engine = \"tcp\"\nproxy = \"10.77.0.1\"\n{access}"
    ));
    assert!(e.unwrap_err().contains("no weights"));
    let at_proxy = |serve, estimator: &str| {
        proxy(&format!(
            "proxy = \"10.77.0.1\"\n[control.probe]\nserve = {serve}\n[access.nr]\naddress = \
             \"10.77.1.2\"\nestimator = \"{estimator}\""
        ))
    };
    assert_eq!(
        at_proxy(true, "probe").unwrap().access["nr"].estimator,
        Estimator::Probe
    );
    let e = at_proxy(false, "probe").unwrap_err();
    assert!(
        e.starts_with("f:6:1: ") && e.contains("serve = true"),
        "{e}"
    );
    let e = at_proxy(true, "expected").unwrap_err();
    assert!(
        e.starts_with("f:6:1: ") && e.contains("at the device"),
        "{e}"
    );
    let e = at_proxy(true, "prob").unwrap_err();
    assert!(e.contains("did you mean `probe`?"), "{e}");
}

#[test]
fn changed_configurations_are_read_or_refused_at_a_place() {
    let seeds: [&[u8]; 2] = [
        include_bytes!("../../../../fuzz/seeds/config/device"),
        include_bytes!("../../../../fuzz/seeds/config/proxy"),
    ];
    let right = seeds.map(|seed| std::str::from_utf8(seed).unwrap());
    assert_eq!(device(right[0]).map(drop), Ok(()));
    assert_eq!(proxy(right[1]).map(drop), Ok(()));
    let mutated = braid_core::mutate::Mutator::new(1, seeds.map(<[u8]>::to_vec)).take(4_000);
    let (mut read, mut refused) = (0, 0);
    for octets in seeds.map(<[u8]>::to_vec).into_iter().chain(mutated) {
        let Ok(text) = String::from_utf8(octets) else {
            continue;
        };
        for result in [device(&text).map(drop), proxy(&text).map(drop)] {
            match result {
                Ok(()) => read += 1,
                Err(e) => {
                    assert!(e.starts_with("f:") && e.len() > 4, "{e}");
                    refused += 1;
                }
            }
        }
    }
    assert!(
        read > 20 && refused > 1000,
        "{read} read, {refused} refused"
    );
}
