use super::*;

#[test]
fn counts_lines_and_columns() {
    assert_eq!(line_column("a = 1\nb = é2", 6), (2, 1));
    assert_eq!(line_column("a = 1\nb = é2", 12), (2, 6));
    assert_eq!(line_column("", 99), (1, 1));
}

#[test]
fn names_the_nearest_key() {
    let e = explain("unknown field `dealy`, expected one of `rate`, `delay`, `loss`");
    assert!(e.ends_with("did you mean `delay`?"), "{e}");
    let e = explain("unknown field `zzz`, expected `rate` or `delay`");
    assert!(!e.contains("did you mean"), "{e}");
}

#[test]
fn keys_are_found_in_tables_and_arrays() {
    let text = "a = 1\n[t.u]\nb = { c = 2 }\n[[list]]\nx = 1\n[[list]]\n  x = 2\n";
    for (path, place) in [
        (&["a"][..], (1, 1)),
        (&["t", "u"], (2, 4)),
        (&["t", "u", "b", "c"], (3, 7)),
        (&["list", "1", "x"], (7, 3)),
        // The nearest above, where there is none.
        (&["list", "1", "y"], (6, 1)),
        (&["list", "9", "y"], (4, 3)),
        (&["t", "u", "z"], (2, 4)),
        (&["nothing"], (1, 1)),
        (&[], (1, 1)),
    ] {
        let d = Problem::at_key(path, "wrong").in_file("f".into(), text);
        assert_eq!(d.at, Some(place), "{path:?}");
    }
    let d = Problem::at_key(&["a"], "wrong").in_file("f".into(), "no TOML");
    assert_eq!(d.to_string(), "f:1:1: wrong");
    let d = Problem::whole("wrong").in_file("f".into(), text);
    assert_eq!(d.to_string(), "f: wrong");
}

#[test]
fn json_has_places_and_words_too() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct T {
        #[serde(rename = "delay")]
        _delay: u32,
    }
    let text = "{\n  \"dealy\": 1}";
    let e = serde_json::from_str::<T>(text).unwrap_err();
    let d = Problem::from(e).in_file("f".into(), text).to_string();
    assert_eq!(
        d,
        "f:2:9: unknown key `dealy`, expected `delay`; did you mean `delay`?"
    );
    let e = serde_json::from_str::<T>("{}").unwrap_err();
    let words = [("missing field `delay`", "how late is not said")];
    let d = Problem::from(e).reworded(&words).in_file("f".into(), "{}");
    assert_eq!(d.to_string(), "f:1:2: how late is not said");
}
