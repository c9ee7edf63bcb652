//! ATSSS rules of a core network, through the binary: there and back, and what bad input gets.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const DEVICE: &str = "engine = \"mpquic\"
proxy = \"10.77.0.1\"
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
";

const RULES: &str = "[class.console]
mode = \"active-standby\"
order = [\"wifi\"]
standby = false
[[rule]]
to = \"198.51.100.0/24\"
protocol = \"tcp\"
port = 22
class = \"console\"
[[rule]]
name = \"ads\"
to = \"203.0.113.0/24\"
block = true
";

fn rules(dir: &Path, args: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_braid"))
        .arg("rules")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // One that refuses its arguments reads nothing.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn rules_go_to_a_core_network_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    fs::write(dir.join("device.toml"), format!("{DEVICE}{RULES}")).unwrap();
    let out = rules(dir, &["export", "device.toml"], b"");
    // Rule of 21 octets: precedence 1, descriptor of 14, then any functionality, active-standby,
    // non-3GPP active without a standby.
    let digits = "0100170015\
        01000e10c6336400ffffff00300650001604010103\n";
    assert_eq!(text(&out.stdout), digits, "{}", text(&out.stderr));
    assert_eq!(out.status.code(), Some(0));
    let said = text(&out.stderr);
    assert!(
        said.contains("braid: ads: left out: no ATSSS rule refuses traffic"),
        "{said}"
    );
    assert!(
        said.contains("braid: what meets no rule: left out: minrtt"),
        "{said}"
    );

    let out = rules(
        dir,
        &["export", "device.toml", "--out", "rules.bin", "--json"],
        b"",
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    assert!(out.stderr.is_empty(), "{}", text(&out.stderr));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(
        (json["rules"].as_u64(), json["octets"].as_str()),
        (Some(1), Some(digits.trim()))
    );
    assert_eq!(json["remarks"].as_array().unwrap().len(), 2);
    let octets = fs::read(dir.join("rules.bin")).unwrap();
    assert_eq!(octets.len() * 2, digits.trim().len());

    // From octets, from digits, and from standard input, with a later form.
    let numbered = rules(dir, &["export", "device.toml", "--numbered"], b"");
    fs::write(dir.join("rules.hex"), digits).unwrap();
    let made = [
        rules(dir, &["import", "rules.bin"], b""),
        rules(dir, &["import", "rules.hex"], b""),
        rules(dir, &["import", "-"], &numbered.stdout),
    ];
    for out in &made {
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        assert_eq!(out.stdout, made[0].stdout);
    }
    // A daemon takes it.
    fs::write(
        dir.join("made.toml"),
        format!("{DEVICE}{}", text(&made[0].stdout)),
    )
    .unwrap();
    let again = rules(dir, &["export", "made.toml"], b"");
    assert_eq!(text(&again.stdout), digits, "{}", text(&again.stderr));
}

#[test]
fn bad_input_ends_with_2_and_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let wifi = "[access.wifi]\ninterface = \"wlan0\"\nkind = \"wifi\"\n";
    fs::write(dir.join("device.toml"), format!("{DEVICE}{RULES}")).unwrap();
    fs::write(dir.join("lone.toml"), DEVICE.replace(wifi, "")).unwrap();
    fs::write(
        dir.join("wrong.toml"),
        format!("{DEVICE}[[rule]]\nport = 1\n"),
    )
    .unwrap();
    fs::write(dir.join("cut.bin"), [1u8, 0, 9, 0, 7]).unwrap();
    fs::write(dir.join("no.hex"), "01 0009 0x07").unwrap();
    for (args, words) in [
        (
            "import cut.bin",
            "cut.bin: octet 5: it ends within a parameter",
        ),
        (
            "import no.hex",
            "no.hex: byte 9: 'x' is no hexadecimal digit",
        ),
        ("import absent.bin", "absent.bin: read the container: "),
        (
            "import -",
            "octet 0: a container has at least one parameter",
        ),
        (
            "import cut.bin --3gpp a --non-3gpp a",
            "name the same access",
        ),
        ("export absent.toml", "read the configuration absent.toml: "),
        (
            "export wrong.toml",
            "wrong.toml:13:1: a rule has one outcome",
        ),
        (
            "export lone.toml",
            "lone.toml: no access is of a non-3GPP kind",
        ),
        (
            "export device.toml --3gpp cable",
            "no access is called \"cable\"",
        ),
    ] {
        let args: Vec<&str> = args.split(' ').collect();
        let out = rules(dir, &args, b"");
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(words), "{args:?}: {said}");
        assert!(out.stdout.is_empty(), "{args:?}");
    }
    let left = fs::read_dir(dir).unwrap().count();
    assert_eq!(left, 5, "nothing is left behind");
}
