use super::*;

fn read(text: &str, role: Role) -> Result<Config, String> {
    parse(text, Format::Toml, role).map_err(|p| p.in_file("f".into(), text).to_string())
}

#[test]
fn either_role_comes_to_the_same_parts() {
    let device = "[manager]\nmesh = \"full\"\n[scheduler]\npin = false\n[access.wifi]\n\
                  interface = \"d*\"\naddress = \"fd77::2\"\nbackup = true\n[access.nr]\n\
                  interface = \"w0\"";
    let c = read(device, Role::Device).unwrap();
    assert!(!c.pin && c.scheduler.is_none() && c.quic.is_none());
    assert_eq!(c.buffers.tcp_wmem, buffers::TCP_WMEM);
    let settings = c.settings();
    assert_eq!(settings.mesh, Mesh::Full);
    let wifi = &settings.accesses[0];
    assert_eq!(wifi.address, Some("fd77::2".parse().unwrap()));
    assert_eq!(
        (wifi.name.as_str(), wifi.interface.as_str()),
        ("wifi", "d*")
    );
    assert!(wifi.backup && !settings.accesses[1].backup);
    let proxy = "[scheduler]\n[access.wifi]\naddress = \"10.77.1.0/24\"\nweight = 2.0";
    let c = read(proxy, Role::Proxy).unwrap();
    assert_eq!(c.accesses[0].address, "10.77.1.0/24".parse().ok());
    assert_eq!(c.accesses[0].weight, Some(2.0));
    assert!(c.settings().accesses.is_empty(), "it has no interfaces");
    // An empty section asks for the defaults, none for the kernel's way.
    assert_eq!(c.scheduler, Some(SchedulerChange::default()));
    assert_eq!(read("", Role::Proxy).unwrap().scheduler, None);
}

#[test]
fn what_the_engine_does_not_have_is_refused_with_its_place() {
    let pin = format!("sha256/{}=", "A".repeat(43));
    let quic = format!(
        "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[scheduler]\nname = \"minrtt\"\n[mpquic]\n\
         cc = \"cubic\"\nsend_window = 65536\npins = [\"{pin}\"]\n[access.nr]\ninterface = \"d1\""
    );
    let c = read(&quic, Role::Device).unwrap();
    let q = c.quic.unwrap();
    assert_eq!(q.identity, quic::Files::of(Role::Device));
    assert_eq!(q.trust, quic::Who::Pins(vec![pin.parse().unwrap()]));
    for (from, to, place, word) in [
        ("\"cubic\"", "\"cubik\"", "6:1: ", "did you mean \"cubic\"?"),
        ("65536", "65535", "7:1: ", "65536 or more"),
        (pin.as_str(), "sha256/AA", "8:1: ", "44 characters"),
        (
            "\"minrtt\"",
            "\"minrt\"",
            "4:1: ",
            "unknown packet scheduler \"minrt\"",
        ),
        (
            "name =",
            "num_segments = 2\nname =",
            "5:1: ",
            "no `num_segments`",
        ),
    ] {
        assert!(quic.contains(from), "{from}");
        let e = read(&quic.replacen(from, to, 1), Role::Device).unwrap_err();
        assert!(
            e.starts_with(&format!("f:{place}")) && e.contains(word),
            "{from} -> {to}: {e}"
        );
    }
}

#[test]
fn two_engines_need_a_scheduler_that_both_have() {
    let pin = format!("sha256/{}=", "A".repeat(43));
    let with = |name: &str| {
        let text = format!(
            "engines = [\"mpquic\", \"mptcp\"]\nproxy = \"10.77.0.1\"\n[scheduler]\nname = \"{name}\"\n\
             [mpquic]\npins = [\"{pin}\"]\n[access.nr]\ninterface = \"d1\""
        );
        read(&text, Role::Device)
    };
    let c = with("wrr").unwrap();
    assert_eq!(c.engines, [Engine::Mpquic, Engine::Mptcp]);
    assert!(c.quic.is_some());
    for (name, what) in [
        (
            "default",
            "Multipath QUIC has no packet scheduler \"default\"",
        ),
        ("smallest-delay", "Multipath TCP has no packet scheduler"),
        ("wrrr", "neither engine has a packet scheduler"),
    ] {
        let e = with(name).unwrap_err();
        assert!(e.starts_with(&format!("f:4:1: {what}")), "{e}");
        assert!(e.contains("there are rr, wrr, active-standby"), "{e}");
    }
    assert!(with("wrrr").unwrap_err().ends_with("did you mean \"wrr\"?"));
}

#[test]
fn a_policy_brings_the_scheduler_that_it_needs() {
    let with = |scheduler: &str| {
        let text = format!("[control]\npolicy = \"capacity\"\n{scheduler}");
        read(&text, Role::Proxy).map(|c| c.scheduler.unwrap())
    };
    let wrr = |mode| SchedulerChange {
        name: Some("wrr".to_owned()),
        wrr_mode: Some(mode),
        ..SchedulerChange::default()
    };
    let filling = wrr(WrrMode::WorkConserving);
    assert_eq!(with(""), Ok(filling.clone()));
    assert_eq!(with("[scheduler]\ncc = \"lia\""), Ok(filling.clone()));
    assert_eq!(with("[scheduler]\nname = \"wrr\""), Ok(filling));
    let strict = "[scheduler]\nwrr_mode = \"strict\"";
    assert_eq!(with(strict), Ok(wrr(WrrMode::Strict)));
    let e = with("[scheduler]\nname = \"rr\"").unwrap_err();
    assert!(e.starts_with("f:4:1: ") && e.contains("\"wrr\""), "{e}");
    assert_eq!(read("[control]", Role::Proxy).unwrap().scheduler, None);
}

#[test]
fn a_class_has_its_number_for_as_long_as_the_daemon_runs() {
    let config = |classes: &str| {
        let classes = classes.split(' ').filter(|n| !n.is_empty());
        let classes: String = classes
            .map(|n| format!("[class.{n}]\nmode = \"rr\"\n"))
            .collect();
        let pin = format!("sha256/{}=", "A".repeat(43));
        let text = format!(
            "engine = \"mpquic\"\nproxy = \"10.77.0.1\"\n[mpquic]\npins = [\"{pin}\"]\n\
             [lan]\ninterfaces = [\"lan0\"]\n[access.nr]\ninterface = \"d1\"\n{classes}"
        );
        read(&text, Role::Device).unwrap()
    };
    let mut now = config("voice games");
    let mut numbers = |names: &str| {
        let mut next = config(names);
        next.keep_numbers(&now);
        now = next;
        let all = names.split(' ').filter(|n| !n.is_empty());
        all.map(|n| now.class_number(n)).collect::<Vec<_>>()
    };
    assert_eq!(numbers("games voice"), [2, 1]);
    assert_eq!(numbers(""), [0; 0]);
    // No class gets a number that another has had, and one that comes back has its own.
    assert_eq!(numbers("bulk"), [3]);
    assert_eq!(numbers("voice"), [1]);
    // Until all have been given.
    assert_eq!(numbers("a b c d e f g").len(), 7);
    assert_eq!(now.class_number("none"), 0);
    assert_eq!(now.class_names().len(), 7);
}
