//! Orders, results and notes of probes in the loop, without sockets and with a clock of the tests.

use std::path::Path;

use braid_api::ProbeControl;
use braid_core::{AccessState, Rate};

use super::*;
use crate::control::Control;

fn at(s: u64) -> Time {
    Time::from_nanos((1_000 + s) * 1_000_000_000)
}

fn config(role: Role, text: &str, folder: &Path) -> Config {
    let path = folder.join("braid.toml");
    std::fs::write(&path, format!("proxy = \"10.77.0.1\"\n{text}")).unwrap();
    Config::load(&path, role).unwrap()
}

/// Device with two accesses that are probed.
fn device(policy: &str, bounds: &str, folder: &Path) -> Control {
    let ledger = folder.join("probes.json");
    let text = format!(
        "[control]\npolicy = \"{policy}\"\n[control.probe]\nledger = {ledger:?}\n{bounds}\n\
         [access.nr]\ninterface = \"d1\"\nestimator = \"probe\"\n\
         [access.wifi]\ninterface = \"d2\"\nestimator = \"probe\"\n"
    );
    Control::new(Role::Device, &config(Role::Device, &text, folder), at(0))
}

fn states(nr: AccessState) -> Vec<(String, Option<AccessState>)> {
    let wifi = AccessState::Active;
    vec![("nr".to_owned(), Some(nr)), ("wifi".to_owned(), Some(wifi))]
}

fn result(order: &ProbeOrder, bytes: u64, mbps: Option<f64>) -> ProbeResult {
    ProbeResult {
        access: order.access.clone(),
        direction: order.direction,
        bytes,
        rate: mbps.map(Rate::from_mbps),
    }
}

fn page(control: &Control, access: &str, s: u64) -> ProbeControl {
    let report = control.report(at(s));
    let mut all = report.accesses.into_iter();
    all.find(|a| a.name == access).unwrap().probe.unwrap()
}

fn note(control: &Control, access: &str, s: u64) -> String {
    page(control, access, s).note.unwrap_or_default()
}

/// Looks every second, and ends each probe at once with `bytes`. Returns the orders.
fn run(
    control: &Control,
    nr: AccessState,
    seconds: std::ops::Range<u64>,
    bytes: u64,
) -> Vec<ProbeOrder> {
    let mut orders = Vec::new();
    for s in seconds {
        let (_, order) = control.order(at(s), states(nr));
        if let Some(order) = order {
            control.probed(at(s), result(&order, bytes, Some(100.0)), None);
            orders.push(order);
        }
    }
    orders
}

#[test]
fn accesses_take_turns_and_only_wanted_directions_are_probed() {
    let folder = tempfile::tempdir().unwrap();
    let control = device("static", "interval = \"20 s\"", folder.path());
    let orders = run(&control, AccessState::Active, 1..200, 2_000_000);
    let of = |name| orders.iter().filter(|o| o.access == name).count();
    assert!(of("nr") > 5 && of("wifi") > 5, "{orders:?}");
    // This end decides nothing: uplinks are of no use to it.
    assert!(orders.iter().all(|o| o.direction == Direction::Down));
    let control = device("capacity", "interval = \"20 s\"", folder.path());
    let orders = run(&control, AccessState::Active, 1..200, 2_000_000);
    let up = orders.iter().filter(|o| o.direction == Direction::Up);
    assert!(up.count() > 5);
    let nr = page(&control, "nr", 200);
    assert_eq!((nr.down_mbps, nr.up_mbps), (Some(100.0), Some(100.0)));
    assert!(nr.bytes > 10_000_000 && nr.due_ms.is_some() && nr.note.is_none());
    // While one runs there is no other, until it is given up.
    let (_, order) = control.order(at(240), states(AccessState::Active));
    assert!(order.is_some());
    assert_eq!(control.order(at(241), states(AccessState::Active)).1, None);
}

