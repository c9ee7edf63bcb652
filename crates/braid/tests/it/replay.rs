//! `braid replay` over journals as a loop writes them: differences with reasons, broken lines with
//! their places.

use std::path::Path;
use std::process::{Command, Output};

use braid_core::control::{
    AccessSettings, Observation, PolicySettings, Request, Settings, StateChange, What,
};
use braid_core::control_loop::ControlLoop;
use braid_core::journal::{Header, VERSION, Writer};
use braid_core::{AccessKind, AccessState, Engine, Role, Time};
use serde_json::Value;

fn replay(dir: &Path, args: &[&str]) -> Output {
    let mut braid = Command::new(env!("CARGO_BIN_EXE_braid"));
    braid.arg("replay").args(args).current_dir(dir);
    braid.output().unwrap()
}

/// Observations at 0 s, 1 s and 2 s: the configuration, the state of nr, a request for weights.
fn observations() -> Vec<Observation> {
    let mut access = AccessSettings::new(AccessKind::Nr);
    access.expected.up = Some(braid_core::Rate::from_mbps(50.0));
    let settings = Settings {
        policy: PolicySettings::default(),
        accesses: [
            ("nr".to_owned(), access),
            ("wifi".to_owned(), AccessSettings::new(AccessKind::Wifi)),
        ]
        .into(),
    };
    let state = StateChange {
        access: "nr".to_owned(),
        state: AccessState::Active,
    };
    let wish = Request::Weights([("wifi".to_owned(), 3.0)].into());
    let all = [
        What::Configuration(settings),
        What::AccessState(state),
        What::Request(wish),
    ];
    let at = |(n, what): (u64, What)| Observation {
        at: Time::from_nanos(n * 1_000_000_000),
        what,
    };
    (0..).zip(all).map(at).collect()
}

/// Runs a loop with the policy `static` over the observations, and keeps its journal.
fn journal(dir: &Path) -> String {
    let header = Header {
        version: VERSION,
        program: "braid 0".to_owned(),
        role: Role::Device,
        engine: Engine::Mptcp,
        seed: 1,
    };
    let mut writer = Writer::new(Vec::new(), header).unwrap();
    let mut control = ControlLoop::new(1);
    for o in observations() {
        control.observe(&o).unwrap();
        let at = o.at;
        writer.observation(o).unwrap();
        if let Some(decision) = control.decide(at) {
            writer.decision(decision).unwrap();
        }
    }
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    std::fs::write(dir.join("j.jsonl"), &text).unwrap();
    text
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_recorded_policy_decides_as_recorded_and_another_says_why_not() {
    let dir = tempfile::tempdir().unwrap();
    journal(dir.path());
    let out = replay(dir.path(), &["j.jsonl"]);
    let told = text(&out.stdout);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let expected = "device mptcp by braid 0: 3 observations, 2 decisions\n\
                    policy as recorded: decides as recorded\n";
    assert_eq!(told, expected);
    let both = ["j.jsonl", "--policy", "static", "--policy", "capacity"];
    let told = text(&replay(dir.path(), &both).stdout);
    assert!(
        told.contains("policy static: decides as recorded\n"),
        "{told}"
    );
    // By what is expected of nr, and not by the request.
    assert!(told.contains("1.000 s  recorded  nr 1, wifi 1: "), "{told}");
    assert!(told.contains("replayed  nr down 1 up 50"), "{told}");
    let json = replay(dir.path(), &[&both[..], &["--json"]].concat());
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["replays"][0]["differences"], serde_json::json!([]));
    let first = &json["replays"][1]["differences"][0];
    assert_eq!(first["t_s"], 1.0);
    assert_eq!(first["replayed"]["accesses"]["nr"]["weight"]["up"], 50.0);
}

#[test]
fn a_journal_that_was_cut_off_is_replayed_up_to_there() {
    let dir = tempfile::tempdir().unwrap();
    let whole = journal(dir.path());
    std::fs::write(dir.path().join("cut"), &whole[..whole.len() - 5]).unwrap();
    let out = replay(dir.path(), &["cut"]);
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("cut: the last line is cut off"), "{said}");
    let told = text(&out.stdout);
    assert!(told.contains("2 observations, 1 decisions"), "{told}");
    assert!(
        told.ends_with("policy as recorded: decides as recorded\n"),
        "{told}"
    );
}

#[test]
fn what_cannot_be_replayed_has_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let whole = journal(dir.path());
    let fails = |file: &str, text_of: &str, word: &str| {
        std::fs::write(dir.path().join(file), text_of).unwrap();
        let out = replay(dir.path(), &[file]);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{said}");
        assert!(
            said.contains(word) && out.stdout.is_empty(),
            "{word}: {said}"
        );
    };
    let broken = whole.replacen("\"access-state\"", "\"acces-state\"", 1);
    fails("kind", &broken, "kind:4:");
    fails("empty", "", "empty:1: expected the header");
    let nobody = whole.replacen("\"static\"", "\"smart\"", 1);
    fails("policy", &nobody, "policy:2: no policy is called \"smart\"");
    let out = replay(dir.path(), &["nowhere"]);
    assert_eq!(out.status.code(), Some(2));
    let out = replay(dir.path(), &["j.jsonl", "--policy", "capacty"]);
    let said = text(&out.stderr);
    assert!(
        out.status.code() == Some(2) && said.contains("'capacity'"),
        "{said}"
    );
}
