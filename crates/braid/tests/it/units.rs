//! Files installed beside the program: systemd units, example configurations.

use std::process::Command;

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY, Traffic, runs_on};
use braid_api::Status;
use braid_mptcp::bpf;
use braid_netns::world::{World, device4, service};
use nix::sys::signal::Signal;

const UNITS: [(&str, &str); 2] = [
    ("braid", include_str!("../../../../packaging/braid.service")),
    (
        "braid-proxy",
        include_str!("../../../../packaging/braid-proxy.service"),
    ),
];

const EXAMPLES: [(&str, &str); 2] = [
    ("up", include_str!("../../../../packaging/device.toml")),
    ("proxy", include_str!("../../../../packaging/proxy.toml")),
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

#[test]
fn systemd_finds_nothing_wrong() {
    let t = tempfile::tempdir().unwrap();
    for (name, unit) in UNITS {
        let program = env!("CARGO_BIN_EXE_braid");
        let file = t.path().join(format!("{name}.service"));
        std::fs::write(&file, unit.replace("/usr/local/bin/braid", program)).unwrap();
        let mut verify = Command::new("systemd-analyze");
        let Ok(out) = verify.arg("verify").arg(&file).output() else {
            return println!("skipped: no systemd-analyze");
        };
        let said = String::from_utf8_lossy(&out.stderr);
        let ours: Vec<_> = said
            .lines()
            .filter(|l| l.contains(&*file.to_string_lossy()))
            .collect();
        assert!(out.status.success() && ours.is_empty(), "{name}: {said}");
    }
}

/// Under what a unit leaves it of root's rights, a daemon has weights and short queues.
#[test]
fn the_rights_that_a_unit_gives_are_enough() {
    let Some(w) = World::new(2) else { return };
    let t = tempfile::tempdir().unwrap();
    let started = |ns, role, unit: &str, config: &str| {
        let lines = section(unit, "Service");
        let rights = lines
            .iter()
            .find_map(|l| l.strip_prefix("CapabilityBoundingSet=CAP_"));
        let rights = rights.unwrap().to_lowercase().replace(" cap_", ",+");
        let mut program = Command::new("setpriv");
        program.arg(format!("--bounding-set=-all,+{rights}"));
        program
            .arg("--no-new-privs")
            .arg(env!("CARGO_BIN_EXE_braid"));
        let config = format!("scheduler = {{ name = \"wrr\" }}\n{config}");
        Daemon::start_by(program, ns, t.path(), role, &config)
    };
    let proxy = started(&w.proxy, "proxy", UNITS[1].1, PROXY);
    let device = started(&w.device, "up", UNITS[0].1, DEVICE);
    let traffic = Traffic::start(&w, service(80));
    runs_on(&device, &[device4(1), device4(2)]);
    traffic.goes_on();
    traffic.stop();
    for mut daemon in [device, proxy] {
        let s: Status = daemon.get("/v1/status");
        if let Some(why) = &s.config_error {
            // The kernel lacks it, or this very test has no such rights.
            assert!(bpf::can_register().is_err(), "{why}");
        }
        // Where no bpffs is mounted, a service may not mount one.
        let others: Vec<_> = s.notes.iter().filter(|n| !n.contains("bpffs")).collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(daemon.end(Signal::SIGTERM), Some(0));
    }
}

/// As they are, and with any of the lines that may be switched on.
#[test]
fn example_configurations_are_right() {
    let t = tempfile::tempdir().unwrap();
    let file = t.path().join("braid.toml");
    for (role, text) in EXAMPLES {
        let check = |text: &str| {
            std::fs::write(&file, text).unwrap();
            let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
            let out = braid
                .args([role, "--check", "--config"])
                .arg(&file)
                .output();
            let out = out.unwrap();
            let said = String::from_utf8_lossy(&out.stderr).into_owned();
            assert_eq!(out.status.code(), Some(0), "{role}: {said}{text}");
        };
        check(text);
        let may_be: Vec<_> = text.lines().filter(|l| is_setting(l)).collect();
        assert!(may_be.len() > 5, "{role}");
        for line in may_be {
            check(&text.replace(line, &line[1..]));
        }
    }
}

/// `#` and a key.
fn is_setting(line: &str) -> bool {
    let rest = line.strip_prefix('#');
    rest.is_some_and(|l| l.starts_with(|c: char| c.is_ascii_lowercase()))
}

/// Probes are answered, and the daemon lives on, where the machine is short of something.
#[test]
fn a_service_comes_before_others_on_a_busy_machine() {
    for (name, unit) in UNITS {
        let service = section(unit, "Service");
        let number = |key: &str| {
            let value = service.iter().find_map(|l| l.strip_prefix(key));
            value.and_then(|v| v.parse::<i32>().ok())
        };
        assert!(number("Nice=").is_some_and(|n| n < 0), "{name}");
        assert!(number("CPUWeight=").is_some_and(|w| w > 100), "{name}");
        assert!(number("OOMScoreAdjust=").is_some_and(|a| a < 0), "{name}");
    }
}

/// Units have a place for what is made at first use, and may listen on ports below 1024.
#[test]
fn a_service_can_keep_keys_and_forward_any_port() {
    for (name, unit) in UNITS {
        let service = section(unit, "Service");
        assert!(service.contains(&"StateDirectory=braid"), "{name}");
        let rights = service
            .iter()
            .find(|l| l.starts_with("CapabilityBoundingSet="));
        assert!(rights.unwrap().contains("CAP_NET_BIND_SERVICE"), "{name}");
        // For [control_socket] group.
        assert!(rights.unwrap().contains("CAP_CHOWN"), "{name}");
    }
}
