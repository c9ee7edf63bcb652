//! Values of keys: what is taken where a key is left out, and what is refused.

use std::path::Path;
use std::time::Duration;

use braid_lab::scenario::{Overrides, Scenario, Traffic, Web};

fn read(access: &str, traffic: &str) -> Result<Scenario, String> {
    let text = format!(
        "name = \"t\"\nduration = \"5 s\"\n[access.a]\nkind = \"lte\"\n{access}\n\
         down = {{ rate = \"8 Mbit/s\" }}\n\
         [[case]]\nname = \"c\"\nengine = \"mptcp\"\ntraffic = {traffic}\n"
    );
    let read = Scenario::parse(
        &text,
        Path::new("f.toml"),
        Path::new("."),
        &Overrides::default(),
    );
    read.map_err(|e| e.to_string())
}

#[test]
fn web_pages_have_their_usual_form_and_no_impossible_one() {
    let of = |traffic: &str| match read("", traffic).unwrap().cases.remove(0).traffic {
        Traffic::Web(web) => web,
        other => panic!("{other:?}"),
    };
    let usual = Web {
        document_bytes: 40_000,
        objects: 60,
        object_bytes: 12_000,
        pause: Duration::from_secs(1),
    };
    assert_eq!(of("\"web\""), usual);
    let own =
        "{ kind = \"web\", document = \"1 kB\", objects = 0, object = \"2 kB\", pause = \"0 s\" }";
    let expected = Web {
        document_bytes: 1000,
        objects: 0,
        object_bytes: 2000,
        pause: Duration::ZERO,
    };
    assert_eq!(of(own), expected);
    for (keys, why) in [
        ("objects = 1001", "expected at most 1000 objects"),
        ("document = \"0 B\"", "expected at least 1 B"),
        ("bytes = \"1 MB\"", "traffic \"web\" has no key `bytes`"),
    ] {
        let e = read("", &format!("{{ kind = \"web\", {keys} }}")).unwrap_err();
        assert!(e.starts_with("f.toml:") && e.contains(why), "{e}");
    }
}

#[test]
fn a_power_model_is_a_shipped_set_or_a_file_that_can_be_read() {
    let power = |value: &str| read(&format!("power = \"{value}\""), "\"bulk\"");
    let case = power("sigcomm21-lte").unwrap().cases.remove(0);
    let set = case.accesses[0].power.as_ref().unwrap();
    assert_eq!(set.set, "sigcomm21-lte");
    let none = read("", "\"bulk\"").unwrap().cases.remove(0);
    assert_eq!(none.accesses[0].power, None);
    for (value, why) in [
        ("sigcomm21-lt", "did you mean \"sigcomm21-lte\"?"),
        ("absent.toml", "cannot read the parameters in ./absent.toml"),
    ] {
        let e = power(value).unwrap_err();
        assert!(e.starts_with("f.toml:5:9: ") && e.contains(why), "{e}");
    }
}
