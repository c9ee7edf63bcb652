//! Traffic of hosts behind the device, calls, and traffic beside the measured one.

use std::path::Path;
use std::time::Duration;

use braid_lab::run::{GuestOptions, RunOptions, run_virtual, silent};
use braid_lab::scenario::{Beside, Bulk, Direction, Overrides, Place, Scenario, Traffic, Voip};
use braid_traffic::VoiceCodec;

fn parse(engine: &str, traffic: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"h\"\nduration = \"10 s\"\n[access.nr]\nkind = \"5g\"\n\
         down = {{ rate = \"100 Mbit/s\", delay = \"5 ms\" }}\n[[case]]\nname = \"c\"\n\
         {engine}\n{traffic}\n"
    );
    let (here, none) = (Path::new("."), Overrides::default());
    Scenario::parse(&text, Path::new("h.toml"), here, &none).map_err(|e| e.to_string())
}

const MPQUIC: &str = "engine = \"mpquic\"";
const TCP: &str = "engine = \"tcp\"\naccess = \"nr\"";

#[test]
fn places_and_calls_are_read() {
    let of = |engine, traffic| parse(engine, traffic).unwrap().cases.remove(0);
    let plain = of(MPQUIC, "traffic = { kind = \"bulk\", from = \"device\" }");
    assert_eq!((plain.from, plain.has_hosts()), (Place::Device, false));
    let both = of(
        MPQUIC,
        "traffic = { kind = \"bulk\", from = \"lan\", direction = \"up\" }\n\
         beside = { kind = \"voip\", from = \"lan\", codec = \"g729\", jitter_buffer = \"40 ms\" }",
    );
    assert_eq!((both.from, both.has_hosts()), (Place::Lan, true));
    let bulk = Bulk {
        bytes: None,
        direction: Direction::Up,
    };
    assert_eq!(both.traffic, Traffic::Bulk(bulk));
    let call = Beside {
        traffic: Traffic::Voip(Voip {
            codec: VoiceCodec::G729,
            jitter_buffer: Duration::from_millis(40),
            direction: Direction::Both,
        }),
        from: Place::Lan,
    };
    assert_eq!(both.beside, Some(call));
    let usual = of(TCP, "traffic = \"voip\"");
    let Traffic::Voip(usual) = usual.traffic else {
        panic!("{:?}", usual.traffic)
    };
    assert_eq!(usual.codec, VoiceCodec::G711Plc);
    assert_eq!(usual.jitter_buffer, Duration::from_millis(60));
    // Only the traffic beside begins at a host.
    let beside = of(
        TCP,
        "traffic = \"bulk\"\nbeside = { kind = \"bulk\", from = \"lan\" }",
    );
    assert!(beside.has_hosts() && beside.from == Place::Device);
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let lan = |kind: &str| format!("traffic = {{ kind = \"{kind}\", from = \"lan\" }}");
    for (engine, traffic, why) in [
        (
            MPQUIC,
            "traffic = { kind = \"bulk\", from = \"lann\" }".into(),
            "did you mean \"lan\"?",
        ),
        (MPQUIC, "traffic = \"voip\"".into(), "add from = \"lan\""),
        (
            "engine = \"mpquic\"\nlane = \"stream\"",
            lan("voip"),
            "remove lane = \"stream\"",
        ),
        (
            "engine = \"mptcp\"",
            lan("bulk"),
            "hosts go over Multipath QUIC",
        ),
        (
            "engine = \"mptcp\"",
            "traffic = \"voip\"".into(),
            "MPTCP does not carry UDP",
        ),
        (
            MPQUIC,
            "traffic = \"bulk\"\nbeside = \"voip\"".into(),
            "h.toml:10:10: UDP goes over Multipath QUIC from hosts",
        ),
        (
            TCP,
            "traffic = { kind = \"command\", run = \"true\", from = \"lan\" }".into(),
            "a command runs at the device",
        ),
        (
            TCP,
            "traffic = \"bulk\"\nbeside = { kind = \"command\", run = \"true\" }".into(),
            "expected a kind such as \"voip\"",
        ),
        (
            TCP,
            "traffic = { kind = \"voip\", codec = \"g722\" }".into(),
            "unknown codec \"g722\"",
        ),
        (
            TCP,
            "traffic = { kind = \"voip\", jitter_buffer = \"5 ms\" }".into(),
            "expected 10 to 500 ms",
        ),
        (
            TCP,
            "traffic = { kind = \"voip\", jitter_buffer = \"20500 us\" }".into(),
            "in whole ones",
        ),
        (
            TCP,
            "traffic = { kind = \"voip\", rate = \"1 Mbit/s\" }".into(),
            "has no key `rate`",
        ),
        (
            TCP,
            "traffic = \"bulk\"\n[device.other]\ntraffic = { kind = \"bulk\", from = \"lan\" }\n\
             [device.other.access.wifi]\nkind = \"wifi\"\ndown = { rate = \"1 Mbit/s\" }"
                .into(),
            "behind the measured device alone",
        ),
    ] {
        let said = parse(engine, &traffic).unwrap_err();
        assert!(said.starts_with("h.toml:"), "{said}");
        assert!(said.contains(why), "{traffic}: {said}");
    }
}

#[test]
fn the_virtual_clock_has_no_hosts() {
    let scenario = parse(MPQUIC, "traffic = { kind = \"bulk\", from = \"lan\" }").unwrap();
    let options = RunOptions {
        repeat: 1,
        out: None,
        braid: "/nowhere/braid".into(),
        command: String::new(),
        ports: Default::default(),
    };
    let refused = run_virtual(
        &scenario,
        &options,
        &GuestOptions::default(),
        &mut *silent(),
    );
    let e = refused.unwrap_err();
    assert_eq!(e.exit_code(), 2, "{e}");
    assert!(e.to_string().contains("netfilter"), "{e}");
}
