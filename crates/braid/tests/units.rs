//! The systemd units.

const UNITS: [(&str, &str); 2] = [
    ("braid", include_str!("../../../packaging/braid.service")),
    (
        "braid-proxy",
        include_str!("../../../packaging/braid-proxy.service"),
    ),
];

fn section<'a>(unit: &'a str, name: &str) -> Vec<&'a str> {
    let head = format!("[{name}]");
    let lines = unit.lines().skip_while(|l| *l != head).skip(1);
    lines.take_while(|l| !l.starts_with('[')).collect()
}

/// `Restart=` alone gives up after five starts in ten seconds.
#[test]
fn a_unit_whose_daemon_fails_is_started_again_however_often() {
    for (name, unit) in UNITS {
        let has = |section: &[&str], line| assert!(section.contains(&line), "{name}: {line}");
        has(&section(unit, "Unit"), "StartLimitIntervalSec=0");
        has(&section(unit, "Service"), "Restart=on-failure");
        has(&section(unit, "Service"), "RestartSec=1");
    }
}

#[test]
fn the_proxy_waits_for_its_address() {
    let unit = section(UNITS[1].1, "Unit");
    for line in ["After=network-online.target", "Wants=network-online.target"] {
        assert!(unit.contains(&line), "{line}");
    }
}