#[test]
fn what_cannot_be_probed_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let control = device("static", "", folder.path());
    assert!(note(&control, "nr", 0).contains("carries nothing now"));
    let orders = run(&control, AccessState::Silent, 1..200, 2_000_000);
    assert!(!orders.is_empty() && orders.iter().all(|o| o.access == "wifi"));
    assert!(note(&control, "nr", 200).contains("carries nothing now"));
    control.order(at(200), states(AccessState::Active));
    control.rests(true);
    assert!(note(&control, "nr", 200).contains("no traffic"));
    assert_eq!(page(&control, "nr", 200).due_ms, None);
    control.rests(false);
    assert_eq!(note(&control, "nr", 200), "");
    let failed = ProbeOrder {
        access: "nr".to_owned(),
        direction: Direction::Up,
        flows: 1,
        duration_ms: 1,
        max_bytes: 1,
    };
    control.probed(
        at(201),
        result(&failed, 0, None),
        Some("it is shut".to_owned()),
    );
    assert_eq!(note(&control, "nr", 201), "up: it is shut");
    control.probed(at(202), result(&failed, 1, Some(1.0)), None);
    assert_eq!(note(&control, "nr", 202), "");
}

#[test]
fn a_budget_is_kept_and_holds_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let bounds = "day_bytes = 9_000_000\ninterval = \"20 s\"";
    let control = device("static", bounds, folder.path());
    let orders = run(&control, AccessState::Active, 1..4_000, 2_000_000);
    let of = |orders: &[ProbeOrder], name| orders.iter().filter(|o| o.access == name).count();
    // Of what is left after four times, a fifth one would be one of 1 MB.
    assert!(
        of(&orders, "nr") <= 5 && of(&orders, "wifi") <= 5,
        "{orders:?}"
    );
    assert!(orders.iter().all(|o| o.max_bytes <= 9_000_000));
    assert!(note(&control, "nr", 4_000).contains("budget is spent"));
    assert!(page(&control, "nr", 4_000).left_bytes.unwrap() < 1_000_000);
    let again = device("static", bounds, folder.path());
    let orders = run(&again, AccessState::Active, 1..4_000, 2_000_000);
    assert_eq!(orders, []);
    assert!(note(&again, "nr", 4_000).contains("budget is spent"));
    assert_eq!(page(&again, "nr", 4_000).bytes, 0, "since the daemon began");
}

#[test]
fn a_ledger_that_is_not_kept_is_noted() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    let control = device("static", "", folder.path());
    assert!(control.notes().is_empty());
    let text = format!(
        "[control.probe]\nledger = {:?}\n[access.nr]\ninterface = \"d1\"\nestimator = \"probe\"\n",
        missing.join("probes.json")
    );
    control.configure(&config(Role::Device, &text, folder.path()), at(1));
    run(&control, AccessState::Active, 2..100, 2_000_000);
    assert!(
        control.notes()[0].contains("[control.probe]"),
        "{:?}",
        control.notes()
    );
}

#[test]
fn a_proxy_decides_by_what_it_measured() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[control]\npolicy = \"capacity\"\n[control.probe]\nserve = true\n\
                [access.nr]\naddress = \"10.77.1.2\"\nestimator = \"probe\"\n\
                [access.wifi]\naddress = \"10.77.2.2\"\nestimator = \"probe\"\n";
    let config = config(Role::Proxy, text, folder.path());
    let control = Control::new(Role::Proxy, &config, at(0));
    control.order(at(1), states(AccessState::Active));
    let mut decided = None;
    for (s, access, mbps) in [(2, "nr", 200.0), (3, "wifi", 50.0)] {
        let down = ProbeResult {
            access: access.to_owned(),
            direction: Direction::Down,
            bytes: 10,
            rate: Some(Rate::from_mbps(mbps)),
        };
        decided = control.probed(at(s), down, None);
    }
    let expected = [("nr".to_owned(), 200.0), ("wifi".to_owned(), 50.0)];
    assert_eq!(decided.map(|d| d.weights), Some(expected.into()));
    let nr = page(&control, "nr", 4);
    assert_eq!(
        (nr.bytes, nr.down_mbps, nr.left_bytes),
        (10, Some(200.0), None)
    );
    let report = control.report(at(4));
    assert_eq!(report.accesses[0].estimator.as_deref(), Some("probe"));
}
