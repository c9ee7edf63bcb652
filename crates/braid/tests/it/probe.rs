//! The estimator `probe`: transfers measure accesses that carry nothing, for those that may, and
//! the shares of what flows afterwards are those of their capacities.

use std::path::Path;
use std::time::Duration;

use braid_api::{AccessControl, ControlStatus, ProbeControl, Status};
use braid_netns::world::{self, World, eventually_within, service};

use crate::capacity::{CAPACITIES, delivered, shape};
use crate::support::bulk::{Bulk, Way};
use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, PROXY};

/// Time of a few intervals.
const SOON: Duration = Duration::from_secs(30);

const INTERVAL: &str = "interval = \"4 s\"\nflows = 4\n";

/// Adds the estimator to each access, and `control` in front of them.
fn with(config: &str, control: &str) -> String {
    let config = config.replacen("[access.nr]", &format!("{control}[access.nr]"), 1);
    let probed = |line: &str| match line {
        "[access.nr]" | "[access.wifi]" => format!("{line}\nestimator = \"probe\"\n"),
        other => format!("{other}\n"),
    };
    config.lines().map(probed).collect()
}

fn device(ledger: &Path) -> String {
    let control = format!("[control.probe]\n{INTERVAL}ledger = {ledger:?}\n");
    with(DEVICE, &control)
}

fn proxy() -> String {
    // Only strictly the shares are those of the weights.
    let control = "[scheduler]\nwrr_mode = \"strict\"\n[control]\npolicy = \"capacity\"\n\
                   [control.probe]\nserve = true\n";
    with(PROXY, &format!("{control}{INTERVAL}"))
}

fn probes(daemon: &Daemon) -> Vec<ProbeControl> {
    let control: ControlStatus = daemon.get("/v1/control");
    control
        .accesses
        .into_iter()
        .filter_map(|a| a.probe)
        .collect()
}

/// Whether the first access has four fifths.
fn is_four_to_one(of: [f64; 2]) -> bool {
    (of[0] / (of[0] + of[1]) - 0.8).abs() < 0.06
}

#[test]
fn mptcp_shares_by_probe() {
    if let Err(e) = braid_mptcp::bpf::require() {
        println!("skipped: {e}");
        return;
    }
    let Some(w) = World::new(2) else { return };
    if !shape(&w.proxy, "add", CAPACITIES) {
        println!("skipped: tc has no tbf here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let ledger = dir.path().join("probes.json");
    world::mptcp::mesh(&w, 2);
    let proxy = Daemon::start(&w.proxy, dir.path(), "proxy", &proxy());
    let device = Daemon::start(&w.device, dir.path(), "up", &device(&ledger));
    // Nobody who only knows the port is served.
    eventually_within(SOON, "a refusal without a connection", || {
        let refused = |p: &ProbeControl| {
            let note = p.note.as_deref();
            note.is_some_and(|n| n.contains("no connection from this address"))
        };
        probes(&device).iter().any(refused).then_some(())
    });
    assert!(probes(&proxy).iter().all(|p| p.bytes == 0));
    assert!(!ledger.exists(), "nothing was moved");
    let idle = Bulk::start(&w, service(80), Way::Idle);
    eventually_within(SOON, "weights by what transfers measured", || {
        let control: ControlStatus = proxy.get("/v1/control");
        println!("{control:?}");
        let probed = |a: &AccessControl| a.estimator.as_deref() == Some("probe");
        let [Some(nr), Some(wifi)] = [0, 1].map(|i| control.accesses[i].weight) else {
            return None;
        };
        let all = control.accesses.iter().all(probed);
        (all && is_four_to_one([nr, wifi])).then_some(())
    });
    // The report reaches the device after the proxy has gone by it.
    let told = eventually_within(SOON, "what the device was told", || {
        let told = probes(&device);
        let all = told.iter().all(|p| p.down_mbps.is_some());
        all.then_some(told)
    });
    println!("{told:?}");
    for (probe, mbps) in told.iter().zip(CAPACITIES) {
        // Not above the line but for its burst and for acknowledgements that a busy machine
        // reads late; and what is sent is the proxy's to decide.
        let down = probe.down_mbps.unwrap();
        assert!(down < f64::from(mbps) * 1.15, "{down} of {mbps} Mbit/s");
        assert_eq!(probe.up_mbps, None);
        assert!(probe.left_bytes.unwrap() <= 1_000_000_000 - probe.bytes);
    }
    let kept = std::fs::read_to_string(&ledger).unwrap();
    assert!(
        kept.contains("\"nr\"") && kept.contains("\"wifi\""),
        "{kept}"
    );
    drop(idle);
    let bulk = Bulk::start(&w, service(81), Way::Down);
    bulk.moves(&device, &["nr", "wifi"]);
    eventually_within(SOON, "shares by what transfers measured", || {
        let before = delivered(&proxy);
        std::thread::sleep(Duration::from_secs(1));
        let now = delivered(&proxy);
        let moved = [0, 1].map(|i| now[i].saturating_sub(before[i]) as f64);
        println!("{moved:?}");
        is_four_to_one(moved).then_some(())
    });
    let status: Status = proxy.get("/v1/status");
    let notes = status.notes.iter();
    assert!(notes.clone().all(|n| !n.contains("weights")), "{notes:?}");
}
