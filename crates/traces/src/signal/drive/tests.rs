use proptest::prelude::*;

use super::super::cells::by_segment;
use super::super::paper::compare;
use super::super::{CapacityModel, RSRP_DBM};
use super::*;

/// The length of the paper's recording.
const PAPER_S: u32 = 33 * 3600;

/// The bar of the shipped scenario: the paper's statistics, within 10 %.
#[test]
fn the_shipped_drive_is_like_the_papers() {
    let m = drive(&DriveSpec::shipped(), 1, PAPER_S).unwrap();
    let parts = by_segment(&m.paths(&CapacityModel::default()));
    let rows = compare(&parts);
    assert_eq!(rows.len(), 13);
    let missed: Vec<_> = rows.iter().filter(|r| !r.holds()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_seed_gives_one_drive() {
    let spec = DriveSpec::shipped();
    let make = |seed, seconds| drive(&spec, seed, seconds).unwrap();
    assert_eq!(make(1, 300), make(1, 300));
    assert_ne!(make(1, 300).seconds, make(2, 300).seconds);
    // A shorter drive is the beginning of a longer one.
    assert_eq!(make(1, 300).seconds[..100], make(1, 100).seconds[..]);
    assert!(drive(&spec, 1, 0).unwrap_err().contains("expected 1 to"));
    assert!(drive(&spec, 1, MAX_SECONDS + 1).is_err());
}

#[test]
fn powers_are_correlated_over_time_and_reported_in_whole_decibels() {
    let m = drive(&DriveSpec::shipped(), 5, 3600).unwrap();
    let (mut steps, mut count) = (0.0, 0.0);
    for w in m.seconds.windows(2) {
        for h in &w[0].heard {
            assert!(RSRP_DBM.contains(&h.rsrp_dbm) && h.rsrp_dbm.fract() == 0.0);
            if let Some(next) = w[1].heard.iter().find(|n| n.cell == h.cell) {
                steps += (next.rsrp_dbm - h.rsrp_dbm).powi(2);
                count += 1.0;
            }
        }
    }
    // Uncorrelated shadowing of 6 dB would step by 8.5 dB.
    let step = f64::sqrt(steps / count);
    assert!((0.5..6.0).contains(&step), "{step} dB");
}

/// The error of a scenario, as the command line prints it.
fn refused(text: &str) -> String {
    let problem = DriveSpec::parse(text).unwrap_err();
    problem.in_file("d.toml".into(), text).to_string()
}

#[test]
fn bad_scenarios_say_where_and_what() {
    let shipped = DriveSpec::shipped_text();
    assert!(DriveSpec::parse(shipped).is_ok());
    for (from, to, says) in [
        (
            "[[operator]]",
            "[[operators]]",
            "13:3: unknown key `operators`, expected one of `receiver`, `operator`, `area`, \
             `stretch`; did you mean `operator`?",
        ),
        (
            "vehicle_loss_db = 11.5",
            "vehicle_loss_db = 61.5",
            "8:1: receiver: vehicle_loss_db is 61.5: expected 0 to 60",
        ),
        (
            "speed_kmh = 70",
            "speed_kmh = 7000",
            "39:1: road: speed_kmh is 7000: expected 1 to 300",
        ),
        (
            "rows = 1,",
            "rows = 0,",
            "42:27: road, op1: rows is 0: expected 1 to 9",
        ),
        (
            "propagation = \"uma\"",
            "propagation = \"umma\"",
            "28:15: unknown value `umma`, expected one of `uma`, `umi`, `rma`; did you mean `uma`?",
        ),
        (
            "area = \"road\"",
            "area = \"rode\"",
            "59:1: no area \"rode\": expected one of residential, road, open; did you mean \"road\"?",
        ),
        (
            "name = \"op2\"",
            "name = \"op1\"",
            "21:1: two operators named \"op1\"",
        ),
        (
            "name = \"op2\"",
            "name = \"op,2\"",
            "21:1: \"op,2\" is no name",
        ),
        (
            "name = \"900\"",
            "name = \"1800\"",
            "17:5: two carriers named \"1800\" of op1",
        ),
        (
            "frequency_mhz = 940",
            "frequency_mhz = nan",
            "17:19: op1 900: frequency_mhz is NaN: expected 450 to 6000",
        ),
        (
            "[area.road.sites]\nop1",
            "[area.road.sites]\nop9",
            "42:1: road, op9: no operator \"op9\": expected one of op1, op2",
        ),
        (
            "1800 = 0.86",
            "1801 = 0.86",
            "42:101: road, op1: no carrier \"1801\" of op1: expected one of 1800, 900",
        ),
    ] {
        assert!(shipped.contains(from), "{from}");
        let e = refused(&shipped.replacen(from, to, 1));
        assert!(e.starts_with(&format!("d.toml:{says}")), "{to}: {e}");
    }
    let e = refused("[receiver]\nheight_m = \"tall\"\n");
    assert!(e.starts_with("d.toml:2:12: invalid type"), "{e}");
    assert!(refused("").contains("missing field"));
}

proptest! {
    #[test]
    fn bytes_never_panic(text in "(\\[|\\]|=|\"|[a-z_. 0-9]|\n){0,200}") {
        let _ = DriveSpec::parse(&text);
    }

    /// Whatever the numbers of an area are, a drive through it is finite.
    #[test]
    fn any_area_can_be_driven_through(
        spacing in 50.0f64..3000.0, rows in 1u32..10, jitter in 0.0f64..0.5,
        height in 5.0f64..150.0, speed in 1.0f64..300.0, sectors in 1usize..7, seed: u64,
        model in prop::sample::select(vec![Propagation::Uma, Propagation::Umi, Propagation::Rma]),
    ) {
        let mut spec = DriveSpec::shipped();
        spec.stretch.truncate(1);
        let area = &mut spec.area[0];
        (area.speed_kmh, area.propagation) = (speed, model);
        for g in area.sites.values_mut() {
            (g.spacing_m, g.rows, g.jitter) = (spacing, rows, jitter);
            (g.height_m, g.sectors) = (height, sectors);
        }
        let m = drive(&spec, seed, 3).unwrap();
        prop_assert_eq!(m.seconds.len(), 3);
        for s in &m.seconds {
            prop_assert!(s.heard.windows(2).all(|w| w[0].cell < w[1].cell));
            prop_assert!(s.heard.iter().all(|h| RSRP_DBM.contains(&h.rsrp_dbm)));
        }
    }
}
