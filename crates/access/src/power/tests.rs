//! Sources in folders that look like `/sys`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;

fn put(root: &Path, file: &str, content: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{content}\n")).unwrap();
}

fn at(s: u64) -> Time {
    Time::ZERO + Duration::from_secs(s)
}

/// Name, scope and power of every source.
fn read(root: &Path) -> Vec<(String, Scope, Option<f64>)> {
    let mut all = discover(root);
    let of = |s: &mut Box<dyn PowerSource>| {
        let power = s.power_mw(at(1)).unwrap();
        (s.name().to_owned(), s.scope().clone(), power)
    };
    all.iter_mut().map(of).collect()
}

fn rail(name: &str) -> Scope {
    Scope::Rail(name.to_owned())
}

#[test]
fn a_machine_without_counters_has_no_sources() {
    let root = tempfile::tempdir().unwrap();
    assert!(discover(root.path()).is_empty());
    assert!(discover(&root.path().join("none")).is_empty());
}

#[test]
fn batteries_count_while_they_discharge() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "class/power_supply/BAT0/type", "Battery");
    put(root, "class/power_supply/BAT0/status", "Discharging");
    put(root, "class/power_supply/BAT0/power_now", "5400000");
    // A phone's: no power, and discharge is negative.
    put(root, "class/power_supply/battery/type", "Battery");
    put(root, "class/power_supply/battery/status", "Discharging");
    put(root, "class/power_supply/battery/current_now", "-600000");
    put(root, "class/power_supply/battery/voltage_now", "4000000");
    // Neither the mains nor the battery of a mouse.
    put(root, "class/power_supply/AC/type", "Mains");
    put(root, "class/power_supply/AC/power_now", "1");
    put(root, "class/power_supply/mouse/type", "Battery");
    put(root, "class/power_supply/mouse/scope", "Device");
    put(root, "class/power_supply/mouse/power_now", "1");
    let found = read(root);
    assert_eq!(
        found,
        [
            ("power_supply/BAT0".to_owned(), Scope::System, Some(5400.0)),
            (
                "power_supply/battery".to_owned(),
                Scope::System,
                Some(2400.0)
            ),
        ]
    );
    put(root, "class/power_supply/BAT0/status", "Charging");
    assert_eq!(read(root)[0].2, None);
}

#[test]
fn rails_of_sensors_have_their_names() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    put(root, "class/hwmon/hwmon0/name", "ina226");
    put(root, "class/hwmon/hwmon0/power1_input", "1250000");
    put(root, "class/hwmon/hwmon1/name", "ina3221");
    put(root, "class/hwmon/hwmon1/in1_input", "5000");
    put(root, "class/hwmon/hwmon1/curr1_input", "300");
    put(root, "class/hwmon/hwmon1/in1_label", "modem");
    put(root, "class/hwmon/hwmon1/in2_input", "5000");
    put(root, "bus/iio/devices/iio:device0/name", "ina2xx");
    put(root, "bus/iio/devices/iio:device0/in_power2_raw", "400");
    put(root, "bus/iio/devices/iio:device0/in_power2_scale", "2.5");
    put(root, "bus/iio/devices/iio:device0/in_power3_raw", "400");
    assert_eq!(
        read(root),
        [
            ("hwmon/hwmon0/1".to_owned(), rail("ina226 1"), Some(1250.0)),
            ("hwmon/hwmon1/1".to_owned(), rail("modem"), Some(1500.0)),
            (
                "iio/iio:device0/2".to_owned(),
                rail("ina2xx 2"),
                Some(1000.0)
            ),
        ]
    );
}

#[test]
fn energy_counters_give_power_from_the_second_reading_on() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let zone = "class/powercap/intel-rapl:0";
    let energy = |uj: &str| put(root, &format!("{zone}/energy_uj"), uj);
    put(root, &format!("{zone}/name"), "package-0");
    put(root, &format!("{zone}/max_energy_range_uj"), "10000000");
    put(root, "class/powercap/intel-rapl:0:0/energy_uj", "5");
    put(root, "class/powercap/intel-rapl/enabled", "1");
    energy("1000000");
    let mut all = discover(root);
    assert_eq!(all.len(), 1);
    let source = &mut all[0];
    assert_eq!(
        (source.name(), source.scope()),
        ("powercap/intel-rapl:0", &rail("package-0"))
    );
    assert_eq!(source.power_mw(at(1)).unwrap(), None);
    energy("7000000");
    assert_eq!(source.power_mw(at(3)).unwrap(), Some(3000.0));
    assert_eq!(source.power_mw(at(3)).unwrap(), None);
    // Over its end: 3 J to there, 1 J since.
    energy("1000000");
    let seen = source.observe(at(5)).unwrap().unwrap();
    assert_eq!(
        (seen.power_mw, seen.at, seen.scope),
        (2000.0, at(5), rail("package-0"))
    );
}

#[test]
fn files_that_go_or_lie_are_named() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let file = "class/hwmon/hwmon0/power1_input";
    put(root, file, "soon");
    let mut all = discover(root);
    let said = all[0].power_mw(at(1)).unwrap_err().to_string();
    assert!(
        said.contains(file) && said.contains("says \"soon\": expected a whole number"),
        "{said}"
    );
    fs::remove_file(root.join(file)).unwrap();
    let said = all[0].power_mw(at(1)).unwrap_err().to_string();
    assert!(
        said.contains("cannot read the power counter") && said.contains(file),
        "{said}"
    );
}
