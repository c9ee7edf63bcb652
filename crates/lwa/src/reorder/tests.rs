//! Each policy by its rule.

use super::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn at(n: u64) -> Time {
    Time::from(ms(n))
}

#[test]
fn names_are_read_and_others_are_refused() {
    for entry in REGISTRY {
        let example = if entry.argument.is_empty() { "" } else { ":80" };
        parse(&format!("{}{example}", entry.name)).unwrap();
    }
    for bad in [
        "",
        "fixed",
        "fixed:",
        "fixed:751",
        "fixed:x",
        "paper:1",
        "adaptive:2",
        "Paper",
    ] {
        let error = parse(bad).unwrap_err().to_string();
        assert!(error.contains("expected fixed:MS"), "{error}");
    }
}

#[test]
fn fixed_waits_what_it_was_told() {
    let mut fixed = parse("fixed:80").unwrap();
    fixed.late(at(1), ms(500), false);
    fixed.round_trip(at(1), Link::Lte, ms(500));
    assert_eq!(fixed.time(at(1)), ms(80));
}

#[test]
fn paper_waits_twice_the_longer_round_trip() {
    let mut paper = parse("paper").unwrap();
    assert_eq!(paper.time(at(0)), ms(100));
    paper.round_trip(at(0), Link::Wlan, ms(13));
    assert_eq!(paper.time(at(0)), ms(26));
    paper.round_trip(at(0), Link::Lte, ms(20));
    assert_eq!(paper.time(at(0)), ms(40));
    for n in 0..100 {
        paper.round_trip(at(n), Link::Wlan, ms(60));
    }
    assert!((ms(119)..=ms(120)).contains(&paper.time(at(0))));
    paper.round_trip(at(0), Link::Lte, ms(60_000));
    assert_eq!(paper.time(at(0)), LONGEST);
}

#[test]
fn adaptive_waits_a_third_longer_than_packets_were_late() {
    let mut adaptive = parse("adaptive").unwrap();
    assert_eq!(adaptive.time(at(0)), ms(100));
    adaptive.late(at(0), ms(30), true);
    adaptive.late(at(1), ms(3), true);
    assert_eq!(adaptive.time(at(1)), ms(40));
    // Lateness of 30 ms is forgotten after two periods, not after one.
    adaptive.late(at(2500), ms(3), true);
    assert_eq!(adaptive.time(at(2500)), ms(40));
    adaptive.late(at(4600), ms(3), true);
    assert_eq!(adaptive.time(at(4600)), SHORTEST_MS);
    // Given up too early: doubled.
    adaptive.late(at(4700), ms(11), false);
    assert_eq!(adaptive.time(at(4700)), ms(20));
    // Long after anything was late it begins anew.
    assert_eq!(adaptive.time(at(20_000)), ms(100));
    for _ in 0..20 {
        adaptive.late(at(20_000), ms(11), false);
    }
    assert_eq!(adaptive.time(at(20_000)), LONGEST);
}

const SHORTEST_MS: Duration = Duration::from_millis(10);
