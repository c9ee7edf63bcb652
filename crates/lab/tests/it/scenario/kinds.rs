//! Files of every kind are refused alike: file, line, column, what is wrong, what was expected,
//! and the word that was meant.

use std::fmt::Display;
use std::path::Path;

use braid_api::config::{Config, DeviceAccess, Format};
use braid_lab::campaign::Campaign;
use braid_lab::scenario::{Overrides, Scenario};
use braid_traces::signal::drive::DriveSpec;

fn refused<T, E: Display>(read: Result<T, E>) -> String {
    match read {
        Ok(_) => panic!("accepted"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn every_kind_of_file_names_its_place_and_the_word_that_was_meant() {
    let (file, here) = (Path::new("f.toml"), Path::new("."));

    let text = "name = \"t\"\nduraton = \"1 s\"\n";
    let scenario = Scenario::parse(text, file, here, &Overrides::default());
    let e = refused(scenario);
    assert!(
        e.starts_with("f.toml:2:1: unknown key `duraton`, expected "),
        "{e}"
    );
    assert!(e.ends_with("; did you mean `duration`?"), "{e}");

    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("f.toml");
    std::fs::write(&path, "name = \"t\"\nscenario = \"static\"\nrepat = 2\n").expect("a file");
    let e = refused(Campaign::load(&path));
    let begins = format!("{}:3:1: unknown key `repat`, expected ", path.display());
    assert!(e.starts_with(&begins), "{e}");
    assert!(e.ends_with("; did you mean `repeat`?"), "{e}");

    let text = "[access.wifi]\ninterface = \"wlan0\"\nbakup = true\n";
    let config = Config::<DeviceAccess>::parse(text, Format::Toml);
    let e = refused(config.map_err(|p| p.in_file(file.to_owned(), text)));
    assert!(
        e.starts_with("f.toml:3:1: unknown key `bakup`, expected "),
        "{e}"
    );
    assert!(e.ends_with("; did you mean `backup`?"), "{e}");

    let text = "[receiver]\nheigth_m = 2\n";
    let e = refused(DriveSpec::parse(text).map_err(|p| p.in_file(file.to_owned(), text)));
    assert!(
        e.starts_with("f.toml:2:1: unknown key `heigth_m`, expected "),
        "{e}"
    );
    assert!(e.ends_with("; did you mean `height_m`?"), "{e}");
}
