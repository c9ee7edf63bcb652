//! Active-standby with an order: who carries while accesses come and go.

use crate::support::daemon::Daemon;
use crate::support::traffic::{DEVICE, Traffic, addresses, carries, is_over};
use braid_api::{AccessState, EventKind, Events, Priorities};
use braid_netns::world::{World, eventually, service};
use nix::sys::signal::Signal;

const THIRD: &str = "[access.lte]\ninterface = \"d3\"\nkind = \"lte\"\npriority = 3\n";

fn config() -> String {
    let numbered = DEVICE
        .replace("\"5g\"", "\"5g\"\npriority = 1")
        .replace("\"wifi\"", "\"wifi\"\npriority = 2");
    numbered + THIRD
}

fn states(device: &Daemon) -> Vec<AccessState> {
    let all = ["nr", "wifi", "lte"];
    all.map(|a| device.state(a).0).to_vec()
}

#[test]
fn the_least_number_that_is_usable_carries() {
    use AccessState::{Active, Backup, Down, Init};
    let Some(w) = World::new(3) else { return };
    let t = tempfile::tempdir().unwrap();
    let _proxy = w
        .proxy
        .run(|| braid_mptcp::pm::PathManager::open()?.set_limits(braid_mptcp::pm::Limits::MAX));
    let mut device = Daemon::start(&w.device, t.path(), "up", &config());
    assert_eq!(states(&device), [Init, Backup, Backup]);
    let (_, why) = device.state("wifi");
    assert!(why.contains("priority is 2"), "{why}");
    let traffic = Traffic::start(&w, service(80));
    carries(&device, &traffic, "nr");
    w.set_link(1, false);
    device.becomes("nr", Down);
    assert_eq!(states(&device), [Down, Active, Backup]);
    carries(&device, &traffic, "wifi");
    w.set_link(2, false);
    device.becomes("wifi", Down);
    assert_eq!(states(&device), [Down, Down, Active]);
    carries(&device, &traffic, "lte");
    w.set_link(1, true);
    device.becomes("nr", Active);
    assert_eq!(states(&device), [Active, Down, Backup]);
    carries(&device, &traffic, "nr");
    w.set_link(2, true);
    device.becomes("wifi", Backup);

    // Live, and together with the other ways to be a backup.
    let put = |path: &str, body: &str| {
        let (head, said) = device.request("PUT", path, body);
        assert!(head.contains(" 200 "), "{path}: {head} {said}");
        said
    };
    let now = put("/v1/priorities", r#"{"nr": 7, "lte": null}"#);
    let now: Priorities = serde_json::from_str(&now).unwrap();
    assert_eq!(
        now.0,
        [
            ("nr".into(), Some(7)),
            ("wifi".into(), Some(2)),
            ("lte".into(), None)
        ]
        .into()
    );
    // It rested since it came back: nothing has come back on it yet.
    device.becomes("wifi", Active);
    assert_eq!(states(&device), [Backup, Active, Backup]);
    carries(&device, &traffic, "wifi");
    // A backup takes no part in the order.
    put("/v1/accesses/wifi", r#"{"backup": true}"#);
    assert_eq!(states(&device), [Active, Backup, Backup]);
    put("/v1/accesses/wifi", r#"{"backup": false}"#);
    put("/v1/accesses/wifi", r#"{"enabled": false}"#);
    assert_eq!(states(&device), [Active, AccessState::Ignored, Backup]);
    put("/v1/accesses/wifi", r#"{"enabled": true}"#);
    put("/v1/priorities", r#"{"nr": null, "wifi": null}"#);
    eventually("all carry", || {
        (states(&device) == [Active, Active, Active]).then_some(())
    });
    let (head, said) = device.request("PUT", "/v1/priorities", r#"{"x": 1}"#);
    assert!(
        head.contains(" 404 ") && said.contains("nr"),
        "{head} {said}"
    );
    let (head, _) = device.request("PUT", "/v1/priorities", r#"{"nr": -1}"#);
    assert!(head.contains(" 422 ") || head.contains(" 400 "), "{head}");
    let events: Events = device.get("/v1/events");
    let lte = events.events.into_iter().filter_map(|e| match e.what {
        EventKind::AccessState { state, .. } if e.access.as_deref() == Some("lte") => Some(state),
        _ => None,
    });
    // Nothing but what was caused.
    assert_eq!(lte.collect::<Vec<_>>(), [Active, Backup, Active]);
    traffic.stop();
    is_over(&w);
    assert_eq!(device.end(Signal::SIGTERM), Some(0));
    assert_eq!(addresses(&w).len(), 0);
}
