//! `braid doctor` in a network namespace.

use std::process::{Command, Stdio};

use braid_mptcp::support::{self, Support};
use braid_netns::world::World;
use serde_json::Value;

#[test]
fn the_doctor_looks_at_the_namespace_that_it_is_in() {
    let Some(w) = World::new(1) else { return };
    let t = tempfile::tempdir().unwrap();
    let doctor = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_braid"));
        command.arg("doctor").args(args).arg("--control");
        command.arg(t.path().join("none.sock")).stdin(Stdio::null());
        let out = w.device.run(|| command.output().unwrap());
        let shown = String::from_utf8(out.stdout).unwrap();
        (out.status.code(), shown)
    };
    let settings = || {
        let mut settings = w.device.run(Support::detect);
        // Those of the whole machine come and go with what others run.
        settings.congestion_controls.clear();
        settings
    };
    let before = settings();
    let (code, shown) = doctor(&[]);
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("Braid can work here"), "{shown}");
    let (_, json) = doctor(&["--json"]);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(told["works"], true);
    let row = |told: &Value, what: &str| {
        let rows = told["rows"].as_array().unwrap().clone();
        rows.into_iter().find(|r| r["what"] == what).unwrap()
    };
    assert_eq!(row(&told, "daemon")["verdict"], "missing");
    // The default route of this world is by a veth; what that has, kernels differ in.
    let found = row(&told, "offloads of d1")["found"].to_string();
    assert!(found.contains("gso"), "{found}");
    assert_eq!(settings(), before);

    w.device
        .run(|| support::set_sysctl("net.mptcp.enabled", "0").unwrap());
    let (code, json) = doctor(&["--json"]);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &told["works"]), (Some(0), &true.into()));
    let mptcp = row(&told, "MPTCP");
    assert_eq!(mptcp["verdict"], "weak");
    assert_eq!(
        mptcp["found"],
        "built in, off here; braid up switches it on"
    );
    assert!(
        !w.device.run(Support::detect).enabled,
        "it is looked at alone"
    );
}
