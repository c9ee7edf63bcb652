use super::raw::parse;
use super::*;
use proptest::prelude::*;

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

#[test]
fn reads_both_forms() {
    let c = parse(DEVICE, false, Role::Device).unwrap();
    assert_eq!(
        (c.engine, c.proxy.len(), c.accesses.len()),
        (Engine::Mptcp, 2, 2)
    );
    // The order of the file is the order of preference.
    assert_eq!(
        (c.accesses[0].name.as_str(), c.accesses[0].kind),
        ("nr", AccessKind::Nr)
    );
    assert!(c.manager.recover && c.manager.mesh == Mesh::Full && c.probe.enabled);
    assert!(c.accesses[1].backup);
    assert_eq!(
        c.settings().accesses[1].address,
        Some("fd77::2".parse().unwrap())
    );
    let json = r#"{"engine": "tcp", "proxy": "10.77.0.1", "manager": {"recover": false},
        "access": {"z": {"address": "10.77.1.0/24"}, "a": {"address": "10.77.2.2"}}}"#;
    let c = parse(json, true, Role::Proxy).unwrap();
    assert_eq!((c.engine, c.accesses[0].name.as_str()), (Engine::Tcp, "z"));
    assert_eq!(c.accesses[0].address.unwrap().prefix_len(), 24);
    assert!(!c.manager.recover && c.manager.mesh == Mesh::Pairs);
}

#[test]
fn errors_name_the_place() {
    let error = |from: &str, to: &str| {
        assert!(DEVICE.contains(from), "{from}");
        parse(&DEVICE.replace(from, to), false, Role::Device).unwrap_err()
    };
    for (from, to, place, word) in [
        ("backup", "bakup", "14:1:", "bakup"),
        ("\"d2\"", "\"d 2\"", "12:1:", "no blank"),
        ("interface = \"d2\"", "", "11:9:", "needs an interface"),
        ("2.5", "-1", "15:1:", "above 0"),
        ("2.5", "nan", "15:1:", "above 0"),
        ("fd77::2", "fd77::/64", "13:1:", "not a prefix"),
        ("fd77::2", "fd77:", "13:1:", "no address"),
        ("\"fd77::1\"]", "\"10.77.0.2\"]", "1:1:", "each family"),
        ("docker*", "a/b", "5:1:", "no slash"),
        ("weight = 2.5", "max_addresses = 9", "15:1:", "1 to 8"),
        ("mesh = \"full\"", "mesh = \"fully\"", "4:8:", "fully"),
        (
            "mesh = \"full\"",
            "max_addresses_per_interface = 0",
            "4:1:",
            "1 to 8",
        ),
    ] {
        let e = error(from, to);
        assert!(
            e.starts_with(place) && e.contains(word),
            "{from} -> {to}: {e}"
        );
    }
    for sizes in ["[1, 2]", "[0, 1, 2]", "[3, 2, 4]", "[1, 2, 4294967295]"] {
        let to = format!("[buffers]\ntcp_wmem = {sizes}\n[access.nr]");
        let e = parse(&format!("{to}\ninterface = \"d1\""), false, Role::Device).unwrap_err();
        assert!(e.starts_with("2:"), "{sizes}: {e}");
    }
    let e = parse("{\"engine\": \"tpc\"}", true, Role::Proxy).unwrap_err();
    assert!(e.starts_with("1:") && e.contains("tpc"), "{e}");
    assert!(parse("", false, Role::Proxy).is_ok());
    assert!(
        parse("", false, Role::Device)
            .unwrap_err()
            .contains("at least one access")
    );
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
        ("address = \"10.0.0.1\"\nmax_addresses = 1", "at the device"),
        (
            "address = \"10.0.0.1\"\n[access.b]\naddress = \"10.0.0.1\"",
            "same address",
        ),
    ] {
        let e = parse(&format!("[access.a]\n{text}"), false, Role::Proxy).unwrap_err();
        assert!(e.contains(word), "{text}: {e}");
    }
}

#[test]
fn what_a_proxy_announces_can_be_connected_to() {
    let with = |list: &str, more: &str| format!("announce = [{list}]\n{more}");
    let c = parse(
        &with("\"192.0.2.1\", \"2001:db8::1\"", ""),
        false,
        Role::Proxy,
    );
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
        let e = parse(&with(list, more), false, Role::Proxy).unwrap_err();
        assert!(e.starts_with("1:1:") && e.contains(word), "{e}");
    }
    let device = with("\"192.0.2.1\"", DEVICE);
    let e = parse(&device, false, Role::Device).unwrap_err();
    assert!(e.contains("a device does not"), "{e}");
}

proptest! {
    #[test]
    fn garbage_does_not_panic(s in "\\PC*") {
        for role in [Role::Device, Role::Proxy] {
            let _ = parse(&s, false, role);
            let _ = parse(&s, true, role);
        }
    }

    #[test]
    fn a_damaged_file_is_refused_or_read(at in 0usize..200, with in "[a-z\"=\\[\\]\n ]{0,3}") {
        let mut text = DEVICE.to_owned();
        let at = at.min(text.len());
        text.replace_range(at..(at + 2).min(text.len()), &with);
        let _ = parse(&text, false, Role::Device);
    }
}
