use super::tests::{file, message, status};

const LOG: &str = "t_s,down_mbps,up_mbps,power_mw\n0,10,0.2,3000\n1,20,0.4,3100\n2,0,0,2800\n";

#[test]
fn bad_requests_end_with_2_and_say_what_was_expected() {
    let dir = tempfile::tempdir().unwrap();
    let log = file(dir.path(), "log.csv", LOG);
    let of = |args: &[&str]| message(&[&["energy", &log][..], args].concat());
    let e = of(&["--model", "affin"]);
    assert!(e.contains("no power model is called \"affin\""), "{e}");
    assert!(e.ends_with("did you mean \"affine\"?"), "{e}");
    let e = of(&["--model", "affine", "--set", "sigcomm21-ltee"]);
    assert!(e.ends_with("did you mean \"sigcomm21-lte\"?"), "{e}");
    let e = of(&["--model", "drx", "--set", "sigcomm21-lte"]);
    assert!(e.contains("of the model affine, not of drx"), "{e}");
    let e = of(&["--model", "affine", "--only", "nothing"]);
    assert!(e.contains("no transfer has this in its name: log"), "{e}");
    let bad = file(dir.path(), "bad.csv", &LOG.replace("20", "fast"));
    let args = ["energy", &bad, "--model", "affine"];
    assert_eq!(status(&args), 2);
    let e = message(&args);
    assert!(e.contains("bad.csv:3:3: \"fast\": expected Mbit/s"), "{e}");
    let set = file(dir.path(), "set.toml", "name = \"x\"\n[affine]\nbase = 3\n");
    let e = message(&["energy", &log, "--set", &set]);
    assert!(e.contains("set.toml:3:1: unknown key `base`"), "{e}");
    assert!(e.contains("did you mean `base_mw`?"), "{e}");
}

#[test]
fn a_log_a_trace_and_a_file_of_parameters_are_taken() {
    let dir = tempfile::tempdir().unwrap();
    let log = file(dir.path(), "log.csv", LOG);
    assert_eq!(
        status(&["energy", &log, "--model", "affine", "--after", "20 s"]),
        0
    );
    let trace = file(dir.path(), "t.csv", "0,12\n1,0\n2,24\n");
    assert_eq!(
        status(&["energy", &trace, "--model", "wifi-airtime", "--json"]),
        0
    );
    let set = "name = \"mine\"\n[affine]\nbase_mw = 1\ndown_mw_per_mbps = 2\nup_mw_per_mbps = 3\n";
    let set = file(dir.path(), "set.toml", set);
    assert_eq!(status(&["energy", &log, "--set", &set, "--connected"]), 0);
    assert_eq!(status(&["energy", "--list"]), 0);
}
